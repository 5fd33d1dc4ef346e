"""A simulated machine to practise measuring: only work advances its clock; true times are known.

    machine = Machine(Troubles(compile=3.0, interrupts=True), seed=0)
    call = machine.program("f", 1e-3)
    start = machine.clock(); call(); machine.clock() - start

Real machines have the same troubles, but their true times are unknown.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from inductor_lab.course.language import say

MOST_CALLS = 20_000
MOST_SECONDS = 60.0
READING = 1e-7
"""Seconds that a look at the clock takes."""
NOISE = 0.02
BETWEEN_INTERRUPTS = 0.4
INTERRUPT = 0.1
BETWEEN_SPEEDS = 0.2


class TooLong(Exception):
    """The limit of calls or of seconds is exceeded."""


@dataclass(frozen=True)
class Troubles:
    """What disturbs a measurement.

    compile     additional seconds of the first call of a program; the second call takes a tenth of
                them
    grain       resolution of the clock in seconds
    interrupts  another process takes the processor for 0.1 s, about every half second
    slower      decrease of the speed per second, as a fraction of the speed at the start
    throttled   slowdown factor of the machine in about half of the time; it changes about every
                0.2 s
    """

    compile: float = 0.0
    grain: float = 0.0
    interrupts: bool = False
    slower: float = 0.0
    throttled: float = 1.0

    def __str__(self) -> str:
        said = [
            f"compile={self.compile:g} s" if self.compile else "",
            f"grain={self.grain:g} s" if self.grain else "",
            say("interrupts") if self.interrupts else "",
            say("slower by {p:.0%} a second", p=self.slower) if self.slower else "",
            say("throttled {r:g}x", r=self.throttled) if self.throttled != 1 else "",
        ]
        return ", ".join(filter(None, said)) or say("nothing")


class Machine:
    """A simulated machine.  `log` has (program, seconds) of each call; programs cannot read it."""

    def __init__(self, troubles: Troubles, seed: int) -> None:
        self.troubles = troubles
        self.log: list[tuple[str, float]] = []
        self._draw = random.Random(seed)
        self._now = self._draw.uniform(100, 200)
        self._start = self._now
        self._interrupt = self._next(BETWEEN_INTERRUPTS)
        self._change = self._next(BETWEEN_SPEEDS)
        self._fast = self._draw.random() < 0.5

    def clock(self) -> float:
        """Seconds since an arbitrary start, rounded to the clock's grain."""
        self._now += READING
        grain = self.troubles.grain
        return self._now // grain * grain if grain else self._now

    def program(
        self, name: str, seconds: float, *, compiles: bool = True
    ) -> Callable[[], None]:
        """A program that takes this many seconds per call on a machine without troubles.

        A call raises TooLong if the machine exceeds its limit.
        """
        extra = [self.troubles.compile, self.troubles.compile / 10] if compiles else []

        def call() -> None:
            self._work(name, seconds, extra.pop(0) if extra else 0.0)

        return call

    def _work(self, name: str, seconds: float, extra: float) -> None:
        before = self._now
        work = seconds * (1 + NOISE * abs(self._draw.gauss(0, 1)))
        self._now += work * self._slowness() + extra
        self._start += extra  # the compile time does not count towards the limit
        while self.troubles.interrupts and self._now >= self._interrupt:
            self._now += INTERRUPT
            self._interrupt = self._next(BETWEEN_INTERRUPTS)
        self.log.append((name, self._now - before))
        if len(self.log) > MOST_CALLS:
            raise TooLong(f"more than {MOST_CALLS:,} calls")
        if self._now - self._start > MOST_SECONDS:
            raise TooLong(f"{MOST_SECONDS:g} s of calls, compiling left out")

    def _slowness(self) -> float:
        while self._now >= self._change:
            self._fast = not self._fast
            self._change = self._next(BETWEEN_SPEEDS, self._change)
        drift = 1 + self.troubles.slower * (self._now - self._start)
        return drift * (1.0 if self._fast else self.troubles.throttled)

    def _next(self, gap: float, since: float | None = None) -> float:
        return (self._now if since is None else since) + gap * self._draw.uniform(0.5, 1.5)
