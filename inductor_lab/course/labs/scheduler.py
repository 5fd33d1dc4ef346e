"""Lab 5, the last exercise: a student's scheduler in the real pipeline."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy

import inductor_lab as lab
from inductor_lab.compiler.base.options import FusionOptions
from inductor_lab.compiler.schedule.passes import schedule_program
from inductor_lab.compiler.schedule.schedule import Cost
from inductor_lab.compiler.schedule.user_schedule import schedule_from_groups
from inductor_lab.compiler.torch_door.torch_types import INSTALLED, torch
from inductor_lab.course.exercise import Exercise, exercise
from inductor_lab.course.given.fusion import SIX, inputs_of_six, program_of
from inductor_lab.course.interpret_numpy import inputs_for, program_with_numpy, schedule_with_numpy
from inductor_lab.course.labs.wrong_values import amounts
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Picture

SLACK = 1.1
"""A scheduler may move so many times the bytes that ours moves."""


def more_bytes(mine: Cost, ours: Cost) -> str | None:
    """A sentence if a schedule moves clearly more bytes than ours."""
    if mine.bytes <= SLACK * ours.bytes:
        return None
    return say(
        "legal and right, but it moves {a:,} bytes in {k} kernels; ours moves {b:,} in {n}",
        a=mine.bytes, b=ours.bytes, k=mine.kernels, n=ours.kernels,
    )  # fmt: skip


@exercise("5.5", "Your scheduler in the compiler", "把你的调度器装进编译器", points=4, limit=120.0)
class Scheduler(Exercise):
    """`schedule(program)`: groups of buffers; right, and about as few bytes as ours, on all six.

    Without torch, the programs are saved ones, and NumPy interprets the schedules.
    """

    def cases(self, draw: random.Random) -> Iterator[Any]:
        return iter(SIX)

    def described(self, case: Any) -> str:
        _, _, steps = str(program_of(case)).partition("\n")
        return f"{case.__name__}:\n{steps}"

    def judge(self, solution: Any, case: Any) -> str | None:
        mine, ours = _compiled(solution, case) if INSTALLED else _interpreted(solution, case)
        return more_bytes(mine, ours)

    def picture(self, solution: Any, case: Any) -> Picture:
        program = program_of(case)
        ours = schedule_program(program, FusionOptions()).after
        mine = schedule_from_groups(solution, program, FusionOptions()).after
        moved = [("", int(ours.bytes), int(mine.bytes))]
        return amounts(say("bytes moved"), say("inductor_lab"), moved)


def _compiled(solution: Any, function: Any) -> tuple[Cost, Cost]:
    """The costs of a scheduler and of ours, both in the compiler; its results are compared."""
    inputs = inputs_of_six()
    ours = lab.inspect(function, *inputs).graphs[0].forward.schedule
    with lab.override(schedule=solution):
        found = lab.inspect(function, *inputs)
    torch.testing.assert_close(found.result, function(*inputs))
    return found.graphs[0].forward.schedule.after, ours.after


def _interpreted(solution: Any, function: Any) -> tuple[Cost, Cost]:
    """The costs of a scheduler and of ours for a saved program; the results of its groups are
    compared with those of the program."""
    program = program_of(function)
    ours = schedule_program(program, FusionOptions())
    mine = schedule_from_groups(solution, program, FusionOptions())
    inputs = inputs_for(program)
    for found, wanted in zip(
        schedule_with_numpy(mine, inputs), program_with_numpy(program, inputs), strict=True
    ):
        numpy.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    return mine.after, ours.after
