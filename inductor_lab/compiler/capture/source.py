"""The source of the user's function, with its line numbers."""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.compiler.capture.span import outside_torch, shown_file
from inductor_lab.compiler.torch_door.torch_types import torch

_OURS = str(Path(__file__).parents[2]) + os.sep


@dataclass(frozen=True)
class SourceFile:
    """A part of a file or cell: `text` starts at line `first_line` and is unchanged.

    Empty for callables whose source Python does not have.
    """

    file: str
    first_line: int
    text: str

    def __str__(self) -> str:
        lines = enumerate(self.text.splitlines(), self.first_line)
        return "\n".join(f"{number:4d}  {line}" for number, line in lines)

    @property
    def called_from(self) -> Span | None:
        """The line of a call, if that is all of the user's code.

        It replaces the lines of torch's own files, for which TorchDynamo keeps no lines.
        """
        lines = self.text.splitlines()
        if len(lines) != 1:
            return None
        return Span(self.file, self.first_line, code=lines[0].strip())

    def line(self, number: int) -> str:
        """One line by its number in the file; "" outside this part."""
        lines = self.text.splitlines()
        index = number - self.first_line
        return lines[index] if 0 <= index < len(lines) else ""


def function_source(fn: Callable[..., Any]) -> SourceFile:
    """The source of a function, or of a module's `forward`; unwraps wrappers."""
    function = _innermost(fn)
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or ""
    except (OSError, TypeError):
        return SourceFile("", 1, "")
    return SourceFile(shown_file(file), max(first, 1), "".join(lines))


def calling_line() -> SourceFile:
    """The line outside torch and inductor_lab that made this call."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if outside_torch(file) and not file.startswith(_OURS) and "contextlib" not in file:
            text = linecache.getline(file, frame.f_lineno)
            return SourceFile(shown_file(file), frame.f_lineno, text)
        frame = frame.f_back
    return SourceFile("", 1, "")


def source_of_call(fn: Callable[..., Any]) -> SourceFile:
    """`function_source`; for a function or module of torch itself (`nn.Sequential`), the line that
    calls it."""
    file = getattr(getattr(_innermost(fn), "__code__", None), "co_filename", "")
    return function_source(fn) if outside_torch(file) else calling_line()


def _innermost(fn: Any) -> Any:
    for _ in range(100):
        match fn:
            case torch.nn.Module():
                inner = getattr(fn, "_orig_mod", None)
                fn = inner if inner is not None else type(fn).forward
            case functools.partial():
                fn = fn.func
            case _ if hasattr(fn, "_torchdynamo_orig_callable"):
                fn = fn._torchdynamo_orig_callable
            case _ if hasattr(fn, "__wrapped__"):
                fn = fn.__wrapped__
            case _ if inspect.isroutine(fn) or inspect.isclass(fn):
                return fn
            case _:
                return type(fn).__call__
    return fn
