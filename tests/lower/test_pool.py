"""Pooling: values, positions of maxima with ties and NaN, and gradients, without any library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from inductor_lab.compiler.ir.expr import Load
from inductor_lab.compiler.lower.window import Adaptive
from tests.lower.lowering import Lowered, assert_same, program_of

SHORT = (torch.float16, torch.bfloat16)
Pool = Callable[[torch.Tensor], Any]


def maximum(dims: int, *given: Any, **more: Any) -> Pool:
    function = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[dims]
    return lambda x: function(x, *given, return_indices=True, **more)


def mean(dims: int, *given: Any, **more: Any) -> Pool:
    function = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}[dims]
    return lambda x: function(x, *given, **more)


MAXIMA: dict[str, tuple[int, Pool]] = {
    "1d": (1, maximum(1, 3, 2, 1)),
    "1d dilated": (1, maximum(1, 3, 1, 1, 2)),
    "2d": (2, maximum(2, 3, 2, 1)),
    "2d apart": (2, maximum(2, 2, 3)),
    "2d ceil": (2, maximum(2, (3, 2), (2, 3), (1, 0), ceil_mode=True)),
    "2d dilated": (2, maximum(2, 2, 2, 1, (3, 2))),
    "2d large": (2, maximum(2, (7, 5), 1, (3, 2))),
    "2d larger": (2, maximum(2, 12, 1, 6)),
    "2d large ceil": (2, maximum(2, (7, 6), (3, 2), (3, 2), ceil_mode=True)),
    "2d large dilated": (2, maximum(2, 6, 1, 3, 2)),
    "2d large, one row": (2, maximum(2, (7, 6), (1, 5), (0, 2))),
    "3d": (3, maximum(3, 2, 1, 1)),
    "3d dilated": (3, maximum(3, (2, 2, 1), 2, 0, (1, 2, 1), ceil_mode=True)),
    "3d large": (3, maximum(3, (3, 4, 5), 2, (1, 2, 2))),
    "3d large, flat": (3, maximum(3, (1, 7, 6), (2, 1, 1), (0, 3, 2))),
    "adaptive 1d": (1, lambda x: F.adaptive_max_pool1d(x, 4, return_indices=True)),
    "adaptive 2d": (2, lambda x: F.adaptive_max_pool2d(x, (3, 5), return_indices=True)),
    "adaptive 2d, more": (2, lambda x: F.adaptive_max_pool2d(x, (13, 4), return_indices=True)),
    "adaptive 3d": (3, lambda x: F.adaptive_max_pool3d(x, (2, 3, 4), return_indices=True)),
}

MEANS: dict[str, tuple[int, Pool]] = {
    "1d": (1, mean(1, 3, 2, 1)),
    "2d": (2, mean(2, 3, 2, 1)),
    "2d apart": (2, mean(2, 2, 3)),
    "2d ceil": (2, mean(2, (3, 2), 2, (1, 0), ceil_mode=True)),
    "2d without padding": (2, mean(2, 3, 2, 1, ceil_mode=True, count_include_pad=False)),
    "2d divided": (2, mean(2, 3, 2, 1, divisor_override=7)),
    "2d large": (2, mean(2, 6, 2, 3)),
    "2d large without padding": (2, mean(2, 6, (2, 1), 3, ceil_mode=True, count_include_pad=False)),
    "2d large divided": (2, mean(2, (7, 6), 1, 2, divisor_override=7)),
    "3d large": (3, mean(3, (3, 4, 5), 1, (1, 2, 2))),
    "3d": (3, mean(3, 2, 1, 1)),
    "3d without padding": (3, mean(3, (3, 2, 2), (2, 1, 3), 1, count_include_pad=False)),
    "adaptive 1d": (1, lambda x: F.adaptive_avg_pool1d(x, 4)),
    "adaptive 2d": (2, lambda x: F.adaptive_avg_pool2d(x, (3, 5))),
    "adaptive 2d, more": (2, lambda x: F.adaptive_avg_pool2d(x, (13, 4))),
    "adaptive 3d": (3, lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4))),
}


def image(dims: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(2, 3, *(9, 8, 7)[3 - dims :]).to(dtype)


def with_ties(x: torch.Tensor) -> torch.Tensor:
    """Few different values, with infinities and many NaN."""
    few = (x * 2).round() / 2
    few = torch.where(few == -1, -torch.inf, torch.where(few == 1.5, torch.inf, few))
    return torch.where((x * 10).frac().abs() < 0.15, torch.nan, few)


def with_dtypes(table: dict[str, tuple[int, Pool]]) -> list[Any]:
    """All cases in float32, and some in dtypes that are computed in float32."""
    some = [("2d", dtype) for dtype in SHORT] + [("adaptive 2d", dtype) for dtype in SHORT]
    some += [("2d large", dtype) for dtype in SHORT]
    cases = [*((name, torch.float32) for name in table), ("2d", torch.float64), *some]
    return [pytest.param(*case, id=f"{case[0]}-{str(case[1])[6:]}") for case in cases]


@pytest.mark.parametrize(("name", "dtype"), with_dtypes(MAXIMA))
def test_maxima_and_their_positions(name: str, dtype: torch.dtype) -> None:
    dims, function = MAXIMA[name]
    x = image(dims, dtype)
    lowered = Lowered()
    compiled = lowered.aot(function)
    for given in (x, with_ties(x), torch.full_like(x, -torch.inf), torch.full_like(x, torch.nan)):
        assert_same(compiled(given), function(given), rtol=0, atol=0)
    assert not lowered.externs()


@pytest.mark.parametrize("name", MAXIMA)
def test_gradient_of_maxima(name: str) -> None:
    dims, function = MAXIMA[name]
    x = with_ties(image(dims)).requires_grad_()
    check_gradient(lambda x: function(x)[0], x)


@pytest.mark.parametrize(("name", "dtype"), with_dtypes(MEANS))
def test_means(name: str, dtype: torch.dtype) -> None:
    dims, function = MEANS[name]
    x = image(dims, dtype)
    lowered = Lowered()
    near = {"rtol": 1e-2, "atol": 1e-2} if dtype.itemsize == 2 else {}
    assert_same(lowered.aot(function)(x), function(x), **near)
    assert not lowered.externs()


@pytest.mark.parametrize("name", MEANS)
def test_gradient_of_means(name: str) -> None:
    dims, function = MEANS[name]
    check_gradient(function, image(dims).requires_grad_())


def check_gradient(function: Pool, x: torch.Tensor) -> None:
    """Compares with the gradient of eager mode, for weights that differ between positions."""
    torch.manual_seed(1)
    result = function(x)
    weights = torch.randn_like(result)
    (expected,) = torch.autograd.grad(result, x, weights)
    lowered = Lowered()
    (actual,) = torch.autograd.grad(lowered.aot(function)(x), x, weights)
    assert_same(actual, expected, rtol=1e-5, atol=1e-5)
    assert not lowered.externs()


def test_integers() -> None:
    x = torch.randint(-9, 9, (1, 2, 7, 6))
    for function in (maximum(2, 3, 2, 1), maximum(2, 6, 1, 3), mean(2, 2, 1, 1), mean(2, 6, 1, 3)):
        assert_same(Lowered().aot(function)(x), function(x))


def test_channels_last_and_no_batch() -> None:
    x = image(2)
    for given in (x.to(memory_format=torch.channels_last), x[0], x[:, :, 1:, ::2]):
        for size, step, padding in ((3, 2, 1), (6, 1, 3)):
            for function in (maximum(2, size, step, padding), mean(2, size, step, padding)):
                assert_same(Lowered().aot(function)(given), function(given))


def test_large_windows_of_several_lengths() -> None:
    x = with_ties(torch.randn(2, 20, 19))
    for function in (lambda x: F.adaptive_max_pool2d(x, (2, 3), return_indices=True),
                     lambda x: F.adaptive_avg_pool2d(x, (2, 3))):  # fmt: skip
        assert_same(Lowered().aot(function)(x), function(x))


@pytest.mark.parametrize("function", [F.max_pool2d, F.avg_pool2d])
def test_large_windows_are_reduced_one_dimension_at_a_time(function: Pool) -> None:
    program = program_of(lambda x: function(x, 13, 1, 6), torch.randn(2, 20, 20))
    reads = [sum(isinstance(node, Load) for node in step.body.walk()) for step in program.steps]
    assert reads[:2] == [13, 13] and sum(reads) <= 27


@pytest.mark.parametrize("name", ["2d", "2d ceil", "2d large", "3d"])
def test_symbolic_sizes(name: str) -> None:
    for table in (MAXIMA, MEANS):
        dims, function = table[name]
        x = image(dims).requires_grad_()
        lowered = Lowered()
        compiled = lowered.aot(function, dynamic=True)
        assert_same(compiled(x), function(x))
        assert not lowered.externs()


def test_adaptive_readers_are_the_inverse_of_windows() -> None:
    """`readers` is the exact inverse of `kernel`, for all small sizes."""
    for size in range(1, 12):
        for results in range(1, 12):
            reads = {
                (o, i)
                for o in range(results)
                for i in range(o * size // results, -(-(o + 1) * size // results))
            }
            window = Adaptive(size, results)
            assert window.kernel == max(sum(o == a for a, _ in reads) for o in range(results))
            assert window.readers == max(sum(i == b for _, b in reads) for i in range(size))
