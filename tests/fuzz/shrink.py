"""Make a program that fails smaller, as long as it fails in the same way."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from tests.fuzz.program import Program
from tests.fuzz.values import is_outside

Check = Callable[[Program], None]
SECONDS = 120.0
"""For which a program is made smaller."""


def said(wrong: BaseException) -> str:
    """One line about a failure: what was first raised."""
    while (first := wrong.__cause__ or getattr(wrong, "inner_exception", None)) is not None:
        wrong = first
    lines = str(wrong).strip().splitlines() or [""]
    return f"{type(wrong).__name__}: {lines[0][:160]}"


def kind_of(text: str) -> str:
    """What stays the same about a failure while its program gets smaller."""
    return re.sub(r"\d+|'[^']*'|\(.*", "", text)[:60]


def failure(check: Check, program: Program) -> str | None:
    """What `check` says against the program, if anything."""
    try:
        check(program)
    except Exception as wrong:
        return said(wrong)
    return None


def shrunk(
    check: Check, program: Program, first: str, seconds: float = SECONDS
) -> tuple[Program, str]:
    """A smaller program whose failure is of the same kind as `first`, and what is said of it."""
    known, end = first, time.monotonic() + seconds
    found: tuple[Program, str] | None = program, first
    while found is not None:
        program, known = found
        found = None
        for candidate in _smaller(program):
            if time.monotonic() > end:
                break
            what = failure(check, candidate) if _runs(candidate) else None
            if what is not None and kind_of(what) == kind_of(first):
                found = candidate, what
                break
    return program, known


def _smaller(program: Program) -> Iterator[Program]:
    """Programs with less in them, the boldest cuts first."""
    count = len(program.lines)
    for size in (16, 8, 4, 2, 1):
        if size > 1 and size > count // 2:
            continue
        for end in range(count, 0, -size):
            yield _without(program, range(max(end - size, 0), end))
    for number in range(count - 1, -1, -1):
        yield from _bypassed(program, number)
    if len(program.results) > 1:
        for name in program.results:
            rest = tuple(other for other in program.results if other != name)
            yield replace(program, results=rest)


def _without(program: Program, gone: range) -> Program:
    """The program without some lines, and without the results that they named."""
    lines = [line for number, line in enumerate(program.lines) if number not in gone]
    return _cleared(program, lines, program.results)


def _bypassed(program: Program, number: int) -> Iterator[Program]:
    """The program with the value of one line replaced by each value that the line reads."""
    name, _, text = program.lines[number].partition(" = ")
    for source in dict.fromkeys(re.findall(r"\b[vx]\d+\b", text)):
        lines = [
            re.sub(rf"\b{name}\b", source, line)
            for other, line in enumerate(program.lines)
            if other != number
        ]
        yield _cleared(program, lines, tuple(source if r == name else r for r in program.results))


def _cleared(program: Program, lines: list[str], results: tuple[str, ...]) -> Program:
    made = {line.partition(" = ")[0] for line in lines}
    given = {f"x{n}" for n in range(len(program.inputs))}
    kept = tuple(dict.fromkeys(name for name in results if name in made | given))
    return replace(program, lines=tuple(lines), results=kept or ("x0",))


def _runs(program: Program) -> bool:
    try:
        found = program.function()(*program.make())
    except Exception as refused:
        return is_outside(refused)
    return all(isinstance(x, torch.Tensor) for x in found)
