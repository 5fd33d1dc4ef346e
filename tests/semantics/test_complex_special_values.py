"""Complex functions at infinities, NaN and signed zeros, as in eager mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab

Tensor = torch.Tensor
PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, torch.inf, -torch.inf, torch.nan, 1e-30, 3e38)
GRID = torch.tensor([complex(a, b) for a in PARTS for b in PARTS])
SMALL = torch.tensor([complex(a, b) for a in PARTS[:8] for b in PARTS[:8]])
NAMES = """abs angle exp expm1 exp2 log log2 log10 log1p sqrt rsqrt square sin cos tan sinh cosh
tanh asin acos atan asinh acosh atanh reciprocal sigmoid neg conj_physical sgn positive isnan isinf
isfinite real imag sinc logical_not isreal nan_to_num""".split()
UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    **{name: getattr(torch, name) for name in NAMES},
    "tanhshrink": F.tanhshrink,
    "softsign": F.softsign,
    "silu": F.silu,
    "bool": lambda x: x.bool(),
    "two to the power": lambda x: 2**x,
    "quotient of a number": lambda x: 1j / x,
    **{f"power {n}": partial(lambda n, x: x**n, n) for n in (-2, -1, 0, 0.5, 2, 3)},
}


def pair(x: Tensor, y: Tensor) -> Tensor:
    return torch.stack([x, y], 1)


BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    **{name: getattr(torch, name)
       for name in "add sub mul div pow eq ne float_power logaddexp isclose logical_and".split()},
    "scaled sum": lambda x, y: torch.add(x, y, alpha=1j),
    "of a real": lambda x, y: x * y.real / x.imag,
    "addcmul": lambda x, y: torch.addcmul(x, y, x, value=2),
    "addcdiv": lambda x, y: torch.addcdiv(x, y, x),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "polar": lambda x, y: torch.polar(x.real, y.imag),
    "sum": lambda x, y: pair(x, y).sum(1),
    "prod": lambda x, y: pair(x, y).prod(1),
    "cumprod": lambda x, y: pair(x, y).cumprod(1),
    "conjugate product": lambda x, y: x.conj() * y,
    **{f"norm {n}": partial(lambda n, x, y: torch.linalg.vector_norm(pair(x, y), n, 1), n)
       for n in (0, 1, 2, 3, torch.inf)},
}  # fmt: skip


def check(found: Tensor, expected: Tensor) -> None:
    """The same values, signs of zeros and infinities included."""
    assert found.dtype == expected.dtype
    for ours, eager in zip(parts(found), parts(expected), strict=True):
        torch.testing.assert_close(ours, eager, rtol=2e-5, atol=1e-30, equal_nan=True)
        if eager.is_floating_point():
            numbers = ~eager.isnan()
            assert torch.equal(ours[numbers].signbit(), eager[numbers].signbit())


def parts(x: Tensor) -> list[Tensor]:
    x = x.resolve_conj().resolve_neg()
    return [x.real, x.imag] if x.is_complex() else [x]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name: str, dtype: torch.dtype) -> None:
    x = GRID.to(dtype)
    check(lab.compile(UNARY[name])(x), UNARY[name](x))


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name: str) -> None:
    x = GRID[:, None].expand(len(GRID), len(GRID)).reshape(-1)
    y = GRID.repeat(len(GRID))
    check(lab.compile(BINARY[name])(x, y), BINARY[name](x, y))


DIFFERENTIABLE = """abs exp log sqrt rsqrt square sin cos tan sinh cosh tanh reciprocal sigmoid sgn
asin acos atan log1p""".split()


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name: str) -> None:
    def gradient(function: Callable[[Tensor], Any]) -> Tensor:
        x = SMALL.clone().requires_grad_()
        y = function(x)
        return torch.autograd.grad(y, x, torch.ones_like(y))[0]

    check(gradient(lab.compile(UNARY[name])), gradient(UNARY[name]))
