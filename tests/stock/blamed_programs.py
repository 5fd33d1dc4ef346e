"""Programs that stock torch 2.13 gets wrong on a CPU, after public reports, and the stage of each.

A torch version in which a program is right reports no fault.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Blamed:
    """`stage` is the stage that blame has to name, `words` a text of its fault.

    report   an issue of pytorch/pytorch, or a bug of rq4 in
             maybeLee/Torch-Compile-Correctness-Bug-Study
    """

    report: str
    call: Callable[..., Any]
    inputs: Callable[[], tuple[Any, ...]]
    stage: str
    words: str
    verdict: str = "wrong"
    names_line: bool = True


SPECIAL = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0, 6.0, 0.3]


def _special() -> tuple[torch.Tensor, torch.Tensor]:
    values = torch.tensor(SPECIAL)
    return values.repeat(8), values.repeat_interleave(8)


def _random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def floor_of_quotient(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.floor_divide(x, y)


def floor_of_constant_quotient(x: torch.Tensor) -> torch.Tensor:
    return torch.div(x, torch.full_like(x, 0.5), rounding_mode="floor")


def columns_of_tiles(x: torch.Tensor) -> torch.Tensor:
    tiled = x.repeat(4, 2)
    return tiled[:, ::2].as_strided((4, 2), tiled.stride())


def angle_of_zero(x: torch.Tensor) -> torch.Tensor:
    x[0] = complex(-0.0, 0.0)
    return x.angle()


def angle_of_negative_zero(x: torch.Tensor) -> torch.Tensor:
    return torch.atan2(-x.abs() * 0, x)


def pool_with_ceil_mode(x: torch.Tensor) -> torch.Tensor:
    return F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True)


def put_into_expanded(x: torch.Tensor) -> torch.Tensor:
    first = x[:1]
    chosen = torch.tensor([True, False, True])
    first.expand(3).index_put_((chosen,), torch.tensor([7.0, 7.0]))
    return x * 2


def zero_expanded(x: torch.Tensor) -> torch.Tensor:
    x.expand(2, -1).zero_()
    return x + 1


def largest_of_two_layouts(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (y - x).argmax()


def resize_by_a_scale(x: torch.Tensor) -> torch.Tensor:
    return F.interpolate(x, scale_factor=1.3, mode="nearest")


def resize_of_overlap(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.resize(x.as_strided((3, 3), (1, 1)), [2, 2])


def windows_of_overlap(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    view = x.as_strided((3, 3), (1, 1))
    return torch.ops.aten.resize(view, [2, 2]), view.unfold(1, 2, 1).sum(-1)


class CountsCalls(nn.Module):
    """Fills a parameter by `.data`, and counts its calls in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(0.5))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.weight.data.fill_(0.25)
        self.calls += 1
        return torch.pow(x + 0, 1)


def wrapped_compiled() -> Callable[[torch.Tensor], torch.Tensor]:
    inner = torch.compile(lambda x: x + 1)

    @functools.wraps(inner)
    def outer(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = inner(x) * 10
        return result

    return outer


FOLDING = "joint_graph_passes: constant_fold_uniform_value"
PROGRAMS = {
    "floor_of_quotient": Blamed(
        "pytorch 177740", floor_of_quotient, _special, "kernel", "floor_divide"
    ),
    "floor_of_constant_quotient": Blamed(
        "bug9", floor_of_constant_quotient, lambda: _special()[:1], "kernel", "div"
    ),
    "columns_of_tiles": Blamed(
        "pytorch 197431", columns_of_tiles, lambda: (_random(1, 1),), "host program",
        "past the end",
    ),
    "angle_of_zero": Blamed(
        "pytorch 197586", angle_of_zero, lambda: (torch.tensor([1 - 1j, 2 + 3j]),),
        "host program", "torch.ops.aten.full.default",
    ),
    "angle_of_negative_zero": Blamed(
        "pytorch 148241", angle_of_negative_zero, lambda: (_random(7),), FOLDING, "sign of zero"
    ),
    "pool_with_ceil_mode": Blamed(
        "pytorch 100987", pool_with_ceil_mode, lambda: (_random(1, 2, 6, 7).requires_grad_(),),
        "kernel", "avg_pool2d_backward",
    ),
    "put_into_expanded": Blamed(
        "bug8", put_into_expanded, lambda: (_random(5),), "joint", "index_put_"
    ),
    "zero_expanded": Blamed(
        "pytorch 197448", zero_expanded, lambda: (_random(4),), "joint", "zero_"
    ),
    "largest_of_two_layouts": Blamed(
        "pytorch 178964", largest_of_two_layouts,
        lambda: (_random(5, 9).t(), _random(9, 5, seed=2)), "kernel", "argmax",
    ),
    "resize_by_a_scale": Blamed(
        "pytorch 175154", resize_by_a_scale,
        lambda: (torch.arange(12.0, dtype=torch.float64).reshape(1, 2, 2, 3),), "joint",
        "interpolate",
    ),
    "resize_of_overlap": Blamed(
        "pytorch 175919", resize_of_overlap, lambda: (torch.arange(9.0),), "kernel", "resize"
    ),
    "windows_of_overlap": Blamed(
        "pytorch 175919", windows_of_overlap, lambda: (torch.arange(9.0),), "compile", "unfold",
        verdict="raises",
    ),
    "counts_calls": Blamed(
        "pytorch 197738", CountsCalls(), lambda: (_random(4),), "joint", "torch.pow"
    ),
    "wrapped_compiled": Blamed(
        "pytorch 172732", wrapped_compiled(), lambda: (torch.ones(2),), "compile",
        "compile_wrapper", verdict="raises", names_line=False,
    ),
}  # fmt: skip
