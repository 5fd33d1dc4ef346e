"""Lab 3, the last exercise where torch is missing: the forward's values are saved ones.

`partitioner.py` has the exercise with the compiler.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from inductor_lab.compiler.autograd.forward_value import ForwardValue
from inductor_lab.compiler.torch_door.torch_types import INSTALLED
from inductor_lab.course.exercise import Exercise, exercise, expected
from inductor_lab.course.given.gradients import FOUR, partition_of
from inductor_lab.course.given.saved_programs import saved_values
from inductor_lab.course.labs.gradients import missing_from
from inductor_lab.course.labs.wrong_values import amounts
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Picture

PRODUCTS = ("mm.default", "bmm.default", "addmm.default")


class SavedPartitioner(Exercise):
    """`partition(values)`: names to save; no matrix product runs twice, few bytes are saved."""

    def cases(self, draw: random.Random) -> Iterator[Any]:
        return iter(FOUR)

    def described(self, case: Any) -> str:
        return str(case.__name__)

    def judge(self, solution: Any, case: Any) -> str | None:
        values = saved_values(case.__name__)
        found = solution(values)
        wrong = expected((set, list, tuple, frozenset), found)
        if wrong:
            return wrong
        names = {value.name for value in values}
        if unknown := sorted(set(found) - names):
            return say("{u}: no such value", u=", ".join(unknown))
        missing = missing_from(values, found)
        if missing:
            return say(
                "saving {s} is not enough: {m} cannot be computed",
                s=", ".join(found) or "nothing", m=missing,
            )  # fmt: skip
        again = [v.name for v in recomputed(values, set(found)) if v.op.endswith(PRODUCTS)]
        if again:
            return say("{n} is a matrix product, and the backward recomputes it", n=again[0])
        mine, ours = _bytes(values, found), partition_of(case).cut_bytes
        if mine <= ours:
            return None
        return say(
            "legal, but it saves {a:,} bytes for the backward; ours saves {b:,}", a=mine, b=ours
        )

    def picture(self, solution: Any, case: Any) -> Picture:
        values = saved_values(case.__name__)
        saved = [("", int(partition_of(case).cut_bytes), _bytes(values, solution(values)))]
        return amounts(say("bytes saved for the backward"), say("inductor_lab"), saved)


def recomputed(values: Sequence[ForwardValue], saved: set[str]) -> list[ForwardValue]:
    """The values that the backward computes again if only `saved` and the inputs are there."""
    known = {value.name: value for value in values}
    waiting = [value.name for value in values if value.needed]
    found: dict[str, ForwardValue] = {}
    while waiting:
        value = known[waiting.pop()]
        if value.name not in saved and value.name not in found and not value.is_input:
            found[value.name] = value
            waiting += [name for name in value.inputs if name in known]
    return list(found.values())


def _bytes(values: Sequence[ForwardValue], saved: Any) -> int:
    kept = set(saved)
    return sum(v.nbytes for v in values if v.name in kept and not v.is_input)


if not INSTALLED:  # the docs import this module where the other exercise has the name
    exercise("3.5", "Your partitioner in the compiler", "把你的划分器装进编译器", points=4,
             limit=180.0)(SavedPartitioner)  # fmt: skip
