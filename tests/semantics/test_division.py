"""Integer division by zero raises as in eager mode, in every kind of kernel; floats do not
raise."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import DividedByZero
from tests.semantics.compare import assert_same

Function = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

FUNCTIONS: dict[str, Function] = {
    "floor": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "fmod": lambda x, y: torch.fmod(x, y) + 1,
    "truncated": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "by an expression": lambda x, y: x // (y * y - y.abs()),
    "in a sum": lambda x, y: (x // y).sum(),
    "in rows": lambda x, y: (x % y).amax(1) + x[:, 0],
    "in columns": lambda x, y: (x // y).sum(0),
    "chosen": lambda x, y: torch.where(y != 0, x // y, x),
    "in a combo": lambda x, y: (x // y, (x + 1)[:5]),
    "as an index": lambda x, y: torch.arange(100)[(x // y) % 100],
}


def given(dtype: torch.dtype, rows: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs without a zero divisor."""
    x = torch.arange(1, 1 + rows * 64).reshape(rows, 64) % 100
    return x.to(dtype), (x % 5 + 2).to(dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("rows", [16, 1024])
def test_zero_raises(name: str, rows: int) -> None:
    function = FUNCTIONS[name]
    x, y = given(torch.int64, rows)
    compiled = lab.compile(function)
    assert_same(compiled(x, y), function(x, y))
    y[3, 5] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        function(x, y)
    with pytest.raises(DividedByZero, match="ZeroDivisionError") as raised:
        compiled(x, y)
    assert isinstance(raised.value, RuntimeError)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32])
def test_other_integers(dtype: torch.dtype) -> None:
    x, y = given(dtype)
    compiled = lab.compile(FUNCTIONS["floor"])
    assert_same(compiled(x, y), x // y)
    y[0, 0] = 0
    with pytest.raises(DividedByZero):
        compiled(x, y)


def test_floats_and_literals_are_not_checked() -> None:
    x, y = given(torch.float32)
    y[0, 0] = 0
    compilation = lab.inspect(lambda x, y: (x // y, x.long() // 3, x.long() % 7), x, y)
    assert_same(compilation.result, (x // y, x.long() // 3, x.long() % 7))
    assert "bad" not in str(compilation.graphs[0].forward.kernels[0])


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize(
    "function",
    [
        lambda n, x: torch.full((abs(n) % 5,), n) % (abs(n) % 5),
        lambda n, x: x[: n % 5] % (n % 5),
        lambda n, x: (x[: n % 5, None] // x[None]).sum(1),
        lambda n, x: (x[: n % 5, None] // (x[None] * 0 + n % 5)).sum(0),
    ],
)
def test_empty_tensors_are_not_divided(
    function: Callable[[int, torch.Tensor], torch.Tensor], language: str
) -> None:
    """A divisor that is constant in a loop is tested only if the loop runs."""
    x = torch.arange(1, 8)
    compiled = lab.compile(function, dynamic=True, options={"language": language})
    for n in (3, 7, 5, 4, 10):
        assert_same(compiled(n, x), function(n, x))
