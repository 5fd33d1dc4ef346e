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

    def update(self, done: float, doing: str, result: Any) -> None:
        """Called between two steps, and between two rounds of timing."""

    def finished(self, result: Any) -> None:
        """Called at the end; `result` may be incomplete if a user pressed Ctrl-C."""


class StatusLine:
    """One line in a terminal: the current step, a bar if the progress is known, the elapsed time.

    It disappears when it is closed.  Nothing is shown if `stream` is not a terminal, or if `rich`
    is not installed.
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
    """The progress of a benchmark as one line in the terminal."""

    def __init__(self) -> None:
        self._line = StatusLine(sys.stderr)

    def update(self, done: float, doing: str, result: Any) -> None:
        self._line.tell(doing, done)

    def finished(self, result: Any) -> None:
        self._line.close()


def usual_progress() -> Progress:
    """A live view in a notebook, a bar in a terminal, nothing otherwise."""
    shown = live_benchmark() if "IPython" in sys.modules else None
    return shown if shown is not None else TerminalProgress()
