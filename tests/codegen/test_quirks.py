"""What C++ compilers get wrong: texts that keep them from it."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

import inductor_lab as lab


def below(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.cat([a * 2, b.exp()], 0).relu()


def gradient(rows: int, turns: int, off: str | tuple[str, ...]) -> tuple[torch.Tensor, str]:
    """Of the upper part, and the kernel that computes it."""
    torch.manual_seed(0)
    a = torch.randn(rows, turns, requires_grad=True)
    c = lab.inspect(below, a, torch.randn(2, turns), options={"passes_off": off})
    c.result.backward(torch.ones(rows + 2, turns))
    return a, str(c.graphs[0].backward.kernels[-1])


@pytest.mark.parametrize("turns", [3, 5, 6, 7, 9, 12])
@pytest.mark.parametrize("rows", [4, 16, 100])
def test_each_turn_has_a_condition_of_its_own(rows: int, turns: int) -> None:
    """GCC 12 takes the first turn's condition for all, where it makes one vector of short rows."""
    a, _ = gradient(rows, turns, "all")
    assert_close(a.grad, torch.where(a > 0, 2.0, 0.0))


def test_only_short_loops_of_odd_length_that_choose_are_kept_whole() -> None:
    assert "unroll 1" in gradient(40, 5, "all")[1]
    assert "unroll 1" not in gradient(40, 8, "all")[1]
    assert "unroll 1" not in gradient(40, 50, "all")[1]
    assert "unroll 1" not in gradient(40, 5, ())[1]
