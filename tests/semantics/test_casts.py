"""Conversions of floats to integers, at the bounds of each integer dtype and beyond them.

C++ defines no result if the integer cannot hold the float.  Our result is that of eager mode on
x86: through int32 or int64, so that it wraps around.  For uint32 eager's vector loop and its loop
over single elements differ; we use the latter.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

import inductor_lab as lab

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (
    torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64,
    torch.uint64,
)  # fmt: skip
BEYOND = (3e9, -3e9, 1e19, -1e19, 1e30, -1e30, math.inf, -math.inf, math.nan, 300.7, -300.7)


def values(dtype: torch.dtype) -> torch.Tensor:
    """Zeros, fractions, and neighbours of all bounds, of both signs."""
    found = [0.0, 0.5, 0.99, 1.5, 200.0, 40000.0, *BEYOND]
    for bits in (7, 8, 15, 16, 31, 32, 63, 64):
        bound = 2.0**bits
        near = (math.nextafter(bound, side) for side in (0, math.inf))
        found += [bound, *near, bound + 0.5, bound - 0.5, bound + 1, bound - 1, bound * 1.5]
    positive = torch.tensor(found, dtype=torch.float64)
    return torch.cat([positive, -positive]).to(dtype)


def eager(x: torch.Tensor, target: torch.dtype) -> torch.Tensor:
    through = torch.int64 if target is torch.uint32 else target
    return x.to(through).to(target)


def to_all(x: torch.Tensor) -> list[torch.Tensor]:
    return [x.to(target) for target in INTEGERS]


def check(found: list[torch.Tensor], x: torch.Tensor, how: str = "") -> None:
    """`folded` constants of uint32 may have the result of either of eager's loops."""
    for ours, target in zip(found, INTEGERS, strict=True):
        expected = x.to(target) if how == "folded" else eager(x, target)
        rows = zip(
            x.tolist(), ours.tolist(), expected.tolist(), eager(x, target).tolist(), strict=True
        )
        assert not [row for row in rows if row[1] not in row[2:]], target


RUNS: dict[str, Callable[[torch.Tensor], list[torch.Tensor]]] = {
    "vector loops": lambda x: lab.compile(to_all)(x),
    "scalar loops": lambda x: lab.compile(to_all, options={"passes_off": "all"})(x),
    "interpreter": lambda x: list(lab.inspect(to_all, x).graphs[0].forward.loops.run(x)),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_a_cast_at_the_bounds(source: torch.dtype, run: str) -> None:
    x = values(source)
    check(RUNS[run](x), x)


@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_a_constant_beyond_the_bounds(source: torch.dtype) -> None:
    """A C++ compiler that converts the constant at compile time would use the nearest integer."""
    numbers = [v for v in BEYOND if source is not torch.float16 or not 65504 < abs(v) < math.inf]
    x = torch.ones(40, dtype=source)

    for number in numbers:

        def chosen(x: torch.Tensor, number: float = number) -> list[torch.Tensor]:
            return to_all(torch.where(x > 0, number, x))

        def full(x: torch.Tensor, number: float = number) -> list[torch.Tensor]:
            return to_all(torch.full((5000,), number, dtype=x.dtype))

        for function in (chosen, full):
            found = lab.compile(function)(x)
            check(found, torch.full((found[0].numel(),), number, dtype=source), "folded")


@pytest.mark.parametrize("target", [torch.int64, torch.int32, torch.uint8], ids=str)
def test_infinities_become_bounds(target: torch.dtype) -> None:
    limits = torch.iinfo(target)

    def function(x: torch.Tensor) -> torch.Tensor:
        return x.nan_to_num(nan=0, posinf=limits.max, neginf=limits.min).to(target)

    x = torch.tensor([math.inf, -math.inf, math.nan, 1.5] * 5)
    assert torch.equal(lab.compile(function)(x), function(x))


@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_copies_and_concatenations(target: torch.dtype) -> None:
    def copied(x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(x.shape, dtype=target).copy_(x * 1)

    def written(x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros(x.shape[0] + 3, dtype=target)
        y[3:] = x * 1
        return y[3:]

    def joined(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x[:7], x[7:] * 1]).to(target)

    x = values(torch.float32)
    for function in (copied, written, joined):
        assert lab.compile(function)(x).tolist() == eager(x, target).tolist()
