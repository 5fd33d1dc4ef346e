"""Lab 11: five benchmarks, and the disturbances of a simulated machine."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from inductor_lab.course.language import say
from inductor_lab.course.simulated import Machine, Troubles

Call: TypeAlias = Callable[[], None]


Clock: TypeAlias = Callable[[], float]


@dataclass(frozen=True)
class Setting:
    """A machine, and the programs on it in true seconds per call; the last one is compiled."""

    troubles: Troubles
    seconds: tuple[float, ...]
    seed: int

    def __str__(self) -> str:
        costs = say(" and ").join(f"{each:g} s" for each in self.seconds)
        return say("programs with {c} for each call; disturbances: {t}", c=costs, t=self.troubles)

    def run(self, solution: Any) -> tuple[Any, Machine]:
        """The result of a timer on this machine; raises TooLong."""
        machine = Machine(self.troubles, self.seed)
        last = len(self.seconds) - 1
        calls = [
            machine.program(("first", "second")[n], each, compiles=n == last)
            for n, each in enumerate(self.seconds)
        ]
        return solution(*calls, machine.clock), machine


def timed(call: Call, clock: Clock, calls: int = 1) -> float:
    """Seconds per call of some calls in a row."""
    start = clock()
    for _ in range(calls):
        call()
    return (clock() - start) / calls


def warm(*programs: Call) -> None:
    for program in programs:
        for _ in range(3):
            program()


def as_in_the_blog(first: Call, second: Call, clock: Clock) -> float:
    warm(first, second)
    return timed(first, clock, 1000) / timed(second, clock, 1000)


def right_away(first: Call, second: Call, clock: Clock) -> float:
    rounds = [(timed(first, clock, 20), timed(second, clock, 20)) for _ in range(50)]
    return sum(one for one, _ in rounds) / sum(other for _, other in rounds)


def the_shortest(first: Call, second: Call, clock: Clock) -> float:
    warm(first, second)
    times = [min(timed(each, clock) for _ in range(1000)) for each in (first, second)]
    return times[0] / times[1]


def two_medians(first: Call, second: Call, clock: Clock) -> float:
    warm(first, second)
    one = statistics.median(timed(first, clock, 50) for _ in range(21))
    other = statistics.median(timed(second, clock, 50) for _ in range(21))
    return one / other


def call_by_call(first: Call, second: Call, clock: Clock) -> float:
    warm(first, second)
    rounds = [(timed(first, clock), timed(second, clock)) for _ in range(500)]
    return statistics.median(one / other for one, other in rounds)


BENCHMARKS = (as_in_the_blog, right_away, the_shortest, two_medians, call_by_call)
"""Each says how many times as long as the second program the first one takes."""


TROUBLES = {
    "compile": Troubles(compile=3.0),
    "grain": Troubles(grain=4e-3),
    "interrupts": Troubles(interrupts=True),
    "slower": Troubles(slower=0.3),
}
