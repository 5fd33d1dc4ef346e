"""Random straight-line programs of small whole numbers: drawn, written down, run, made smaller."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

Expression: TypeAlias = str | int | tuple[str, Any, Any]
"""A name, a number, or (op, left, right)."""


@dataclass(frozen=True)
class Program:
    """`target = expression` for each statement, then `return result`."""

    arguments: Mapping[str, int]
    statements: tuple[tuple[str, Expression], ...]
    result: Expression

    @property
    def source(self) -> str:
        body = [f"    {target} = {text(value)}" for target, value in self.statements]
        lines = [f"def f({', '.join(self.arguments)}):", *body, f"    return {text(self.result)}"]
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.source}\nf({self.described_arguments()})"

    def described_arguments(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.arguments.items())

    def function(self) -> Callable[..., int]:
        """The program as a Python function."""
        made: dict[str, Any] = {}
        exec(self.source, made)
        function: Callable[..., int] = made["f"]
        return function

    def value(self) -> int:
        """What it returns for its arguments."""
        return self.function()(**self.arguments)


def text(value: Expression) -> str:
    """An expression as Python, with every operation in brackets but the outermost."""
    if not isinstance(value, tuple):
        return str(value)
    op, *sides = value
    left, right = (f"({text(side)})" if isinstance(side, tuple) else text(side) for side in sides)
    return f"{left} {op} {right}"


def programs(draw: random.Random, count: int) -> Iterator[Program]:
    """Programs, small ones first; some names are assigned to several times."""
    for n in range(count):
        statements: list[tuple[str, Expression]] = []
        known = ["a", "b"]
        for _ in range(min(n // 8, 5)):
            target = draw.choice(["s", "t", "u", *known])
            statements.append((target, _expression(draw, known, 2)))
            known.append(target)
        arguments = {"a": draw.randint(-9, 9), "b": draw.randint(-9, 9)}
        yield Program(arguments, tuple(statements), _expression(draw, known, 1 + n // 15))


def _expression(draw: random.Random, known: list[str], depth: int) -> Expression:
    if depth == 0 or draw.random() < 0.2:
        # two literals would be folded before there is any bytecode
        return draw.choice(known)
    right = draw.randint(1, 5) if draw.random() < 0.3 else _expression(draw, known, depth - 1)
    return (draw.choice("+-*"), _expression(draw, known, depth - 1), right)


def simpler(program: Program) -> Iterator[Program]:
    """A statement less, a part of an expression for the whole, smaller arguments."""
    for n in range(len(program.statements)):
        kept = program.statements[:n] + program.statements[n + 1 :]
        if _is_defined(kept, program):
            yield replace(program, statements=kept)
    for part in _parts(program.result):
        yield replace(program, result=part)
    for n, (target, value) in enumerate(program.statements):
        for part in _parts(value):
            changed = (*program.statements[:n], (target, part), *program.statements[n + 1 :])
            yield replace(program, statements=changed)
    for name, number in program.arguments.items():
        if abs(number) > 3:
            yield replace(program, arguments={**program.arguments, name: number // 2})


def _parts(value: Expression) -> Iterator[Expression]:
    if isinstance(value, tuple):
        op, left, right = value
        yield from (part for part in (left, right) if not isinstance(part, int))
        yield from ((op, part, right) for part in _parts(left) if not isinstance(part, int))
        yield from ((op, left, part) for part in _parts(right))


def _is_defined(statements: tuple[tuple[str, Expression], ...], program: Program) -> bool:
    known = set(program.arguments)
    for target, value in (*statements, ("", program.result)):
        if not _names(value) <= known:
            return False
        known.add(target)
    return True


def _names(value: Expression) -> set[str]:
    if isinstance(value, tuple):
        return _names(value[1]) | _names(value[2])
    return {value} if isinstance(value, str) else set()
