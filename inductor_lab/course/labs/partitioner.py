"""Lab 3, the last exercise: a student's partitioner in the real pipeline."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from inductor_lab.course.exercise import Exercise, exercise
from inductor_lab.course.given.gradients import FOUR, partition_of
from inductor_lab.course.given.recompute import traded
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Picture

PRODUCTS = ("mm.default", "bmm.default", "addmm.default")


@exercise(
    "3.5", "Your partitioner in the compiler", "把你的划分器装进编译器", points=4, limit=180.0
)
class Partitioner(Exercise):
    """`partition(values)`: names to save; no matrix product runs twice, few bytes are saved."""

    def cases(self, draw: random.Random) -> Iterator[Any]:
        return iter(FOUR)

    def described(self, case: Any) -> str:
        ours = partition_of(case)
        return say(
            "{name}: ours saves {a:,} bytes for the backward and recomputes {n} values; eager "
            "saves {b:,}",
            name=case.__name__, a=ours.cut_bytes, n=len(ours.recomputed), b=ours.bytes_if_all_saved,
        )  # fmt: skip

    def judge(self, solution: Any, case: Any) -> str | None:
        if not callable(solution):
            return say("pass the function or class itself, and do not call it")
        ours, mine = partition_of(case), partition_of(case, solution)
        again = [r.name for r in mine.recomputed if r.op.endswith(PRODUCTS)]
        if again:
            return say(
                "{n} is a matrix product, and the backward recomputes it",
                n=again[0],
            )
        if mine.cut_bytes <= ours.cut_bytes:
            return None
        return say(
            "legal, but it saves {a:,} bytes for the backward; ours saves {b:,}",
            a=mine.cut_bytes, b=ours.cut_bytes,
        )  # fmt: skip

    def picture(self, solution: Any, case: Any) -> Picture:
        """The bytes, and the time of a training step for them, measured interleaved."""
        return traded(solution, [case], seconds=0.5).picture()
