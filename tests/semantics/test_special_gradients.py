"""Gradients of activations and losses at NaN, infinities, zeros and kinks, as in eager mode."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab

POINTS = (
    math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 6.0, -6.0, 0.5, -0.5, 2.0, -2.0,
    1e-40, -1e-40, 20.0, -20.0,
)  # fmt: skip
ACTIVATIONS: dict[str, Callable[..., torch.Tensor]] = {
    **{
        name: getattr(F, name)
        for name in """hardsigmoid hardswish hardtanh relu relu6 leaky_relu elu selu celu silu mish
        softplus softsign softshrink logsigmoid""".split()
    },
    "hardtanh of 3": lambda x: F.hardtanh(x, -3.0, 3.0),
    "softshrink of 1": lambda x: F.softshrink(x, 1.0),
}
LOSSES: dict[str, Callable[..., torch.Tensor]] = {
    "smooth l1": lambda x, y: F.smooth_l1_loss(x, y, reduction="none"),
    "smooth l1 of 2": lambda x, y: F.smooth_l1_loss(x, y, reduction="none", beta=2.0),
    "l1": lambda x, y: F.l1_loss(x, y, reduction="none"),
    "huber": lambda x, y: F.huber_loss(x, y, reduction="none"),
    "mse": lambda x, y: F.mse_loss(x, y, reduction="none"),
}
DTYPES = (torch.float32, torch.float64)
"""For 16 bits, eager's vector loops and its loops over the remaining elements differ at NaN."""


def gradients(
    function: Callable[..., torch.Tensor], given: tuple[torch.Tensor, ...]
) -> list[torch.Tensor]:
    leaves = [x.clone().requires_grad_() for x in given]
    function(*leaves).backward(torch.full_like(given[0], 1.5))
    return [x.grad for x in leaves if x.grad is not None]


def check(function: Callable[..., torch.Tensor], *given: torch.Tensor) -> None:
    found, expected = gradients(lab.compile(function), given), gradients(function, given)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, equal_nan=True, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str, dtype: torch.dtype) -> None:
    check(ACTIVATIONS[name], torch.tensor(POINTS, dtype=dtype).repeat_interleave(64))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor(POINTS, dtype=dtype)
    check(LOSSES[name], x.repeat(64), x.repeat_interleave(64))
