"""The one hook between phases: it sees every result and can change none."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Phase:
    """An interval: `start` in seconds since 1970, or since the start of the compilation.

    `track` names the clock: "inductor_lab" or "TorchDynamo".
    """

    name: str
    track: str
    start: float
    seconds: float


def in_order(phases: Iterable[Phase]) -> tuple[Phase, ...]:
    """Phases by start time, outer ones first; times are relative to the first start."""
    ordered = sorted(phases, key=lambda phase: (phase.start, -phase.seconds))
    zero = ordered[0].start if ordered else 0.0
    return tuple(replace(phase, start=phase.start - zero) for phase in ordered)


class Observer:
    """Called when a phase starts and ends.  The default does nothing; timing, progress bars and
    recording are subclasses."""

    def entered(self, phase: str) -> None:
        """A phase (`"forward.lower"`) starts."""

    def left(self, phase: str, result: Any) -> None:
        """It ended with this result (None if it raised)."""


class Stopwatch(Observer):
    """Seconds spent in each phase, summed over graphs; an outer phase includes its inner ones.

    `phases` has each phase separately, in the order in which they ended.  `also` is another
    observer that gets the same calls.
    """

    def __init__(self, also: Observer | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self.phases: list[Phase] = []
        self._started: list[tuple[float, float]] = []
        self._also = also or Observer()

    def entered(self, phase: str) -> None:
        self._also.entered(phase)
        self._started.append((time.time(), time.perf_counter()))

    def left(self, phase: str, result: Any) -> None:
        start, counted = self._started.pop()
        took = time.perf_counter() - counted
        self.phases.append(Phase(phase, "inductor_lab", start, took))
        self.seconds[phase] = self.seconds.get(phase, 0.0) + took
        self._also.left(phase, result)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a block as a separate phase."""
        self.entered(name)
        try:
            yield
        finally:
            self.left(name, None)
