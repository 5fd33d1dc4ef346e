"""Ints and floats from Python, once they are symbolic: places, sizes, arithmetic, errors."""

from __future__ import annotations

import pytest

from tests.semantics.numbers import (
    FLOAT_VALUES,
    FLOATS,
    FOUND,
    INT_VALUES,
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
