"""Lab 11, measuring honestly: a middle, an interval, which calls compile, when it saves time.

Its timers and benchmarks on a simulated machine are in `timing.py`.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from types import NoneType
from typing import Any

import torch

from inductor_lab.course.exercise import Exercise, exercise, expected
from inductor_lab.course.given.measuring import LOOPS, Series, scale
from inductor_lab.course.labs.wrong_values import numbers
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Cell, Picture, Row, bars, cells, drawn
from inductor_lab.debug.untrusted.remote import RemoteFunction


def number(found: Any) -> str | None:
    """A sentence if a value is not a finite number."""
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return expected(float, found)
    if math.isfinite(found):
        return None
    return say("it returned {f}", f=found)


# ---- summaries ----------------------------------------------------------------------------------


@exercise("11.1", "A robust middle", "稳健的中间值", points=1)
class Middle(Exercise):
    """`middle(samples)`: as many samples at or above it as at or below it."""

    def cases(self, draw: random.Random) -> Iterator[tuple[int, ...]]:
        for n in range(60):
            usual = [draw.randint(10, 14) for _ in range(1 + n // 6)]
            spikes = [draw.choice([0, 200, 900]) for _ in range((len(usual) - 1) // 2)]
            usual += spikes if n % 2 else []
            draw.shuffle(usual)
            yield tuple(usual)

    def smaller(self, case: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
        return (case[:n] + case[n + 1 :] for n in range(len(case)) if len(case) > 1)

    def judge(self, solution: Any, case: tuple[int, ...]) -> str | None:
        given = list(case)
        if isinstance(solution, RemoteFunction):
            found, (given,) = solution.with_arguments(given)
        else:
            found = solution(given)
        wrong = number(found)
        if wrong:
            return wrong
        if given != list(case):
            return say("it changed the list of samples")
        below, above = sum(s <= found for s in case), sum(s >= found for s in case)
        if 2 * below >= len(case) and 2 * above >= len(case):
            return None
        return say(
            "{f} is not a middle: {b} samples are at or below it, and {a} are at or above it",
            f=round(found, 3), b=below, a=above,
        )  # fmt: skip

    def picture(self, solution: Any, case: tuple[int, ...]) -> Picture:
        rows = [(say("sample"), float(s), str(s)) for s in sorted(case)]
        found = solution(list(case))
        return bars(say("the samples, and your answer"),
                    [*rows, (say("your answer"), found, f"{found:.4g}")])  # fmt: skip


# ---- an interval --------------------------------------------------------------------------------

EXPERIMENTS = 400
SPREADS: dict[str, Callable[[random.Random], float]] = {
    "symmetric": lambda draw: draw.gauss(0, 0.1),
    "with outliers": lambda draw: draw.gauss(0, 0.02) + (draw.random() < 0.2) * draw.random(),
    "skewed": lambda draw: draw.expovariate(5.0) - math.log(2) / 5,
}
"""How the ratio of one round differs from the true one; outliers lie on one side."""


@dataclass(frozen=True)
class Rounds:
    """Experiments of so many rounds, whose ratios spread in one way around a true median."""

    spread: str
    rounds: int
    seed: int

    def __str__(self) -> str:
        spread = say(self.spread)
        return say("{n} rounds, {spread}", n=self.rounds, spread=spread)

    def drawn(self) -> Iterator[list[float]]:
        draw = random.Random(self.seed)
        for _ in range(EXPERIMENTS):
            yield [2 + SPREADS[self.spread](draw) for _ in range(self.rounds)]

    @property
    def truth(self) -> float:
        draw = random.Random(1)
        return 2 + statistics.median(SPREADS[self.spread](draw) for _ in range(40_001))


DRAWN, BINS = 10, 28
"""So many experiments are drawn, and so many places are on their scale."""


def reference(ratios: list[float]) -> tuple[float, float]:
    """From order statistics: the count of samples below the median is binomial."""
    found, outside, cut = sorted(ratios), 0.0, 0
    while True:
        outside += 2 * math.comb(len(found), cut) / 2 ** len(found)
        if outside > 0.05:
            break
        cut += 1
    return found[cut - 1], found[-cut]


@exercise("11.4", "An interval", "区间", points=3, limit=90.0)
class Interval(Exercise):
    """`interval(ratios)`: (low, high) that contains the true median in 19 of 20 experiments."""

    def cases(self, draw: random.Random) -> Iterator[Rounds]:
        return (Rounds(spread, n, draw.randrange(1000)) for n in (15, 31) for spread in SPREADS)

    def judge(self, solution: Any, case: Rounds) -> str | None:
        truth, held = case.truth, 0
        wide = usual = 0.0
        for ratios in case.drawn():
            found = solution(list(ratios))
            wrong = expected(tuple, found)
            if wrong or len(found) != 2:
                return wrong or say("it should be (low, high)")
            wrong = number(found[0]) or number(found[1])
            if wrong:
                return wrong
            held += found[0] <= truth <= found[1]
            wide += found[1] - found[0]
            low, high = reference(ratios)
            usual += high - low
        if held < 0.91 * EXPERIMENTS:
            return say(
                "it contains the true ratio in {h:.0%} of {n} experiments; 95 % are required",
                h=held / EXPERIMENTS, n=EXPERIMENTS,
            )  # fmt: skip
        if wide <= 1.25 * usual:
            return None
        return say(
            "it contains the median, but it is {w:.1f} times as wide as necessary",
            w=wide / usual,
        )  # fmt: skip

    def picture(self, solution: Any, case: Rounds) -> Picture:
        """Intervals of the first experiments and the true median, on one scale."""
        wanted = [(list(ratios), reference(ratios)) for ratios in islice(case.drawn(), DRAWN)]
        found = [(float(low), float(high)) for low, high in
                 (solution(list(ratios)) for ratios, _ in wanted)]  # fmt: skip
        ends = [end for each in (*found, *(right for _, right in wanted)) for end in each]
        least, bin_ = min(ends), (max(ends) - min(ends)) / (BINS - 1) or 1.0
        at = round((case.truth - least) / bin_)

        def line(low: float, high: float) -> list[Cell]:
            held = range(round((low - least) / bin_), round((high - least) / bin_) + 1)
            marks: list[Cell] = [("", "bar" if k in held else "box") for k in range(BINS)]
            if 0 <= at < BINS:
                marks[at] = ("m", "output" if low <= case.truth <= high else "wrong")
            return marks

        named = [(say("yours, {n}", n=n), each) for n, each in enumerate(found, 1)]
        named += [(say("necessary width, {n}", n=n), right) for n, (_, right) in
                  enumerate(wanted[:2], 1)]  # fmt: skip
        title = say("your intervals; m: the true median; a cross: it is outside of the interval")
        text = [title, f"  m: {case.truth:.3f}"]
        text += [f"  {name}: {'' if low <= case.truth <= high else '×'}{low:.3f} – {high:.3f}"
                 for name, (low, high) in named]  # fmt: skip
        rows = [(name, line(*each)) for name, each in named]
        return drawn("course_cells", title, "\n".join(text), rows, [])


# ---- which calls compile ------------------------------------------------------------------------


def compiling_of(series: Series) -> list[int]:
    """The calls in which TorchDynamo asks its backend for code."""
    found: list[int] = []
    place = 0

    def backend(module: torch.fx.GraphModule, inputs: Any) -> Any:
        found.append(place)
        return module.forward

    torch.compiler.reset()
    fast = torch.compile(scale, backend=backend)
    for place, x in enumerate(series.inputs):
        if series.again:
            fast = torch.compile(scale, backend=backend)
        off = series.gradient and not series.gradient[place]
        with torch.no_grad() if off else nullcontext():
            fast(x)
    torch.compiler.reset()
    return found


@exercise("11.6", "Which calls compile?", "哪些调用在编译", points=2, limit=90.0)
class Compiling(Exercise):
    """`compiling()`: for each loop the numbers of the calls that compile."""

    def cases(self, draw: random.Random) -> Iterator[Series]:
        return iter(LOOPS)

    def described(self, case: Series) -> str:
        return case.name

    def judge(self, solution: Any, case: Series) -> str | None:
        found = solution()
        if not isinstance(found, dict):
            return expected(dict, found)
        listed = found.get(case.name)
        if not isinstance(listed, (list, tuple, set)):
            return say("there is no list for {n}", n=case.name)
        right = compiling_of(case)
        missed, extra = set(right) - set(listed), set(listed) - set(right)
        if missed:
            return say("a call that compiles is not in your list")  # fmt: skip
        if not extra:
            return None
        return say("call {n} reuses existing code", n=min(extra, key=str))  # fmt: skip

    def picture(self, solution: Any, case: Series) -> Picture:
        """The calls, and which of them the solution lists; not which one is missing."""
        listed, right = set(solution()[case.name]), set(compiling_of(case))
        calls: list[Cell] = [(each, "other") for each in case.calls()]
        mine: list[Cell] = [
            (str(n) if n in listed else "", "wrong" if n in listed - right else
             "output" if n in listed else "box") for n in range(len(calls))
        ]  # fmt: skip
        rows: list[Row] = [(say("call"), calls), (say("you"), mine)]
        if missed := len(right - listed):
            rows.append((say("not in your list"), [("?", "wrong")] * missed))
        return cells(say("calls that compile by your answer"), rows)


# ---- does it pay --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Deal:
    """Milliseconds: to compile, and of a call before and after."""

    compile: int
    before: int
    after: int

    def __str__(self) -> str:
        return f"pays_after({self.compile}, {self.before}, {self.after})"


@exercise("11.7", "Does compilation save time?", "编译节省时间吗", points=1)
class Pays(Exercise):
    """`pays_after(compile, before, after)`: after how many calls compiling has saved time.

    None if there is no such number.
    """

    def cases(self, draw: random.Random) -> Iterator[Deal]:
        for n in range(120):
            yield Deal(draw.randint(0, 3 + n), draw.randint(1, 5 + n // 8), draw.randint(1, 8))

    def smaller(self, case: Deal) -> Iterable[Deal]:
        for name in ("compile", "before", "after"):
            value = getattr(case, name)
            if value > (name != "compile"):
                yield replace(case, **{name: value - 1})

    def judge(self, solution: Any, case: Deal) -> str | None:
        found = solution(case.compile, case.before, case.after)
        gain = case.before - case.after
        right = case.compile // gain + 1 if gain > 0 else None
        if (wrong := expected((int, NoneType), found)) or found == right:
            return wrong
        if found is None or right is None:
            return say("it is {r}; your answer: {f}", r=right, f=found)
        return say(
            "after {r} calls: {a} ms compared with {b} ms; your answer: {f}",
            r=right, f=found, a=case.compile + right * case.after, b=right * case.before,
        )  # fmt: skip

    def picture(self, solution: Any, case: Deal) -> Picture:
        """Both ways on one scale, after as many calls as are right and as the solution says."""
        found, gain = solution(case.compile, case.before, case.after), case.before - case.after
        right = case.compile // gain + 1 if gain > 0 else None
        rows = [
            row for calls in dict.fromkeys(n for n in (right, found) if n is not None)
            for row in ((f"{calls} × before", calls * case.before),
                        (f"compile + {calls} × after", case.compile + calls * case.after))
        ]  # fmt: skip
        return numbers(say("milliseconds in total"), rows, " ms")
