"""The one hook between phases: it sees every result and can change none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Observer:
    """Told when a phase starts and ends.  The default does nothing; timing, progress bars and
    recording are subclasses."""

    def entered(self, phase: str) -> None:
        """A phase (`"forward.lower"`) starts."""

    def left(self, phase: str, result: Any) -> None:
        """It ended with this result (None if it raised)."""


class Stopwatch(Observer):
    """Seconds spent in each phase, summed over graphs; an outer phase includes its inner ones.

    `also` is another observer that is told the same.
    """

    def __init__(self, also: Observer | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._started: list[float] = []
        self._also = also or Observer()

    def entered(self, phase: str) -> None:
        self._also.entered(phase)
        self._started.append(time.perf_counter())

    def left(self, phase: str, result: Any) -> None:
        took = time.perf_counter() - self._started.pop()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + took
        self._also.left(phase, result)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a block as a phase of its own."""
        self.entered(name)
        try:
            yield
        finally:
            self.left(name, None)
