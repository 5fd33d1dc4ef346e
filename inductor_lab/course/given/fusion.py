"""Lab 5: six programs, and the compiler's verdict about a schedule of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import inductor_lab as lab
from inductor_lab.compiler.base.errors import Refused
from inductor_lab.compiler.base.options import FusionOptions
from inductor_lab.compiler.ir.program import LoopProgram
from inductor_lab.compiler.schedule.passes import schedule_program
from inductor_lab.compiler.schedule.user_schedule import schedule_from_groups
from inductor_lab.compiler.torch_door.torch_types import INSTALLED, torch
from inductor_lab.course.given.saved_programs import saved_program
from inductor_lab.course.language import say
from inductor_lab.notebook.columns import padded


def waves(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return ((x + 1) * 2).sin()


def attend(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ w, -1)


def normed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred * (centred.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt()


def crossed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x.exp().sum(0) + x.sum(1).max()


def twins(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.relu() * 2, x.sigmoid() + 1


def gated(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x @ w
    return torch.nn.functional.silu(y) * (y + 1) - y.amax(-1, keepdim=True)


SIX = (waves, attend, normed, crossed, twins, gated)
"""Programs that schedulers are compared on, each of x [64, 32] and w [32, 64]."""


def program_of(function: Callable[..., Any]) -> LoopProgram:
    """The loop program of one of the six; a saved one where torch is missing."""
    if INSTALLED:
        found = lab.inspect(function, *inputs_of_six())
    else:
        found = saved_program("fusion", function.__name__)
    program: LoopProgram = found.graphs[0].forward.loops
    return program


def refused(program: LoopProgram, groups: Iterable[Iterable[str]]) -> str | None:
    """Why the real compiler refuses these groups; None if they are a legal schedule."""
    try:
        schedule_from_groups(lambda _: groups, program, FusionOptions())
    except Refused as reason:
        return str(reason)
    return None


def inputs_of_six() -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(64, 32, generator=draw), torch.randn(32, 64, generator=draw)


@dataclass(frozen=True)
class Scored:
    """The student's schedule compared with ours: kernels and bytes, by program."""

    rows: tuple[tuple[str, int, int, int, int], ...]

    def __str__(self) -> str:
        heads = say("program kernels ours bytes ours").split()
        lines = (map(str, row) for row in (heads, *self.rows))
        return "\n".join("".join(padded(cell, 10, right=True) for cell in row) for row in lines)

    __repr__ = __str__


def compared(scheduler: Callable[[LoopProgram], Any]) -> Scored:
    """A scheduler and ours on the six programs; raises Refused for a schedule that is not legal."""
    rows = []
    for function in SIX:
        program = program_of(function)
        ours = schedule_program(program, FusionOptions()).after
        mine = schedule_from_groups(scheduler, program, FusionOptions()).after
        rows.append((function.__name__, mine.kernels, ours.kernels, mine.bytes, ours.bytes))
    return Scored(tuple(rows))
