"""What the checks of all steps share: hidden programs, and the answers of a student's process."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from inductor_lab.course.capstone.programs import (
    POINTWISE,
    PRODUCTS,
    REDUCTIONS,
    SMALL,
    VIEWS,
    Kinds,
    Program,
    Sizes,
    each_line,
    series,
)
from inductor_lab.course.capstone.repository import Step
from inductor_lab.course.capstone.values import difference, illegal
from inductor_lab.course.exercise import Exercise
from inductor_lab.course.language import say
from inductor_lab.course.lines import line_in
from inductor_lab.debug.untrusted.remote import Process, Raised, Stopped
from inductor_lab.mini import decompose, fuse, loops, lower

ALL = (POINTWISE, REDUCTIONS, VIEWS, PRODUCTS)


class Judge(Exercise):
    """The check of one step.  `start` begins a process without any of the student's Python."""

    kinds: ClassVar[Kinds] = ALL
    counts: ClassVar[str] = "2 2 3 3 4 5 6 7"
    sizes: ClassVar[Sizes] = SMALL
    before: ClassVar[str | None] = ""
    """First each line of `kinds` is tried alone, after this line; None: it is not."""

    def __init__(self, step: Step, start: Callable[[], Process]) -> None:
        self.step, self.start = step, start
        self.figures: dict[str, list[int]] = {}

    def cases(self, draw: random.Random) -> Iterator[Program]:
        if self.before is not None:
            yield from each_line(draw, self.kinds, self.before, self.sizes)
        yield from series(draw, self.kinds, self.counts, self.sizes)

    def smaller(self, case: Program) -> Iterable[Program]:
        return case.smaller()

    def described(self, case: Any) -> str:
        return str(getattr(case, "described", case))

    def count(self, unit: str, mine: int, reference: int) -> None:
        """A figure for the score, and that of the small compiler."""
        pair = self.figures.setdefault(unit, [0, 0])
        pair[:] = pair[0] + mine, pair[1] + reference

    def scored(self) -> str:
        texts = (say("{unit}: {a:,}; inductor_lab.mini: {b:,}", unit=say(unit), a=a, b=b)
                 for unit, (a, b) in self.figures.items())  # fmt: skip
        return "\n".join(texts)

    def _tried(self, solution: Any, case: Any) -> str | None:
        try:
            return self.judge(solution, case)
        except (Stopped, NotImplementedError):
            raise
        except Raised as raised:
            if "NotImplementedError" in raised.mro:
                raise NotImplementedError from None
            place = solution.process.scratch / "my" / f"{self.step.file}.py"
            return say("it raised {e}{w}", e=raised, w=line_in(raised.frames, str(place)))
        except Exception as error:  # of data that no value can be made of
            e = f"{type(error).__name__}: {error}"
            return say("the check cannot use your answer: {e}", e=e)


def lowered(case: Program) -> loops.Program:
    return lower.Lowering(case.traced(decompose.table())).program()


def fused(case: Program) -> loops.Program:
    return fuse.substitute(lowered(case))[0]


def scheduled(case: Program) -> fuse.Schedule:
    return fuse.group(fused(case))


def wrong_program(program: Any, case: Program) -> str | None:
    """A sentence if the program is illegal, or computes something else than eager mode."""
    return illegal(program, case.inputs()) \
        or difference(program.run(*case.inputs()), case.results())  # fmt: skip
