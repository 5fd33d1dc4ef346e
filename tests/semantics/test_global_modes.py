"""Global modes of torch that change results: compiled code follows them as eager mode does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

import inductor_lab as lab

Function = Callable[[torch.Tensor], Any]


@contextmanager
def deterministic(fill: bool) -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = fill
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)
        torch.utils.deterministic.fill_uninitialized_memory = True


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextmanager
def small_numbers_are_zero() -> Iterator[None]:
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush small numbers to zero")
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@contextmanager
def products_in(precision: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


MAKERS: dict[str, Function] = {
    "empty": lambda x: torch.empty(5),
    "empty of integers": lambda x: torch.empty(5, dtype=torch.int32),
    "empty of bytes": lambda x: torch.empty(5, dtype=torch.uint8),
    "empty of bools": lambda x: torch.empty(5, dtype=torch.bool),
    "empty of halves": lambda x: torch.empty(5, dtype=torch.float16),
    "empty_like": torch.empty_like,
    "new_empty": lambda x: x.new_empty(3),
    "empty_strided": lambda x: torch.empty_strided((3, 2), (2, 1)),
    "empty_permuted": lambda x: torch.empty_permuted((3, 2), (1, 0)),
    "read later": lambda x: torch.empty(x.shape).isnan() & (x > 0),
    "written in part": lambda x: torch.empty(x.shape).index_fill_(0, torch.arange(3), 2.0),
    "written": lambda x: torch.empty(x.shape).copy_(x),
}


@pytest.mark.parametrize("name", MAKERS)
def test_new_memory_has_the_numbers_of_deterministic_mode(name: str) -> None:
    x, make = torch.linspace(-1, 1, 40), MAKERS[name]
    compiled = lab.compile(make)
    compiled(x)
    with deterministic(fill=True):
        torch.testing.assert_close(compiled(x), make(x), rtol=0, atol=0, equal_nan=True)


def test_deterministic_mode_without_filling_compiles() -> None:
    with deterministic(fill=False):
        assert lab.compile(lambda x: torch.empty_like(x))(torch.ones(7)).shape == (7,)


NUMBERS: dict[str, Function] = {
    "zeros": lambda x: torch.zeros(3) + x[:3],
    "full": lambda x: torch.full((3,), 0.1),
    "arange": lambda x: torch.arange(0, 1, 0.125),
    "quotient of integers": lambda x: torch.arange(3) / 3,
    "scalar": lambda x: torch.tensor(0.1) * x,
    "mean of bools": lambda x: (x > 0).to(torch.get_default_dtype()).mean(),
    "sine of integers": lambda x: torch.arange(5).sin(),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", NUMBERS)
def test_new_tensors_have_the_default_dtype(name: str, dtype: torch.dtype) -> None:
    x, make = torch.linspace(-1, 1, 40), NUMBERS[name]
    compiled = lab.compile(make)
    torch.testing.assert_close(compiled(x), make(x))
    with default_dtype(dtype):
        torch.testing.assert_close(compiled(x), make(x))
    assert compiled(x).dtype == make(x).dtype


def test_small_numbers_are_zero_where_eager_mode_has_zero() -> None:
    x = torch.full((64,), 1e-30)
    compiled = lab.compile(lambda x: x * 1e-10)
    assert (compiled(x) > 0).all()
    with small_numbers_are_zero():
        assert torch.equal(compiled(x), x * 1e-10)
    assert (compiled(x) > 0).all()


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_products_have_the_precision_of_eager_mode(precision: str) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(64, 96), torch.randn(96, 64)
    compiled = lab.compile(lambda x, y: x @ y)
    compiled(x, y)
    with products_in(precision):
        torch.testing.assert_close(compiled(x, y), x @ y, rtol=1e-6, atol=1e-5)
