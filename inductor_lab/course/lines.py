"""The line of a student's function that contains an error or an endless loop."""

from __future__ import annotations

import linecache
import sys
import types
from typing import Any

from inductor_lab.course.language import say


def file_of(solution: Any) -> str:
    """The file or cell that contains a function, a class or a kernel (`@triton.jit`); "" for other
    objects."""
    functions = vars(solution).values() if isinstance(solution, type) else [
        getattr(solution, "fn", solution)
    ]  # fmt: skip
    found = [f.__code__.co_filename for f in functions if isinstance(f, types.FunctionType)]
    return found[0] if found else ""


def line_of(trace: types.TracebackType | None, solution: Any) -> str:
    """The last line of the student's code in a traceback."""
    found, where = "", file_of(solution)
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == where:
            found = line_text(where, trace.tb_lineno)
        trace = trace.tb_next
    return found


def line_now(thread: int, solution: Any) -> str:
    """The line of the student's code that a thread is executing."""
    frame, where = sys._current_frames().get(thread), file_of(solution)
    while frame is not None:
        if frame.f_code.co_filename == where:
            return line_text(where, frame.f_lineno)
        frame = frame.f_back
    return ""


def line_text(path: str, number: int | str) -> str:
    """A line with its number, to be printed below a message."""
    text = linecache.getline(path, int(number)).strip()
    return say("\nin line {n}: {t}", n=number, t=text)
