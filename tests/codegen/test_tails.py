"""Peeled tails: one vector register processes the end of a row, and may see elements twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import inductor_lab as lab

PROGRAMS: dict[str, Callable[..., Any]] = {
    "softmax": lambda x: x.float().softmax(-1),
    "several kinds": lambda x: (x.float().exp().sum(-1), x.amax(-1), x.float().exp().amin(-1)),
    "a product": lambda x: (x.float().sigmoid() + 0.5).prod(-1),
    "any and all": lambda x: ((x.float().exp() > 1e9).any(-1), (x.float().exp() > 0).all(-1)),
    "of doubles": lambda x: x.double().exp().sum(-1),
    "under a mask": lambda x: torch.nn.functional.pad(x.float().sin(), (3, 0)).exp().sum(-1),
    "in place": lambda x: x.copy_(x.float().softmax(-1)),
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def rows(columns: int, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(columns)
    return (torch.randn(20, columns, generator=generator) * 3).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_element_counts_once(name: str, dtype: torch.dtype) -> None:
    program = PROGRAMS[name]
    x = rows(143, dtype)
    expected = program(x.clone())
    got = lab.compile(program, dynamic=False)(x.clone())
    assert_close(got, expected, rtol=1e-2 if dtype.itemsize == 2 else 1e-5, atol=1e-5)


def test_a_sum_ignores_the_second_copy_of_an_element() -> None:
    """Even if the element is infinite or NaN."""
    x = rows(143, torch.float32)
    x[0, 130], x[1, 127], x[2, 142] = 1000.0, torch.nan, -torch.inf
    got = lab.compile(lambda x: x.exp().sum(-1))(x)
    assert_close(got, x.exp().sum(-1), equal_nan=True)


def code_of(program: Callable[..., Any], x: torch.Tensor) -> str:
    kernels = lab.inspect(program, x).graphs[0].forward.kernels
    return "\n".join(str(kernel.code) for kernel in kernels)


def test_the_tail_comes_first_and_overlaps() -> None:
    code = code_of(lambda x: x.exp().sum(-1), rows(200, torch.float32))
    assert "j0 = 184; j0 < 200" in code
    assert "j0 = 0; j0 < 192" in code
    assert code.index("j0 < 200") < code.index("j0 < 192")


def test_cheap_sums_have_no_tail() -> None:
    """The C++ compiler generates equally fast code for them."""
    assert "j0 = 0; j0 < 200" in code_of(lambda x: (x * x).sum(-1), rows(200, torch.float32))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32])
@pytest.mark.parametrize("columns", [17, 31, 33, 40, 63, 100, 129, 509])
def test_maxima_of_ragged_rows_have_a_tail(columns: int, dtype: torch.dtype) -> None:
    """The tail sees some elements twice: NaN and infinities have the same effect, and nothing
    beyond a row is read."""

    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.amax(-1), x.abs().amin(-1), (x > 0).any(-1)

    x = rows(columns * 20 + 1, dtype)[0, 1:].view(20, columns).clone()
    if dtype.is_floating_point:
        x[0, 0], x[1, -1], x[2, columns // 2], x[3] = torch.nan, torch.nan, torch.inf, -torch.inf
    for given in (x, torch.cat([x[0, :1], x.flatten()])[1:].view(20, columns)):
        for dynamic in (False, True):
            torch.compiler.reset()
            assert_close(
                lab.compile(program, dynamic=dynamic)(given), program(given), equal_nan=True
            )


def test_a_maximum_has_a_tail_for_one_element() -> None:
    code = code_of(lambda x: x.amax(-1), rows(33, torch.float32))
    assert "j0 = 17; j0 < 33" in code
    assert "j0 = 0; j0 < 32" in code
    whole = code_of(lambda x: x.amax(-1), rows(40, torch.float32))
    assert "j0 = 0; j0 < 40" in whole, "half a register: compilers vectorize it"


INTERLEAVED = {
    "a logarithm of a softmax's sum, of 100": (lambda x: x.logsumexp(-1), 100, True),
    "a softmax of 50": (lambda x: x.softmax(-1), 50, True),
    "a softmax of 64, which fills lines": (lambda x: x.softmax(-1), 64, False),
    "a sum of 50": (lambda x: x.sum(-1), 50, False),
    "a sum of 16": (lambda x: x.sum(-1), 16, True),
    "a sum of 24": (lambda x: x.sum(-1), 24, False),
    "a maximum of 24": (lambda x: x.amax(-1), 24, True),
    "a sum of 50 bfloat16": (lambda x: x.bfloat16().clone().sum(-1).float(), 50, False),
}


@pytest.mark.parametrize("name", INTERLEAVED)
def test_rows_with_exponentials_are_processed_together(name: str) -> None:
    """A logsumexp of 47 elements takes 29 instead of 158 ns per row, a softmax of 47 elements 72
    instead of 166 ns (one core with AVX-512, GCC 12, November 2026)."""
    program, columns, transposed = INTERLEAVED[name]
    x = rows(columns, torch.float32).repeat(11, 1)
    assert ("lab_transpose" in code_of(program, x)) == transposed
    assert_close(lab.compile(program)(x), program(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (20, 0)])
def test_empty_rows(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        floats = x.float()
        return (
            x.any(),
            x.all(),
            x.any(-1),
            x.sum(-1),
            floats.exp().sum(-1),
            floats.softmax(-1),
            floats.logsumexp(-1),
            floats.mean(-1),
            floats.var(-1),
            floats.prod(-1),
        )

    x = torch.ones(shape, dtype=dtype)
    for dynamic in (False, True):
        torch.compiler.reset()
        assert_close(lab.compile(program, dynamic=dynamic)(x), program(x), equal_nan=True)
