"""The cells of a student, run in a process that has no judge: what `course/grading.py` starts."""

from __future__ import annotations

import contextlib
import io
import linecache
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from inductor_lab import course

SHOWN = 20_000
"""So many letters of what a cell prints are kept."""


def solution_of(argument: dict[str, Any]) -> Any:
    """Run cells, and return what they call `argument["solution"]`.

    Raises NameError if they define no such name.
    """
    names, _ = _run(argument["cells"])
    if argument["solution"] not in names:
        raise NameError(f"name {argument['solution']!r} is not defined")
    return names[argument["solution"]]


def transcript(argument: dict[str, Any]) -> list[str]:
    """What each cell prints."""
    return _run(argument["cells"])[1]


def _run(cells: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The names that cells define, and what each prints.  A cell that fails does not end it."""
    course.check = course.board = lambda *args, **kwargs: _JudgedElsewhere()  # type: ignore[assignment]
    course.own_exercises = lambda path: []
    shell = _shell()
    names: dict[str, Any] = shell.user_ns if shell else {"__name__": "__main__"}
    printed = []
    for number, text in enumerate(cells, 1):
        out = io.StringIO()
        with contextlib.redirect_stdout(_Both(out, sys.stdout)):
            if shell:
                shell.run_cell(text)
            else:
                _plain(text, f"<cell {number}>", names)
        printed.append(out.getvalue()[:SHOWN])
    return names, printed


def _shell() -> Any:
    """IPython, for cells with magics; None where it is not installed."""
    try:
        from IPython.core.interactiveshell import InteractiveShell
    except ImportError:
        return None
    shell: Any = InteractiveShell.instance()
    shell.history_manager.enabled = False
    shell.colors = "NoColor"
    return shell


def _plain(text: str, file: str, names: dict[str, Any]) -> None:
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        exec(compile(text, file, "exec"), names)
    except Exception:
        print(traceback.format_exc())


class _Both(io.TextIOBase):
    """Text that goes to two places."""

    def __init__(self, *places: Any) -> None:
        self.places = places

    def write(self, text: str) -> int:
        for place in self.places:
            place.write(text)
        return len(text)


class _JudgedElsewhere:
    """What a check returns where there is no judge."""

    points = 0

    def __repr__(self) -> str:
        return "judged elsewhere"
