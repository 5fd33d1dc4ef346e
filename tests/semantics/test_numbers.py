"""Ints and floats from Python, once they are symbolic: places, sizes, arithmetic, errors."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

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
def test_integers_of_more_than_64_bits_are_refused(text: str) -> None:
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
def test_decimals_are_rounded_to_every_bit(dtype: torch.dtype) -> None:
    x = torch.cat([wave(500) * scale for scale in (1e-3, 1.0, 1e2, 1e4)]).to(dtype)
    compiled = torch.compile(lambda x, n: x.round(decimals=n), backend="inductor_lab")
    for n in (2, -1, 3, -3, 1, 6):
        torch.testing.assert_close(compiled(x, n), x.round(decimals=n), rtol=0, atol=0)


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize(
    "text",
    [
        "a + (1 << n)",  # refuses a negative n
        "torch.arange(12).view(max(n, 1) % 3 + 1, -1) + 0",  # strides with the user's own maximum
        "torch.zeros(3, max(n, 1)) + torch.arange(3)[:, None]",
        "a.view(-1)[(-n) % 5:] + 1",  # a remainder of what is negative
    ],
)
def test_ints_in_sizes_and_strides(text: str, language: str) -> None:
    check(text, INT_VALUES, language=language)


@pytest.mark.parametrize("text", ["(a.abs() + 1) ** (x % 2)", "a.lerp(a + 1, x // 0.5)"])
def test_floats_that_look_whole(text: str) -> None:
    check(text, FLOAT_VALUES[:5])
