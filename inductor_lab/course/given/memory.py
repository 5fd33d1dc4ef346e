"""Lab 8: programs whose bytes are predicted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import inductor_lab as lab
from inductor_lab.compiler.schedule.schedule import Schedule
from inductor_lab.compiler.torch_door.torch_types import INSTALLED, torch
from inductor_lab.course.given.saved_programs import saved_program


def wave(x: torch.Tensor) -> torch.Tensor:
    return ((x + 1) * 2).sin()


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def rows(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1)


def with_row(x: torch.Tensor) -> torch.Tensor:
    return x * x[0] + x.T


def two(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x.relu()
    return y, y.amax(0)


BYTES: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (wave, softmax, rows, with_row, two)
}
"""Programs of a float32 matrix of 1,000 x 1,000."""


def schedule_of(name: str) -> Schedule:
    """The schedule of one of these programs; of a saved one where torch is missing."""
    if INSTALLED:
        found = lab.inspect(BYTES[name], torch.randn(1000, 1000))
    else:
        found = saved_program("memory", name)
    schedule: Schedule = found.graphs[0].forward.schedule
    return schedule
