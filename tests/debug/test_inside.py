"""Results other than plain tensors: dataclasses, subclasses, nested, sparse and quantized."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

import inductor_lab as lab
from inductor_lab.bench.jobs import difference, values_in
from inductor_lab.compiler.capture.eager import eager_cost
from inductor_lab.debug.compare.flatten_values import NotCompared, leaves_in, tensors_in
from inductor_lab.debug.compare.functorch_transforms import transforms_end, transforms_on
from inductor_lab.debug.compare.values import copies, named_results, plain_tensors, widened


@dataclass
class Found:
    scores: torch.Tensor
    parts: list[torch.Tensor]
    count: int = 3


class Marked(torch.Tensor):
    """A subclass without operators of its own."""


class Plain:
    def __init__(self, value: torch.Tensor) -> None:
        self.value, self.same = value, self


def x() -> torch.Tensor:
    return torch.arange(12.0).view(3, 4) / 7 - 0.5


def nested() -> torch.Tensor:
    rows = [torch.ones(3, 4), torch.full((5, 4), 0.5)]
    return torch.nested.nested_tensor(rows, layout=torch.jagged)


def trained() -> torch.Tensor:
    return nested().requires_grad_()


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {
    "a dataclass": (lambda x: Found(x + 1, [x.sin()]), x),
    "a dataclass that is given": (lambda d: replace(d, scores=d.scores * 2),
                                  lambda: Found(x(), [x()])),
    "an object": (lambda x: Plain(x * 2), x),
    "a subclass": (lambda x: x.sin() * x, lambda: x().as_subclass(Marked).requires_grad_()),
    "a nested tensor": (lambda x: x.sin() * x, nested),
    "a nested tensor with a dimension more": (lambda x: x.unflatten(-1, (2, 2)), trained),
    "a compressed matrix": (lambda x: (x * 2).to_sparse_csr(), x),
    "a compressed matrix that is given": (lambda x: x * 2, lambda: x().to_sparse_csr()),
    "a sparse tensor": (lambda x: (x * 2).to_sparse(), x),
    "a sparse tensor that is given": (lambda x, y=None: x * 2, lambda: x().to_sparse()),
    "None and a dtype": (lambda x: (x * 2, None, x.dtype), x),
    "an array": (lambda x: (x * 2).numpy(), x),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_nested_in_results_are_compared(name: str) -> None:
    function, given = PROGRAMS[name]
    found = lab.blame(function, given())
    assert found.verdict in ("right", "rounding") and found.stages[0].verdict == "right"
    assert not found.notes


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
@pytest.mark.filterwarnings("ignore:TypedStorage:UserWarning")
def test_quantized_results_are_compared() -> None:
    found = lab.blame(lambda x: torch.quantize_per_tensor(x.sin(), 0.1, 10, torch.quint8), x())
    assert found.verdict in ("right", "rounding")
    assert {"result 0.int_repr", "result 0.q_scale"} <= found.results.keys()


def test_a_value_in_a_dataclass_that_differs_is_named() -> None:
    calls = iter(range(100))

    def drifts(x: torch.Tensor) -> Found:
        return Found(x + 1, [x * next(calls)])

    found = lab.blame(drifts, x())  # an iterator cannot be put back
    assert found.stages[0].verdict == "unknown" and "result 0.parts[0]" in found.stages[0].says


def test_values_that_cannot_be_compared_are_reported() -> None:
    def lazily(x: torch.Tensor) -> Iterator[torch.Tensor]:
        return (i for i in [x * 2])

    found = lab.blame(lazily, x())
    assert found.verdict == "right"
    assert found.notes == ("result 0: a generator cannot be compared",)
    found = lab.blame(lambda x: (x * 2, lambda: x), x())  # another function in each call
    assert found.verdict == "right" and found.notes == ("result 1: a function cannot be compared",)


def test_a_function_without_a_graph_is_reported() -> None:
    found = lab.blame(lambda x: {1, 2}, x())
    assert found.stages[0].says == "nothing is captured, all runs as in eager"
    assert found.summary == "right: nothing is captured, all runs as in eager"


def test_copies_keep_shared_memory_and_classes() -> None:
    base = torch.zeros(4)
    marked = torch.ones(2).as_subclass(Marked)
    marked.label = "L"  # type: ignore[attr-defined]
    matrix = torch.eye(3).to_sparse_csr()
    first, second, of_class, sparse, rows = copies([base, base[1:], marked, matrix, nested()])
    first[1] = 7.0
    assert second[0] == 7.0 and base[1] == 0.0
    assert type(of_class) is Marked and of_class.label == "L"
    assert sparse.layout is torch.sparse_csr and rows.layout is torch.jagged
    wide = widened([marked, matrix, nested(), base])
    assert [value.dtype for value in wide] == [torch.float64] * 4
    assert torch.equal(wide[2].values(), nested().values().double())


def test_flattened_values_have_names() -> None:
    matrix = torch.eye(2).to_sparse_csr()
    assert [n for n, _ in tensors_in("r", matrix)][1:] == ["r.col_indices", "r.values"]
    assert [n for n, _ in tensors_in("r", nested())][:2] == ["r.values", "r.offsets"]
    value = {"a": Found(x(), [x()]), "b": np.float32(2.5), "c": threading.Lock()}
    found = dict(leaves_in("r", value))
    assert list(found) == [
        *("r['a'].scores", "r['a'].parts[0]", "r['a'].count"), "r['b']", "r['c']"
    ]  # fmt: skip
    assert found["r['b']"].item() == 2.5 and isinstance(found["r['c']"], NotCompared)
    assert str(found["r['c']"]) == "a lock cannot be compared"
    alone = (None, torch.float32, torch.strided, len, int, ...)
    assert [leaf for _, leaf in leaves_in("r", alone)] == list(alone)
    kept = plain_tensors(dict(named_results(Found(base := x(), []))), kept=True)
    base.zero_()
    assert kept["result 0.scores"].sum() != 0


def test_blame_of_a_hessian() -> None:
    def curvature(x: torch.Tensor) -> Any:
        return torch.func.hessian(lambda v: (v.sin() * v).sum())(x)

    given = torch.linspace(-1, 1, 4)
    inspected = lab.inspect(curvature, given)
    assert lab.blame(curvature, given.clone().requires_grad_()).verdict in ("right", "rounding")
    for again in (given.clone().requires_grad_(), given):
        assert inspected.blame(again).verdict in ("right", "rounding")


def test_transforms_are_exited_after_an_exception() -> None:
    def fails() -> None:
        with transforms_end():
            torch._C._functorch._vmap_increment_nesting(3, "error")
            torch._C._enter_dual_level()
            raise ValueError

    before = transforms_on()
    with pytest.raises(ValueError):
        fails()
    assert transforms_on() == before
    with torch.autograd.forward_ad.dual_level():  # torch admits one
        pass


def test_counting_eager_costs_exits_forward_gradient_levels() -> None:
    graphs: list[torch.fx.GraphModule] = []

    def keep(module: torch.fx.GraphModule, _: Any) -> Any:
        graphs.append(module)
        return module

    torch.compile(torch.func.hessian(lambda v: v.sin().sum()), backend=keep)(torch.ones(3))
    assert eager_cost(graphs[0], [torch.ones(3, requires_grad=True)]) is not None
    with torch.autograd.forward_ad.dual_level():
        pass


def test_nested_tensors_are_inspected() -> None:
    compilation = lab.inspect(lambda x: x.sin() * 2, nested())
    (facts,) = [n.tensor for n in compilation.capture.graphs[0].nodes if n.name == "sin"]
    assert facts is not None and facts.nbytes >= nested().values().nbytes
    assert compilation.graphs[0].forward.kernels
    assert compilation.blame().verdict in ("right", "rounding")



def test_bench_compares_dataclasses_and_strings() -> None:
    one, other = Found(torch.ones(2), []), Found(torch.full((2,), 3.0), [])
    assert difference(one, one) == 0.0 and difference(one, other) == 1.0
    assert difference((torch.ones(1), "a"), (torch.ones(1), "b")) == float("inf")
    assert difference(nested(), nested()) == 0.0
    assert [str(value) for value in values_in(one)][1:] == ["3"]


def jagged_views() -> list[torch.Tensor]:
    offsets = torch.tensor([0, 3, 7, 10])
    plain, trained = torch.randn(10, 4), torch.randn(10, 4, requires_grad=True)
    of = torch.nested.nested_tensor_from_jagged
    return [of(plain, offsets), of(plain, offsets).transpose(1, 2), of(trained, offsets)]


@pytest.mark.parametrize("number", range(3))
def test_the_copy_of_a_jagged_view_runs_the_same_code(number: int) -> None:
    """TorchDynamo guards on the base of a view, so a copy without a base did not run the code."""
    given = jagged_views()[number]
    steps = lab.inspect(lambda x: x.sin() * 2, given).steps().rest()
    assert steps.finished and any(step.kernel for step in steps.done)
    (made,) = steps.results["g0.forward"][:1]
    assert torch.allclose(made, torch.sin(given).values() * 2)
    (copy,) = copies([given])
    assert copy.requires_grad == given.requires_grad
    assert copy.values().data_ptr() != given.values().data_ptr()
