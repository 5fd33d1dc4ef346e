"""Lab 8: programs whose bytes are predicted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inductor_lab.compiler.torch_door.torch_types import torch


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
