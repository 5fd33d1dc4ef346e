"""Sizes that change from call to call: the same results, and few compilations."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from tests.semantics.compare import assert_same, with_gradients
from tests.semantics.sizes import CASES

TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


def counting(options: dict | None = None):
    """A backend that counts its graphs."""
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return lab.backend.inductor_lab(module, inputs, options=options)

    return backend, graphs


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
    backend, graphs = counting()
    compiled = torch.compile(case.function, backend=backend)
    for size in (7, 64, 100, 1000, 33, 2):
        assert_same(compiled(*case.make(size)), case.function(*case.make(size)), **TOLERANCE)
    assert len(graphs) == 2


@pytest.mark.parametrize("name", ["pointwise", "full_reductions", "layer_norm", "scans"])
def test_marked_dimension(name: str) -> None:
    case = CASES[name]
    backend, graphs = counting()
    compiled = torch.compile(case.function, backend=backend)
    for size in (7, 64, 100, 1000, 2):
        given = case.make(size)
        torch._dynamo.mark_dynamic(given[0], given[0].dim() - 1 if name == "layer_norm" else 0)
        assert_same(compiled(*given), case.function(*case.make(size)), **TOLERANCE)
    assert len(graphs) == 1
