"""Remainders and floor quotients of floats are bitwise equal to eager mode."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab

COUNT = 50_000


def divisions(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return a // b, a % b, torch.fmod(a, b)


def operands(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Quotients that are integers, or almost; of every size; of special numbers."""
    generator = torch.Generator().manual_seed(0)
    number = torch.finfo(dtype)
    normal = torch.randn(COUNT, generator=generator, dtype=torch.float64)
    power = torch.randint(-30, 30, (COUNT,), generator=generator)
    divisor = (torch.rand(COUNT, generator=generator) + 0.1).to(dtype)
    whole = torch.randint(-300_000, 300_000, (COUNT,), generator=generator).to(dtype) * divisor
    above, below = (torch.nextafter(whole, torch.full_like(whole, end)) for end in (1e30, -1e30))
    # no numbers so large or small that a quotient overflows: eager fmod fails there
    special = [0.0, -0.0, 1.0, -3.0, 0.1, 131072.0, 2.0**24, 2.0**31, number.eps,
               torch.inf, -torch.inf, torch.nan]  # fmt: skip
    pairs = torch.cartesian_prod(*[torch.tensor(special, dtype=dtype)] * 2).unbind(1)
    first = (pairs[0], whole, above, below, (normal * 2.0**power).to(dtype))
    second = (pairs[1], divisor, divisor, -divisor, normal.flip(0).to(dtype))
    return torch.cat(first), torch.cat(second)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_divisions_agree_with_eager_mode(dtype: torch.dtype) -> None:
    a, b = operands(dtype)
    torch.compiler.reset()
    word = torch.int32 if dtype is torch.float32 else torch.int64
    for got, expected in zip(lab.compile(divisions)(a, b), divisions(a, b), strict=True):
        same = (got.view(word) == expected.view(word)) | (got.isnan() & expected.isnan())
        assert same.all(), (a[~same], b[~same], got[~same], expected[~same])
