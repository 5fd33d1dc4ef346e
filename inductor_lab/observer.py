"""The one hook between phases: it sees every result and can change none."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any


class Observer:
    """Told when a phase starts and ends.  The default does nothing; timing, progress bars and
    recording are subclasses."""

    def entered(self, phase: str) -> None:
        """A phase (`"forward.lower"`) starts."""

    def left(self, phase: str, result: Any) -> None:
        """It ended with this result (None if it raised)."""


@dataclass
class Stopwatch(Observer):
    """Seconds spent in each phase, summed over graphs; nested phases count in both."""

    seconds: dict[str, float] = field(default_factory=dict)
    _started: list[float] = field(default_factory=list)

    def entered(self, phase: str) -> None:
        self._started.append(time.perf_counter())

    def left(self, phase: str, result: Any) -> None:
        took = time.perf_counter() - self._started.pop()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + took
