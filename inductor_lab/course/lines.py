"""The line of a student's function that contains an error or an endless loop."""

from __future__ import annotations

import linecache
import types
from collections.abc import Sequence
from typing import Any

from inductor_lab.course.language import say
from inductor_lab.debug.untrusted.remote import Frame
from inductor_lab.debug.untrusted.serve import file_of


def line_of(trace: types.TracebackType | None, solution: Any) -> str:
    """The last line of the student's code in a traceback."""
    found, where = "", file_of(solution)
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == where:
            found = line_text(where, trace.tb_lineno)
        trace = trace.tb_next
    return found


def line_in(frames: Sequence[Frame], file: str) -> str:
    """The last of these frames that is in the student's file or cell."""
    found = [(number, text) for name, number, text in frames if name == file]
    return line_text(file, *found[-1]) if found else ""


def line_text(path: str, number: int, text: str = "") -> str:
    """A line with its number, to stand below a message."""
    text = text or linecache.getline(path, number).strip()
    return say("\nin line {n}: {t}", n=number, t=text)
