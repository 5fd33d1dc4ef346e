"""Python ints and floats that are symbolic: positions, sizes, arithmetic, errors."""

from __future__ import annotations

import math

import pytest
import torch
import torch._dynamo.config as dynamo_config
import torch.nn.functional as F

import inductor_lab as lab
from tests.semantics.compare import assert_same, wave
from tests.semantics.numbers import (
    FLOAT_VALUES,
    FLOATS,
    FOUND,
    INT_VALUES,
    LARGE,
    LARGE_VALUES,
    OTHERS,
    STATEMENTS,
    check,
    lines,
)


@pytest.mark.parametrize("text", [*lines(FOUND), *STATEMENTS, *lines(OTHERS)[::12]])
def test_ints(text: str) -> None:
    check(text, INT_VALUES)


@pytest.mark.parametrize("text", [t for t in lines(OTHERS) if "math.sin" in t or "full_like" in t])
def test_functions_of_ints(text: str) -> None:
    check(text, INT_VALUES)


@pytest.mark.parametrize("text", lines(FLOATS)[::10])
def test_floats(text: str) -> None:
    check(text, FLOAT_VALUES)


@pytest.mark.parametrize("text", lines(FOUND)[::6])
def test_ints_in_triton(text: str) -> None:
    check(text, INT_VALUES[:5], language="triton")


@pytest.mark.parametrize("text", lines(LARGE))
def test_integers_of_more_than_64_bits_raise(text: str) -> None:
    check(text, LARGE_VALUES)


@pytest.mark.parametrize("text, values", [
    ("torch.xlogy(n, a.abs() + 1)", (3, 5, 2**63 - 1, -(2**63))),
    ("torch.xlogy(a, x)", (2.5, 0.5, 1e300, math.inf)),
    ("torch.fmod(a, x * 2)", (2.5, 0.5, 1e300, -math.inf)),
])  # fmt: skip
def test_a_number_that_becomes_a_float_may_be_large(text: str, values: tuple[float, ...]) -> None:
    check(text, values)


def test_rows_of_a_padding_index_get_no_gradient() -> None:
    def looked_up(table: torch.Tensor, n: int) -> torch.Tensor:
        return F.embedding(torch.tensor([0, 1, 2, 1]), table, padding_idx=n)

    compiled = torch.compile(looked_up, backend="inductor_lab")
    for n in (1, 2, 0, -5, -1):
        found = []
        for run in (looked_up, compiled):
            table = wave(6, 4).requires_grad_()
            run(table, n).sum().backward()
            found.append(table.grad)
        assert_same(*found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_rounded_decimals_have_the_bits_of_eager_mode(dtype: torch.dtype) -> None:
    x = torch.cat([wave(500) * scale for scale in (1e-3, 1.0, 1e2, 1e4)]).to(dtype)
    compiled = torch.compile(lambda x, n: x.round(decimals=n), backend="inductor_lab")
    for n in (2, -1, 3, -3, 1, 6):
        torch.testing.assert_close(compiled(x, n), x.round(decimals=n), rtol=0, atol=0)


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize(
    "text",
    [
        "a + (1 << n)",  # a negative n is an error
        "torch.arange(12).view(max(n, 1) % 3 + 1, -1) + 0",  # strides with the user's own maximum
        "torch.zeros(3, max(n, 1)) + torch.arange(3)[:, None]",
        "a.view(-1)[(-n) % 5:] + 1",  # a remainder of a negative number
    ],
)
def test_ints_in_sizes_and_strides(text: str, language: str) -> None:
    check(text, INT_VALUES, language=language)


@pytest.mark.parametrize("text", ["(a.abs() + 1) ** (x % 2)", "a.lerp(a + 1, x // 0.5)"])
def test_floats_with_integer_values(text: str) -> None:
    check(text, FLOAT_VALUES[:5])


NARROW = {
    "full": lambda x, n: torch.full((2,), n, dtype=x.dtype),
    "full of twice": lambda x, n: x.new_full((2,), n * 2),
    "fill_": lambda x, n: x.clone().fill_(n),
    "tensor": lambda x, n: torch.tensor([n, 1], dtype=x.dtype),
    "masked_fill": lambda x, n: x.masked_fill(x > 0, n),
    "index_fill": lambda x, n: x.index_fill(0, torch.tensor([0]), n),
    "where": lambda x, n: torch.where(x > 0, x, n),
    "clamp": lambda x, n: x.clamp(min=n),
    "add": lambda x, n: torch.add(x, x, alpha=n),
    "sub": lambda x, n: torch.sub(x, x, alpha=n),
    "rsub": lambda x, n: torch.rsub(x, 3, alpha=n),
    "index_add": lambda x, n: x.index_add(0, torch.tensor([0]), x[:1], alpha=n),
    "addcmul": lambda x, n: torch.addcmul(x, x, x, value=n),
    "scatter": lambda x, n: x.scatter(0, torch.tensor([0]), n),
    "threshold": lambda x, n: F.threshold(x, 0, n),
    "pad": lambda x, n: F.pad(x, (1, 1), value=abs(n)),
    "power": lambda x, n: x ** abs(n),
    "a sum wraps around": lambda x, n: x + n,
    "no narrower than an int": lambda x, n: torch.full((2,), n),
}


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32])
@pytest.mark.parametrize("name", NARROW)
def test_ints_that_do_not_fit_their_dtype_raise(name: str, dtype: torch.dtype) -> None:
    function, x = NARROW[name], torch.tensor([1, -1]).to(dtype)
    compiled = lab.compile(function, dynamic=True)
    refused = 0
    for n in (3, 5, 127, 200, -5, -200, 40_000, -(2**31), 2**31 + 5):
        try:
            expected = function(x, n)
        except RuntimeError:
            refused += 1
            with pytest.raises(RuntimeError, match="without overflow"):
                compiled(x, n)
        else:
            assert_same(compiled(x, n), expected)
    assert bool(refused) == (name not in ("a sum wraps around", "no narrower than an int"))


