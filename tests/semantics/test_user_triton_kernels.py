"""Triton kernels of the user, in compiled functions."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import inductor_lab as lab

triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402
from triton.runtime.interpreter import InterpretedFunction  # noqa: E402
from triton.runtime.jit import JITFunction  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU, Triton's interpreter runs them."""
    if DEVICE == "cpu":
        monkeypatch.setattr("torch.utils._triton.has_triton", lambda: True)
        monkeypatch.setattr(
            JITFunction, "run", lambda kernel, *args, grid, warmup, **kwargs:
            InterpretedFunction(kernel.fn)[grid](*args, **kwargs),
        )  # fmt: skip


def add(a, b, o, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(a + at, mask=at < n) + tl.load(b + at, mask=at < n), mask=at < n)


def multiply(a, b, o, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(a + at, mask=at < n) * tl.load(b + at, mask=at < n), mask=at < n)


ADD, MULTIPLY = JITFunction(add), JITFunction(multiply)


def launched(kernel: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    result = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, y, result, x.numel(), BLOCK=64)
    return result


def between_operators(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return launched(MULTIPLY, launched(ADD, x.sin(), y) * 2, y).sum()


def into_an_argument(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    ADD[(triton.cdiv(x.numel(), 64),)](x, y, x, x.numel(), BLOCK=64)
    return x + 1


def into_a_view(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = x.clone()
    part = z[10:60]
    ADD[(1,)](part, y[10:60], part, 50, BLOCK=64)
    return z.cos()


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, y)
        return launched(MULTIPLY, x, y)

    @staticmethod
    def backward(ctx: Any, *g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = ctx.saved_tensors
        return launched(MULTIPLY, g[0], y), launched(MULTIPLY, g[0], x)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", [between_operators, into_an_argument, into_a_view])
def test_results_equal_eager_mode(function: Any, dynamic: bool) -> None:
    torch.manual_seed(0)
    compiled = lab.compile(function, fullgraph=True, dynamic=dynamic)
    for size in (100, 130):
        x, y = torch.randn(size, device=DEVICE), torch.randn(size, device=DEVICE)
        mine = x.clone()
        expected, found = function(x, y), compiled(mine, y)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(mine, x)


def test_in_an_autograd_function() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(100, device=DEVICE), torch.randn(100, device=DEVICE)

    def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return Product.apply(x.sin(), y).exp().sum()  # type: ignore[no-untyped-call]

    grads = []
    for run in (product, lab.compile(product, fullgraph=True)):
        given = [t.clone().requires_grad_() for t in (x, y)]
        grads.append(torch.autograd.grad(run(*given), given))
    torch.testing.assert_close(grads[1], grads[0])


def test_a_kernel_is_an_extern_call() -> None:
    c = lab.inspect(between_operators, *torch.randn(2, 100, device=DEVICE))
    assert "user's kernel" in str(c.coverage)
