"""Lab 11, measuring honestly: timers and five benchmarks, on a machine that is simulated.

The other exercises of the lab are in `measuring.py`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from inductor_lab.course.exercise import Exercise, exercise, expected
from inductor_lab.course.given.timing import (
    BENCHMARKS,
    TROUBLES,
    Setting,
)
from inductor_lab.course.labs.measuring import number
from inductor_lab.course.labs.wrong_values import numbers
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Picture, bars
from inductor_lab.course.simulated import TooLong, Troubles


class _Timed(Exercise):
    """Cases are machines; an answer may be off by `tolerance`."""

    tolerance = 0.1

    def truth(self, case: Setting) -> float:
        """The result of a right timer."""
        raise NotImplementedError

    def smaller(self, case: Setting) -> Iterable[Setting]:
        calm = Troubles()
        for name in ("compile", "grain", "interrupts", "slower", "throttled"):
            if getattr(case.troubles, name) != getattr(calm, name):
                less = replace(case.troubles, **{name: getattr(calm, name)})
                yield replace(case, troubles=less)

    def judge(self, solution: Any, case: Setting) -> str | None:
        try:
            found, machine = case.run(solution)
        except TooLong as reason:
            return say("it took too long: {r}", r=reason)
        wrong = number(found)
        if wrong:
            return wrong
        right = self.truth(case)
        if abs(found - right) <= self.tolerance * right:
            return None
        return say(
            "it is {r:.4g}; your answer: {f:.4g}; number of calls: {n:,}",
            r=right, f=found, n=len(machine.log),
        )  # fmt: skip

    def picture(self, solution: Any, case: Setting) -> Picture:
        """The true times of the first calls."""
        _, machine = case.run(solution)
        rows = [(f"{n}: {name}", took, f"{took:.3g} s") for n, (name, took) in
                enumerate(machine.log[:12])]  # fmt: skip
        return bars(say("the true times of the first calls"), rows)


@exercise("11.2", "Seconds per call", "每次调用几秒", points=3)
class PerCall(_Timed):
    """`seconds_per_call(call, clock)`: of a warm program, whatever the machine does."""

    def cases(self, draw: random.Random) -> Iterator[Setting]:
        each = (
            (Troubles(), 1e-3),
            (Troubles(compile=3.0), 1e-3),
            (Troubles(grain=1e-3), 2e-5),
            (Troubles(), 0.5),
            (Troubles(interrupts=True), 1e-3),
            (Troubles(compile=3.0, grain=1e-4, interrupts=True), 5e-4),
        )
        for troubles, seconds in (*each, *each):
            cost = round(seconds * draw.uniform(1, 2), 7)
            yield Setting(troubles, (cost,), draw.randrange(1000))

    def truth(self, case: Setting) -> float:
        return case.seconds[0]


@exercise("11.3", "Interleaved timing", "交替计时", points=3)
class InTurns(_Timed):
    """`times_as_long(first, second, clock)`: how many times as long as the second the first takes.

    Both are warm already.
    """

    tolerance = 0.06

    def cases(self, draw: random.Random) -> Iterator[Setting]:
        each = (
            Troubles(),
            Troubles(slower=0.3),
            Troubles(throttled=1.8),
            Troubles(interrupts=True),
            Troubles(interrupts=True, slower=0.3, throttled=1.8),
        )
        for troubles in (*each, *each, *each):
            costs = tuple(round(draw.uniform(1e-3, 3e-3), 5) for _ in range(2))
            yield Setting(troubles, costs, draw.randrange(1000))

    def truth(self, case: Setting) -> float:
        return case.seconds[0] / case.seconds[1]


# ---- five benchmarks ----------------------------------------------------------------------------


ROUNDS = 20


def said(benchmark: Callable[..., float], trouble: str) -> float:
    """The worst answer in twenty runs with one trouble; two programs of 1 ms, so 1 is right."""
    found: list[float] = []
    for seed in range(ROUNDS):
        try:
            found.append(Setting(TROUBLES[trouble], (1e-3, 1e-3), seed).run(benchmark)[0])
        except ZeroDivisionError:  # the clock did not move
            return math.inf
    return max(found, key=lambda ratio: abs(math.log(ratio)) if ratio else math.inf)


def harms(benchmark: Callable[..., float], trouble: str) -> bool:
    """Whether a disturbance makes the result of a benchmark wrong by more than a tenth."""
    return not 0.9 < said(benchmark, trouble) < 1.1


@exercise("11.5", "Five benchmarks", "五个基准测试", points=3, limit=60.0)
class Five(Exercise):
    """`harmed()`: for each benchmark, the list of disturbances that affect it."""

    def cases(self, draw: random.Random) -> Iterator[Any]:
        return iter(BENCHMARKS)

    def described(self, case: Any) -> str:
        return str(case.__name__)

    def judge(self, solution: Any, case: Any) -> str | None:
        found = solution()
        if not isinstance(found, dict):
            return expected(dict, found)
        listed = found.get(case.__name__)
        if not isinstance(listed, (list, tuple, set)):
            return say("there is no list for {n}", n=case.__name__)
        unknown = [name for name in listed if name not in TROUBLES]
        if unknown:
            return say("{u!r} is not one of {k}", u=unknown[0], k=", ".join(TROUBLES))  # fmt: skip
        for trouble in TROUBLES:
            if harms(case, trouble) and trouble not in listed:
                return say(
                    "another disturbance affects it, too: for two equal programs it can report "
                    "a ratio of {s:.2f}",
                    s=said(case, trouble),
                )  # fmt: skip
            if trouble in listed and not harms(case, trouble):
                return say(
                    "{t} does not affect it: the worst reported ratio is {s:.2f}, and 1 is right",
                    t=trouble, s=said(case, trouble),
                )  # fmt: skip
        return None

    def picture(self, solution: Any, case: Any) -> Picture | None:
        """Two equal programs: 1 is right.  A trouble that is not listed keeps its name."""
        listed = solution()[case.__name__]
        for trouble in TROUBLES:
            if (trouble in listed) != harms(case, trouble):
                name = trouble if trouble in listed else say("an item that is not listed")
                return numbers(say("reported ratio of two equal programs"), [
                    (say("right"), 1.0), (name, said(case, trouble)),
                ])  # fmt: skip
        return None
