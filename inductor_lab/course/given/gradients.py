"""Lab 3: programs that train, and their partition by a student."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from inductor_lab.compiler.autograd.graphs import Partition
from inductor_lab.course.given.recompute import compiled


def dropped(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.dropout(torch.softmax(x @ w, -1), 0.5).sum()


def waves(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (w.sin().exp().cos() * w).sum()


def hidden(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x @ w).pow(2).sum()


def normed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = x @ w
    return (torch.nn.functional.layer_norm(h, h.shape[-1:]).tanh() * 2).exp().mean()


FOUR = (dropped, waves, hidden, normed)
"""Programs that partitioners are compared on; each takes x [64, 32] and w [32, 64], the trained."""


TIMED = (waves, hidden)
"""Those whose training steps are timed: one that recomputes a chain, and one with a product."""


def partition_of(
    function: Callable[..., Any], partitioner: Callable[..., Any] | None = None
) -> Partition:
    """The real partition of one of the four, by ours or by a student's partitioner."""
    found = compiled(function, partitioner, (64, 32)).graphs[0].partition
    assert found is not None, "they train"
    return found
