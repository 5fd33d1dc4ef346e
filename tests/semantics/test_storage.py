"""Storage that is freed and allocated again inside compiled functions, as in FSDP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import inductor_lab as lab
from tests.semantics.compare import assert_same, wave

Program = Callable[..., Any]
BYTES = 64


def freed() -> torch.Tensor:
    x = wave(4, 4)
    x.untyped_storage().resize_(0)
    return x


def frees_its_input(x, y):
    result = x.sin() + y
    x.untyped_storage().resize_(0)
    return result


def frees_its_input_after_a_write(x, y):
    result = x + 1
    x.mul_(2)
    x.untyped_storage().resize_(0)
    return result


def frees_a_copy_of_its_input(x, y):
    copied = x.clone()
    result = copied.sin()
    copied.untyped_storage().resize_(0)
    return result + y


def frees_through_a_view(x, y):
    view = x[1:]
    result = view.sin()
    view.untyped_storage().resize_(0)
    return result


def gives_memory_back(x, y):
    x.untyped_storage().resize_(BYTES)
    x.copy_(y)
    return x * 2


def gives_memory_and_takes_it(x, y):
    x.untyped_storage().resize_(BYTES)
    x.copy_(y)
    result = (x @ y).sin()
    x.untyped_storage().resize_(0)
    return result


def takes_memory_and_gives_it(x, y):
    x.untyped_storage().resize_(0)
    x.untyped_storage().resize_(BYTES)
    x.fill_(3)
    return x + y


def gives_more_than_before(x, y):
    x.untyped_storage().resize_(2 * BYTES)
    return x.fill_(1) + y


def takes_the_storage_of_another(x, y):
    x.untyped_storage().resize_(BYTES)
    x.set_(y)
    return x * 2


def knows_the_size_alone(x, y):
    return y + x.shape[0]


def trains_with_what_it_is_given(x, y):
    with torch.no_grad():
        x.untyped_storage().resize_(BYTES)
        x.copy_(y)
    return x.mul(y).sin()


def trains_and_takes_memory_of_a_copy(x, y):
    product = x * y
    other = product.detach().clone()
    other.untyped_storage().resize_(0)
    return product.cos()


GIVEN: list[tuple[Program, bool, bool]] = [
    # program, whether its first input is freed, whether gradients are computed
    (frees_its_input, False, False),
    (frees_its_input_after_a_write, False, False),
    (frees_a_copy_of_its_input, False, False),
    (frees_through_a_view, False, False),
    (gives_memory_back, True, False),
    (gives_memory_and_takes_it, True, False),
    (takes_memory_and_gives_it, False, False),
    (gives_more_than_before, False, False),
    (takes_the_storage_of_another, True, False),
    (knows_the_size_alone, True, False),
    (trains_with_what_it_is_given, True, True),
    (trains_and_takes_memory_of_a_copy, False, True),
]


def outcome(function: Program, empty: bool, gradients: bool) -> list[Any]:
    """Results of two calls, the values and the bytes of the inputs, and gradients."""
    found: list[Any] = []
    for _ in range(2):
        x = (freed() if empty else wave(4, 4)).requires_grad_(gradients)
        y = (wave(4, 4) + 2).requires_grad_(gradients)
        result = function(x, y)
        found += [result, x.untyped_storage().nbytes(), y]
        if gradients:
            result.sum().backward()
            found += [x.grad, y.grad]
        if x.untyped_storage().nbytes() > 0:
            found.append(x)
    return found


def check(number: int) -> None:
    program, empty, gradients = GIVEN[number]
    expected = outcome(program, empty, gradients)
    assert_same(outcome(lab.compile(program), empty, gradients), expected)


@pytest.mark.parametrize("number", range(len(GIVEN)), ids=[p.__name__ for p, _, _ in GIVEN])
def test_storage_is_resized_as_in_eager_mode(number: int) -> None:
    check(number)


def test_storage_is_resized_in_one_graph_with_symbolic_sizes() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        result = x.sin()
        x.untyped_storage().resize_(0)
        return result

    compiled = torch.compile(program, backend="inductor_lab", fullgraph=True, dynamic=True)
    for rows in (3, 5, 2):
        x = wave(rows, 4)
        expected = x.sin()
        assert_same(compiled(x), expected)
        assert x.untyped_storage().nbytes() == 0


def test_a_parameter_is_freed_after_the_forward_and_filled_before_the_backward() -> None:
    def step(function: Program) -> list[Any]:
        weight = torch.nn.Parameter(wave(4, 4))
        kept = weight.detach().clone()
        x = wave(3, 4).requires_grad_()
        result = function(x, weight)
        weight.untyped_storage().resize_(0)
        weight.untyped_storage().resize_(BYTES)
        with torch.no_grad():
            weight.data.copy_(kept)
        result.sum().backward()
        return [result, x.grad, weight.grad]

    def program(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return (x @ weight).sin()

    assert_same(step(lab.compile(program)), step(program))
