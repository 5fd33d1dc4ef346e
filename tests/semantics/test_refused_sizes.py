"""Sizes that do not fit, from symbolic numbers: the same errors as in eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.semantics.compare import assert_same, wave

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "expand": lambda x, n: x.expand(n, 4) + 1,
    "expand_with_a_new_dimension": lambda x, n: x[None].expand(n, -1, 4) + 1,
    "pad": lambda x, n: F.pad(x, (1, n)) + 1,
    "pad_both_sides": lambda x, n: F.pad(x, (n, n, 1, 1), value=2.0),
    "slice_scatter": lambda x, n: x.slice_scatter(torch.ones(1, 2), 1, 0, n),
    "slice_scatter_of_its_size": lambda x, n: x.slice_scatter(x[:, :n] * 2, 1, 0, n),
    "select_scatter": lambda x, n: x.select_scatter(torch.ones(abs(n)), 1, 0),
    "diagonal_scatter": lambda x, n: x.diagonal_scatter(torch.ones(1), n),
    "as_strided": lambda x, n: x.as_strided((2,), (1,), n) + 1,
    "as_strided_of_a_result": lambda x, n: (x * 2).as_strided((2,), (1,), n) + 1,
    "as_strided_returned": lambda x, n: (x * 2).as_strided((2,), (1,), n),
    "as_strided_of_a_slice": lambda x, n: (x * 2)[:, 1::2].as_strided((2,), (1,), n),
    "as_strided_with_a_step": lambda x, n: (x * 2).as_strided((2,), (n,), 0),
    "as_strided_with_a_size": lambda x, n: (x * 2).as_strided((n, 1), (1, 1), 2),
    "as_strided_scatter": lambda x, n: x.as_strided_scatter(torch.ones(2), (2,), (1,), n),
}
NUMBERS = (2, 1, -1, -2, 3, 0, 4, -4, -5, 7)


def outcome(function: Callable[..., Any], *given: Any) -> Any:
    try:
        return function(*given)
    except (RuntimeError, IndexError) as refused:
        return refused


def check(function: Callable[..., Any], *given: Any) -> None:
    """Agrees with the original function for all numbers, including errors."""
    torch.compiler.reset()
    compiled = torch.compile(function, backend="inductor_lab")
    for number in NUMBERS:
        x = wave(1, 4)
        read = [torch.tensor(number) if kind is torch.Tensor else number for kind in given]
        expected, found = outcome(function, x, *read), outcome(compiled, x, *read)
        if isinstance(expected, Exception) or isinstance(found, Exception):
            same = isinstance(found, Exception) and isinstance(expected, Exception)
            assert same, f"{number}: {found!r} instead of {expected!r}"
        else:
            assert_same(found, expected)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_int(name: str) -> None:
    check(FUNCTIONS[name], int)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"diagonal_scatter", "slice_scatter"}))
@torch._dynamo.config.patch(capture_scalar_outputs=True)
def test_a_number_in_a_tensor(name: str) -> None:
    function = FUNCTIONS[name]
    check(lambda x, n: function(x, n.item()), torch.Tensor)


@torch._dynamo.config.patch(capture_scalar_outputs=True)
def test_expand_to_a_negative_number_that_is_also_an_operand_raises() -> None:
    """torch has one symbol for both uses; eager mode makes a length of 1 for the one and adds the
    other."""
    compiled = torch.compile(lambda x, n: x.expand(n.item(), 4) + n, backend="inductor_lab")
    assert_same(compiled(wave(1, 4), torch.tensor(3)), wave(1, 4).expand(3, 4) + 3)
    both = torch.compile(lambda x, n: x.expand(k := n.item(), 4) + k, backend="inductor_lab")
    with pytest.raises(RuntimeError, match="expand keeps a size only for a literal -1"):
        both(wave(1, 4), torch.tensor(-1))


def test_a_source_of_another_shape_raises() -> None:
    x = wave(3, 4)
    for function in (
        lambda x: x.select_scatter(torch.ones(2), 1, 0),
        lambda x: x.slice_scatter(torch.ones(1, 2), 1, 0, 2),
        lambda x: x.diagonal_scatter(torch.ones(1)),
    ):
        with pytest.raises(RuntimeError, match=r"source|src"):
            torch.compile(function, backend="inductor_lab")(x)
