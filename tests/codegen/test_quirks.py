"""Workarounds for bugs of C++ compilers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.compiler.base.passes import optional
from inductor_lab.compiler.codegen.cpu.passes import PASSES


def below(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.cat([a * 2, b.exp()], 0).relu()


def gradient(rows: int, turns: int, off: str | tuple[str, ...]) -> tuple[torch.Tensor, str]:
    """The gradient of the upper part, and the kernel that computes it."""
    torch.manual_seed(0)
    a = torch.randn(rows, turns, requires_grad=True)
    c = lab.inspect(below, a, torch.randn(2, turns), options={"passes_off": off})
    c.result.backward(torch.ones(rows + 2, turns))
    return a, str(c.graphs[0].backward.kernels[-1])


@pytest.mark.parametrize("turns", [3, 5, 6, 7, 9, 12])
@pytest.mark.parametrize("rows", [4, 16, 100])
def test_each_iteration_has_its_own_condition(rows: int, turns: int) -> None:
    """If GCC 12 vectorizes short rows, it uses the first iteration's condition for all
    iterations."""
    a, _ = gradient(rows, turns, "all")
    assert_close(a.grad, torch.where(a > 0, 2.0, 0.0))


def test_only_short_conditional_loops_of_odd_length_are_not_vectorized() -> None:
    simple = tuple(optional(PASSES))
    assert "unroll 1" in gradient(40, 5, simple)[1]
    assert "unroll 1" not in gradient(40, 8, simple)[1]
    assert "unroll 1" not in gradient(40, 50, simple)[1]
    assert "unroll 1" not in gradient(40, 5, ())[1]


BEYOND = (-0.5, -0.0, 300.0, 70000.0, -1e10, 1e10, 3e19, float("nan"), float("inf"), -3.7, 2.5)
WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("source", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_a_float_converted_to_an_integer_and_back_agrees_with_eager_mode(
    source: torch.dtype, whole: torch.dtype
) -> None:
    """GCC 12 replaces (float)(int)x by trunc(x), even if x is out of range or the result is -0."""

    def there_and_back(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.to(whole).to(source), x.to(whole).float(), 1 / x.to(whole), x.to(whole)

    x = torch.tensor(BEYOND * 7).to(source)
    for found, expected in zip(lab.compile(there_and_back)(x), there_and_back(x), strict=True):
        assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(found.signbit(), expected.signbit())


@pytest.mark.parametrize("whole", [torch.int32, torch.int64])
def test_a_rounded_nan_converts_to_the_same_integer_as_in_eager_mode(whole: torch.dtype) -> None:
    """GCC folds the conversion of the NaN constant to an integer to 0."""

    def below(x: torch.Tensor) -> torch.Tensor:
        return x.floor().to(whole)

    x = torch.tensor((0.5, float("nan")) * 20).bfloat16()
    assert torch.equal(lab.compile(below)(x), below(x))


def test_columns_that_read_across_rows_compile() -> None:
    """GCC 12 did not terminate unrolling the outer loop: gradients of a norm in timm's EdgeNeXt."""

    def sums(a: Any, b: Any, c: Any, images: Any, mean: Any, scale: Any) -> Any:
        both, normal = a + c, (images.permute(0, 2, 3, 1) - mean) * scale
        return (a * b).sum((0, 1, 2)), (both * normal).sum((0, 1, 2)), both.sum((0, 1, 2))

    last = [torch.randn(2, 64, 64, 48) for _ in range(3)]
    one = [torch.randn(2, 64, 64, 1) for _ in range(2)]
    given = (*last, torch.randn(2, 48, 64, 64), *one)
    assert_close(lab.compile(sums)(*given), sums(*given), rtol=1e-3, atol=1e-2)
