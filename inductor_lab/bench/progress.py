"""What a benchmark tells while it runs; the default says nothing.

Bars in terminals and in notebooks are subclasses: they see finished values and change nothing.
"""

from __future__ import annotations

import sys
from typing import Any

from inductor_lab.display import live_benchmark


class Progress:
    """Told how far a benchmark is (0 to 1), what it does now, and what it has so far."""

    def told(self, done: float, doing: str, result: Any) -> None:
        """Between two steps, and between two rounds of timing."""

    def finished(self, result: Any) -> None:
        """Nothing follows; `result` may be a part only, if a user pressed Ctrl-C."""


class TerminalProgress(Progress):
    """A bar with the time that has passed, gone when the benchmark is done."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=1.0)
        self._bar.start()

    def told(self, done: float, doing: str, result: Any) -> None:
        self._bar.update(self._task, completed=done, description=doing)

    def finished(self, result: Any) -> None:
        self._bar.stop()


def usual_progress() -> Progress:
    """A live view in a notebook, a bar in a terminal, nothing where nobody looks."""
    shown = live_benchmark() if "IPython" in sys.modules else None
    if shown is not None:
        return shown
    return TerminalProgress() if sys.stderr.isatty() else Progress()