BEYOND = {
    "clamp": lambda x: x.clamp(max=3.9e38),
    "full": lambda x: torch.full((2,), 3.9e38) + x,
    "full_like": lambda x: torch.full_like(x, -1e300),
    "pad": lambda x: F.pad(x, (1, 1), value=-1e39),
    "add": lambda x: torch.add(x, x, alpha=1e39),
    "threshold": lambda x: F.threshold(x, 0.3, 1e39),
    "an int": lambda x: torch.add(x.char(), x.char(), alpha=300),
    "where": lambda x: torch.where(x > 0.3, 1e300, x),
    "where of numbers": lambda x: torch.where(x > 0.3, 0.5, -1e39),
    "where of ints": lambda x: torch.where(x > 0.3, x.long(), 1e300),
    "masked_fill": lambda x: x.masked_fill(x > 0.3, -1e300),
    "masked_fill of halves": lambda x: x.half().masked_fill(x > 0.3, -1e9),
    "infinity as an int": lambda x: torch.full_like(x.int(), math.inf),
    "NaN as an int": lambda x: torch.full_like(x.long(), math.nan),
    "an int of 64 bits": lambda x: x.long().new_full((2,), -1e30),
}


@pytest.mark.parametrize("name", BEYOND)
def test_literals_that_do_not_fit_their_dtype_raise(name: str) -> None:
    for function in (BEYOND[name], lab.compile(BEYOND[name])):
        with pytest.raises(RuntimeError, match="without overflow"):
            function(torch.tensor([0.25, 0.5]))


def test_infinite_limits_fit() -> None:
    x = torch.tensor([0.25, 2e38])
    assert_same(lab.compile(lambda x: x.clamp(-math.inf, math.inf))(x), x)


@pytest.mark.parametrize("function", [
    lambda x: torch.where(x > 0.3, -1e9, x.half()),  # a 0-dim float16 is accepted
    lambda x: x.masked_fill(x > 0.3, -math.inf),
    lambda x: torch.full_like(x.bool(), 1e300),
])  # fmt: skip
def test_numbers_that_eager_mode_converts_are_accepted(function) -> None:
    x = torch.tensor([0.25, 0.5])
    assert_same(lab.compile(function)(x), function(x))


def test_unused_numbers_that_do_not_fit_raise() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(torch.add(x, x, alpha=300))

    for call in (function, lab.compile(function)):
        with pytest.raises(RuntimeError, match="without overflow"):
            call(torch.tensor([1, 2], dtype=torch.int8))


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float32])
@pytest.mark.parametrize("exponent", [True, False])
def test_a_bool_is_an_exponent(exponent: bool, dtype: torch.dtype) -> None:
    x = torch.tensor([0, 2, 3], dtype=dtype)
    assert_same(lab.compile(lambda x: x**exponent)(x), x**exponent)


@pytest.mark.parametrize("number", [-2.25, 0.1, 1 / 3, -2.0, 1e-30, 2.0**53 + 2, -0.0])
def test_a_float_that_the_program_fixes_is_checked(number: float) -> None:
    """Torch makes the remainder a constant, and leaves a read of the number that has this value."""

    def function(x: torch.Tensor, n: float) -> tuple[torch.Tensor, torch.Tensor]:
        return x * (n % 1), x.lerp(x, n)

    torch.compiler.reset()
    compiled = torch.compile(function, backend="inductor_lab", dynamic=True)
    with dynamo_config.patch(capture_scalar_outputs=True):
        for each in (number, 1.5, number):
            x = torch.arange(4.0, requires_grad=True)
            got, expected = ((*one, *torch.autograd.grad(sum(each.sum() for each in one), x))
                             for one in (compiled(x, each), function(x, each)))  # fmt: skip
            torch.testing.assert_close(got, expected)


def test_a_bool_that_is_symbolic_is_a_mask() -> None:
    def function(x: torch.Tensor, n: bool) -> torch.Tensor:
        x[min(n, 3)] = 1
        return x

    torch.compiler.reset()
    compiled = torch.compile(function, backend="inductor_lab", dynamic=True)
    for number in (True, False, True):
        assert_same(compiled(torch.zeros(3), number), function(torch.zeros(3), number))
