"""float16 and bfloat16 have the bits of eager mode if eager mode converts operands or rounds
steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import inductor_lab as lab

LOW = (torch.bfloat16, torch.float16)
SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 3.0]

QUOTIENTS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "div": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "//": lambda x, y: x // y,
    "by a number": lambda x, y: x // 0.3,
    "of a number": lambda x, y: 7.3 // y,
    "by a scalar": lambda x, y: x // y[20],
    "of a scalar": lambda x, y: x[20] // y,
    "truncated": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
}


def differing(found: torch.Tensor, expected: torch.Tensor) -> int:
    """The number of elements with other bits; all NaN are equal."""
    assert found.dtype == expected.dtype
    same = (found.view(torch.int16) == expected.view(torch.int16)) | (
        found.isnan() & expected.isnan()
    )
    return int((~same).sum())


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_floor_division_rounds_each_step(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, y = (torch.randn(5000) * 30).to(dtype), torch.randn(5000).to(dtype)
    x[100:164] = torch.tensor(SPECIAL).repeat(8)
    y[100:164] = torch.tensor(SPECIAL).repeat_interleave(8)
    x[200:300], y[200:300] = x[200:300].round(), y[200:300].round()
    compiled = lab.compile(lambda x, y: tuple(f(x, y) for f in QUOTIENTS.values()))
    for name, found in zip(QUOTIENTS, compiled(x, y), strict=True):
        assert differing(found, QUOTIENTS[name](x, y)) == 0, name


OPERATORS: dict[str, Callable[[Any, Any], torch.Tensor]] = {
    "add": lambda x, s: x + s,
    "rsub": lambda x, s: s - x,
    "mul": lambda x, s: x * s,
    "rmul": lambda x, s: s * x,
    "div": lambda x, s: x / s,
    "rdiv": lambda x, s: s / x,
    "remainder": lambda x, s: x % s,
    "fmod": torch.fmod,
    "atan2": torch.atan2,
    "hypot": torch.hypot,
    "maximum": torch.maximum,
}


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize(
    "wide",
    [
        torch.tensor(0.3),
        torch.tensor(1.7, dtype=torch.float64),
        torch.tensor([2049]),
        torch.arange(1, 1001) * 4 + 1,
    ],
    ids=["float32", "float64", "one integer", "integers"],
)
def test_wider_operands_are_rounded_first(wide: torch.Tensor, dtype: torch.dtype) -> None:
    """Except for a second factor and a one-element divisor."""
    torch.manual_seed(0)
    x = (torch.randn(1000) * 3).to(dtype)
    compiled = lab.compile(lambda x, s: tuple(f(x, s) for f in OPERATORS.values()))
    for name, found in zip(OPERATORS, compiled(x, wide), strict=True):
        assert differing(found, OPERATORS[name](x, wide)) == 0, name


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_roots_of_negative_zero_and_infinity(exponent: float, dtype: torch.dtype) -> None:
    x = torch.tensor(SPECIAL * 6).to(dtype)
    found = lab.compile(lambda x: x**exponent)(x)
    assert differing(found, x**exponent) == 0


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("size", [0.3, 0.5, 1.1])
def test_soft_shrinkage_rounds_once(size: float, dtype: torch.dtype) -> None:
    """torch's definition rounds each step.  At zero (sign) and NaN (gradient), eager's vector loop
    and its loop over the remaining elements differ."""
    torch.manual_seed(0)
    x = torch.cat([torch.randn(1000), torch.tensor(SPECIAL * 6)]).to(dtype).requires_grad_()

    def shrunk(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.softshrink(x, lambd=size)

    found, expected = lab.compile(shrunk)(x), shrunk(x)
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    weight = torch.randn(x.shape).to(dtype)
    ((ours,), (theirs,)) = (torch.autograd.grad(y, x, weight) for y in (found, expected))
    known = ~x.isnan() & (x.abs() != torch.tensor(size).to(dtype))  # which its gradient rounds
    assert differing(ours[known], theirs[known]) == 0
