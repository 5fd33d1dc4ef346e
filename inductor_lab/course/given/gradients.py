"""Lab 3: programs that train, and their partition by a student."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import inductor_lab as lab
from inductor_lab.api.compilation import Compilation
from inductor_lab.compiler.autograd.graphs import Partition
from inductor_lab.compiler.torch_door.torch_types import INSTALLED, torch
from inductor_lab.course.given.saved_programs import saved_program

Program: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


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
    """The real partition of one of the four, by ours or by a student's partitioner.

    Where torch is missing, ours is a saved one, and a student's raises NeedsTorch.
    """
    if INSTALLED or partitioner is not None:
        found = compiled(function, partitioner, (64, 32))
    else:
        found = saved_program("gradients", function.__name__)
    partition = found.graphs[0].partition
    assert partition is not None, "they train"
    return partition


def compiled(
    function: Callable[..., Any], partitioner: Callable[..., Any] | None, sizes: tuple[int, int]
) -> Compilation:
    """One of the programs of lab 3, compiled with a partitioner or with ours."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(sizes, generator=draw)
    w = torch.randn(sizes[::-1], generator=draw).requires_grad_()
    with lab.override(**({} if partitioner is None else {"partition": partitioner})):
        found: Compilation = lab.inspect(function, x, w)
    return found
