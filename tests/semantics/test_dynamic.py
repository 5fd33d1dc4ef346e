"""Sizes that change between calls: the same results, and few compilations."""

from __future__ import annotations

from functools import partial

import pytest
import torch

import inductor_lab as lab
from inductor_lab.api.backend import inductor_lab
from tests.semantics.compare import assert_same, with_gradients
from tests.semantics.sizes import CASES

TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


def graphs_of(function, calls, backend) -> int:
    """The number of graphs that torch.compile captures for some calls, whose results are
    checked."""
    torch.compiler.reset()
    count = 0

    def counting(module, inputs):
        nonlocal count
        count += 1
        return backend(module, inputs)

    compiled = torch.compile(function, backend=counting)
    for make in calls:
        assert_same(compiled(*make()), function(*make()), **TOLERANCE)
    return count


def uncompiled(module, inputs):
    return module.forward


@pytest.mark.parametrize("name", CASES)
def test_all_sizes(name: str) -> None:
    case = CASES[name]
    compiled = lab.compile(case.function, dynamic=True)
    for size in case.sizes:
        ours, theirs = case.make(size), case.make(size)
        expected = case.function(*theirs)
        assert_same(compiled(*ours), expected, strides=size > 2, **TOLERANCE)
        assert_same(ours, theirs)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    case = CASES[name]
    if name in ("arange", "writes_its_input"):
        pytest.skip("nothing to differentiate")
    compiled = lab.compile(case.function)
    for size in case.sizes[:4]:
        given = [x if torch.is_tensor(x) else torch.tensor(x) for x in case.make(size)]
        expected = with_gradients(case.function, given)
        assert_same(with_gradients(compiled, given), expected, **TOLERANCE)


@pytest.mark.parametrize("name", ["pointwise", "softmaxes", "views", "cat", "takes_an_int"])
def test_second_size_makes_it_dynamic(name: str) -> None:
    case = CASES[name]
    calls = [partial(case.make, size) for size in (7, 64, 100, 1000, 33)]
    ours = graphs_of(case.function, calls, inductor_lab)
    assert ours == graphs_of(case.function, calls, uncompiled) == 2


@pytest.mark.parametrize("name", ["pointwise", "full_reductions", "layer_norm", "scans"])
def test_marked_dimension(name: str) -> None:
    case = CASES[name]

    def marked(size):
        given = case.make(size)
        torch._dynamo.mark_dynamic(given[0], given[0].dim() - 1 if name == "layer_norm" else 0)
        return given

    calls = [partial(marked, size) for size in (7, 64, 100, 1000, 2)]
    assert graphs_of(case.function, calls, inductor_lab) == 1


def test_two_results_in_one_storage_are_passed_to_the_next_graph() -> None:
    """Neither is a view of the other: Dynamo could not find the source of the base's sizes."""

    def function(x):
        half = x.to(torch.bfloat16)
        same = half.detach()
        torch._dynamo.graph_break()
        return half.reshape(-1)[:9] * 2, same.tan()

    compiled = lab.compile(function, dynamic=True)
    for rows in (4, 5):
        x = torch.arange(rows * 6).reshape(rows, 6).mT
        assert_same(compiled(x), function(x))


@pytest.mark.parametrize(
    "view", [lambda x: x.expand_as(x), lambda x: x[1:], lambda x: x.mT, lambda x: x[..., 1:, :1]]
)
@pytest.mark.parametrize("write", [lambda x: x.add_(1), lambda x: x[..., ::2].mul_(2)])
def test_a_view_of_a_written_input_has_the_gaps_of_the_input(view, write) -> None:
    """`aot_eager` gives it the strides of the computed value."""

    def function(x):
        write(x)
        return view(x)

    compiled = lab.compile(function, dynamic=True)
    for rows, columns in ((3, 8), (5, 10)):
        given, expected = (torch.arange(2.0 * rows * columns) for _ in range(2))
        given, expected = (x.reshape(2, rows, columns)[..., ::2] for x in (given, expected))
        result = compiled(given)
        assert_same((result, given), (function(expected), expected))
        assert result.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()


def merged(x):
    """A view, but only for an even number of rows: a guard merges two dimensions."""
    return x[::2].transpose(0, -1).flatten()


@pytest.mark.parametrize("function", [
    lambda x: (merged(x), x[::2] * 2),
    lambda x: merged(x.add_(1)),
    lambda x: (merged(x), x.add_(1))[0],
    lambda x: merged(x).mul_(2),
])  # fmt: skip
def test_a_view_that_depends_on_a_guard(function) -> None:
    """Its strides are part of the result: AOTAutograd makes the view from the input and these."""
    compiled = lab.compile(function, dynamic=True)
    for rows, columns in ((20, 33), (5, 7), (4, 9), (2, 5)):
        given, expected = (torch.arange(rows * columns).reshape(columns, rows) for _ in range(2))
        given, expected = given.flip(0).movedim(0, -1), expected.flip(0).movedim(0, -1)
        assert_same((compiled(given), given), (function(expected), expected), strides=True)
