"""The timed work: its leaves are found, and every difference of results is found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import inductor_lab as lab
from inductor_lab.bench.jobs import Job, difference, leaves_of, tolerance, values_in
from inductor_lab.bench.run import copied, describe
from inductor_lab.compiler.base.errors import BadArguments


def test_the_gradient_of_all_leaves() -> None:
    model = torch.nn.Linear(3, 2)
    x = torch.randn(4, 3, requires_grad=True)
    result, *found = Job(model, (x,), {}, backward=True)()
    expected = torch.autograd.grad(model(x).sum(), [x, model.weight, model.bias])
    assert not result.requires_grad and len(found) == 3
    for gradient in expected:
        assert any(gradient.shape == f.shape and torch.equal(gradient, f) for f in found)


def test_leaves_of_shared_and_long_graphs() -> None:
    x, y = (torch.randn(2, requires_grad=True) for _ in range(2))
    z = x
    for _ in range(2000):
        z = z + y
    assert set(map(id, leaves_of([z, z * y, y]))) == {id(x), id(y)}


def test_results_in_any_nesting() -> None:
    found = list(values_in({"a": (1, [torch.ones(1)]), "b": None, "c": np.zeros(2)}))
    assert len(found) == 3


@pytest.mark.parametrize(
    ("expected", "found", "gap"),
    [
        (torch.tensor([1.0, 3.0]), torch.tensor([1.0, 3.4]), 0.1),
        (torch.tensor([1, 2]), torch.tensor([1, 5]), 1.0),
        (torch.tensor([float("nan"), 1.0]), torch.tensor([float("nan"), 1.0]), 0.0),
        (torch.tensor([1.0]), torch.tensor([float("nan")]), float("inf")),
        (torch.tensor([float("inf")]), torch.tensor([float("inf")]), 0.0),
        (torch.tensor([float("inf")]), torch.tensor([-float("inf")]), float("inf")),
        (torch.tensor([1.0]), torch.tensor([1.0, 1.0]), float("inf")),
        (torch.tensor([1.0]), torch.tensor([1]), float("inf")),
        (np.array([2.0]), np.array([2.0]), 0.0),
        (torch.tensor([1j]), torch.tensor([3j]), 1.0),
    ],
)
def test_difference(expected, found, gap) -> None:
    assert difference([expected], [found]) == pytest.approx(gap, rel=1e-5)


def test_fewer_results_differ() -> None:
    assert difference([torch.ones(1)], []) == float("inf")


def test_tolerance_follows_the_coarsest_result() -> None:
    assert tolerance([torch.ones(1, dtype=torch.float64)]) < tolerance([torch.ones(1)])
    mixed = [torch.ones(1), torch.ones(1, dtype=torch.bfloat16)]
    assert tolerance(mixed) == tolerance(mixed[1:])


def test_copies_share_only_what_was_shared() -> None:
    x, y = torch.randn(3, requires_grad=True), np.zeros(2)
    (a, b), more = copied(((x, x), {"y": [y]}))
    assert a is b and a is not x and a.requires_grad and a.is_leaf
    more["y"][0][0] = 7
    assert y[0] == 0


def test_descriptions_are_short() -> None:
    assert describe(torch.ones(2, 3)) == "f32[2, 3]"
    assert describe(np.zeros(4)) == "float64[4]"
    assert describe(3) == "3" and describe(list(range(100))) == "list"


def test_gradients_of_all_contenders_have_the_same_order() -> None:
    """The leaves of a compiled function have another order than in eager mode."""
    layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 5))
    x, y = torch.randn(2, 3, requires_grad=True), torch.randn(2, 5, requires_grad=True)

    def work(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y.sin() * layers(x)

    eager = Job(work, (x, y), {}, backward=True)()
    for other in (work, torch.compile(work, backend="inductor_lab")):
        assert difference(eager, Job(other, (x, y), {}, backward=True)()) < 1e-5
    result = work(x, y)
    expected = torch.autograd.grad(result, [x, y], torch.ones_like(result))
    assert difference(expected, tuple(eager[1:3])) < 1e-6


def test_a_function_that_calls_backward_itself_is_refused() -> None:
    def step(x):
        loss = (x * x).sum()
        loss.backward()
        return loss

    with pytest.raises(BadArguments, match="calls backward itself"):
        Job(step, (torch.ones(3, requires_grad=True),), {}, backward=True)()
    for fn in (step, lab.compile(step)):
        run = Job(fn, (torch.ones(3, requires_grad=True),), {}, backward=None)
        assert float(run()) == 3.0 and run.backward is False


def test_a_second_gradient_is_timed() -> None:
    def force(x):
        energy = (x * x * x).sum()
        (slope,) = torch.autograd.grad(energy, x, create_graph=True)
        return slope

    x = torch.ones(3, requires_grad=True)
    run = Job(force, (x,), {}, backward=None)
    values, gradient = run()
    assert run.backward is True and values.eq(3).all() and gradient.eq(6).all()


def test_an_error_in_the_backward_is_not_reported_as_a_missing_gradient() -> None:
    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            raise RuntimeError("a second time")

    with pytest.raises(RuntimeError, match="a second time"):
        Job(Failing.apply, (torch.ones(3, requires_grad=True),), {}, backward=None)()


def test_leaves_created_in_each_call_are_found() -> None:
    weight = torch.randn(3, requires_grad=True)
    kept: list[torch.Tensor] = []

    def own(x: torch.Tensor) -> torch.Tensor:
        leaf = x.clone().requires_grad_()
        kept[:] = [leaf]
        return (leaf.sin() * weight).sum()

    run = Job(own, (torch.ones(3),), {}, backward=None)
    for _ in range(4):
        _, *gradients = run()
        expected = weight * torch.ones(3).cos(), torch.ones(3).sin()
        for wanted in expected:
            assert any(torch.allclose(wanted, found) for found in gradients)
