"""What C++ compilers get wrong: texts that keep them from it."""

from __future__ import annotations

from typing import Any

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


BEYOND = (-0.5, -0.0, 300.0, 70000.0, -1e10, 1e10, 3e19, float("nan"), float("inf"), -3.7, 2.5)
WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("source", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_an_integer_of_a_float_is_not_its_whole_part(
    source: torch.dtype, whole: torch.dtype
) -> None:
    """GCC 12 makes trunc(x) of (float)(int)x, also where x is out of range or the result -0."""

    def there_and_back(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.to(whole).to(source), x.to(whole).float(), 1 / x.to(whole), x.to(whole)

    x = torch.tensor(BEYOND * 7).to(source)
    for found, expected in zip(lab.compile(there_and_back)(x), there_and_back(x), strict=True):
        assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(found.signbit(), expected.signbit())


@pytest.mark.parametrize("whole", [torch.int32, torch.int64])
def test_a_nan_that_was_rounded_is_the_integer_that_eager_makes_of_it(whole: torch.dtype) -> None:
    """GCC makes 0 of the one constant that all of them are, where it sees the integer next."""

    def below(x: torch.Tensor) -> torch.Tensor:
        return x.floor().to(whole)

    x = torch.tensor((0.5, float("nan")) * 20).bfloat16()
    assert torch.equal(lab.compile(below)(x), below(x))


def test_columns_that_read_across_rows_compile() -> None:
    """GCC 12 unrolled the loop around them for ever: gradients of a norm in timm's EdgeNeXt."""

    def sums(a: Any, b: Any, c: Any, images: Any, mean: Any, scale: Any) -> Any:
        both, normal = a + c, (images.permute(0, 2, 3, 1) - mean) * scale
        return (a * b).sum((0, 1, 2)), (both * normal).sum((0, 1, 2)), both.sum((0, 1, 2))

    last = [torch.randn(2, 64, 64, 48) for _ in range(3)]
    one = [torch.randn(2, 64, 64, 1) for _ in range(2)]
    given = (*last, torch.randn(2, 48, 64, 64), *one)
    assert_close(lab.compile(sums)(*given), sums(*given), rtol=1e-3, atol=1e-2)
