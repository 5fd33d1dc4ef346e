"""Locations in the user's code: spans from the stack traces of FX nodes."""

from __future__ import annotations

import linecache
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

from inductor_lab.compiler.capture.expression import find_expression
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.compiler.torch_door.torch_types import INSTALLED, torch

_FRAME = re.compile(r'^\s*File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*)$')
_CARETS = re.compile(r"^\s*[~^]+\s*$")
_IPYTHON_INPUT = re.compile(r"<ipython-input-(\d+)-\w+>")
_CALLER = str(Path(__file__).parents[2].joinpath("api", "backend.py"))
"""The file in which `lab.inspect` calls the user's function."""
_NOT_USERS = (_CALLER, *([os.path.dirname(torch.__file__) + os.sep] if INSTALLED else []))
_PACKAGE = re.compile(r"[/\\](?:site|dist)-packages[/\\](?!torch[/\\])")
_TORCH_ELSEWHERE = re.compile(r"[/\\](?:site|dist)-packages[/\\]torch[/\\]")


def shown_file(file: str) -> str:
    """The name of a file in outputs.

    It is `cell 3`; `transformers/activations.py` for an installed package; a path relative to the
    current folder (the notebook's folder; at most two folders up, and not up to the root); or the
    path. Files of torch keep their path, so that `outside_torch` recognizes them.
    """
    if cell := _cell_name(file):
        return cell
    if package := _PACKAGE.search(file):
        return file[package.end() :]
    if file.startswith("<") or not os.path.isabs(file):
        return file
    relative, here = os.path.relpath(file), os.getcwd().split(os.sep)
    above = relative.split(os.sep).count("..")
    return relative if above <= 2 and above < len(here) - 1 else file


def _cell_name(file: str) -> str:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", {})
    if file in numbers:
        return f"cell {numbers[file]}"
    if match := _IPYTHON_INPUT.match(file):
        return f"cell {match[1]}"
    in_kernel = os.path.basename(os.path.dirname(file)).startswith("ipykernel_")
    return "cell" if in_kernel else ""


def outside_torch(file: str) -> bool:
    """Is this file outside torch (of this machine, or of the one that wrote the log)?"""
    return not file.startswith(_NOT_USERS) and not _TORCH_ELSEWHERE.search(file)


def spans_in(stack_trace: str, *, skip_torch: bool = False) -> tuple[Span, ...]:
    """Every frame of a printed stack trace, outermost first.

    `  File "m.py", line 12, in forward` / `    return x.sin()` / `           ^^^^^^^`
    → `Span("m.py", 12, column=..., function="forward", code="return x.sin()")`.  Columns count in
    the file's own line, so indentation is added back; without a `^^^` line the column is 0.
    """
    return tuple(_span(*frame) for frame in _frames(stack_trace, skip_torch))


def innermost(stack_trace: str, callee: str = "") -> Span | None:
    """The deepest frame outside torch; the deepest frame if all are in torch.

    `callee` is the op's name in the user's code (`"sin"`): it determines where the expression is
    and where it ends (`end_column` 0: unknown).
    """
    frames = _frames(stack_trace, True) or _frames(stack_trace, False)
    if not frames:
        return None
    frame, below = frames[-1]
    span = _span(frame, below)
    found = find_expression(frame["file"], span.line, span.column, callee)
    if found is None:
        return replace(span, end_column=0)
    return replace(span, column=found.column, end_line=found.end_line, end_column=found.end_column)


_Frame = tuple[re.Match[str], list[str]]


def _frames(stack_trace: str, skip_torch: bool) -> list[_Frame]:
    """Each frame's heading with the lines below it: the code, and possibly marks."""
    lines = stack_trace.splitlines()
    starts = [(i, m) for i, line in enumerate(lines) if (m := _FRAME.match(line))]
    ends = [*(i for i, _ in starts), len(lines)][1:]
    return [
        (match, lines[i + 1 : end])
        for (i, match), end in zip(starts, ends, strict=True)
        if not skip_torch or outside_torch(match["file"])
    ]


def _span(frame: re.Match[str], below: list[str]) -> Span:
    file, line = frame["file"], int(frame["line"])
    code = below[0].strip() if below else ""
    column = end_column = 0
    if len(below) > 1 and _CARETS.match(below[1]):
        source = linecache.getline(file, line)
        indent = len(source) - len(source.lstrip())
        code_at = len(below[0]) - len(below[0].lstrip())
        marks = below[1].rstrip()
        column = len(marks) - len(marks.lstrip()) - code_at + indent + 1
        end_column = len(marks) - code_at + indent + 1
    return Span(shown_file(file), line, column, line, end_column, frame["function"], code)


def code_line(stack_trace: str) -> str:
    """`y = torch.erfinv(x)        cell 3:2`: the user's line with its location, for errors."""
    span = innermost(stack_trace)
    return f"{span.code}        {span}" if span else ""
