"""The progress of a running benchmark; the default shows nothing.

Bars in terminals and in notebooks are subclasses: they see finished values and change nothing.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import IO, Any

from inductor_lab.compiler.base.display import live_benchmark


class Progress:
    """Called with the completed share (0 to 1), the current step, and the results so far."""

    def told(self, done: float, doing: str, result: Any) -> None:
        """Between two steps, and between two rounds of timing."""

    def finished(self, result: Any) -> None:
        """Nothing follows; `result` may be a part only, if a user pressed Ctrl-C."""


class StatusLine:
    """One line in a terminal: what is done now, a bar where that is known, the time passed.

    Gone when it is closed.  Nothing where `stream` is no terminal, or `rich` is not installed.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._bar = None
        if not stream.isatty() or find_spec("rich") is None:
            return
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._bar = Bar(*columns, console=Console(file=stream), transient=True)
        self._task = self._bar.add_task("", total=None)
        self._bar.start()

    def tell(self, doing: str, done: float | None = None) -> None:
        """`done` is a share from 0 to 1; None if it cannot be known."""
        if self._bar is not None:
            known = None if done is None else 1.0
            self._bar.update(self._task, description=doing, total=known, completed=done or 0.0)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


class TerminalProgress(Progress):
    """A benchmark on a line of the terminal's."""

    def __init__(self) -> None:
        self._line = StatusLine(sys.stderr)

    def told(self, done: float, doing: str, result: Any) -> None:
        self._line.tell(doing, done)

    def finished(self, result: Any) -> None:
        self._line.close()


def usual_progress() -> Progress:
    """A live view in a notebook, a bar in a terminal, nothing otherwise."""
    shown = live_benchmark() if "IPython" in sys.modules else None
    return shown if shown is not None else TerminalProgress()
