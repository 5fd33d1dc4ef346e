"""The cost in eager mode, counted on fake tensors, equals what torch's profiler reports."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

import inductor_lab as lab
from inductor_lab.compiler.capture.eager import ALLOCATIONS

VIEWS = {"t", "transpose", "expand", "view", "reshape", "as_strided", "unsqueeze", "squeeze",
         "select", "slice", "permute", "_unsafe_view", "resize_", "to", "detach_", "contiguous",
         "result_type", "resolve_conj"}  # fmt: skip


def norm(x, w):
    return F.layer_norm(torch.softmax(x @ w, -1), (16,))


def attention(x, w):
    q = (x @ w).view(1, 8, 2, 8).transpose(1, 2)
    return F.scaled_dot_product_attention(q, q, q).sum()


def conditions(x, w):
    return torch.where(x > 0, F.gelu(x), x.clamp(-1, 1)) + F.linear(x, w, w[0])


@pytest.mark.parametrize("function", [norm, attention, conditions])
def test_calls_equal_those_of_the_profiler(function) -> None:
    """The counted calls are the outermost ones; every other event that computes something is inside
    one."""
    x, w = torch.randn(8, 16), torch.randn(16, 16)
    counted = lab.inspect(function, x, w).eager
    assert counted is not None
    names = dict(counted.calls)
    with profile(activities=[ProfilerActivity.CPU]) as found:
        function(x, w)
    events = [e for e in found.events() if e.name.startswith("aten::")]
    outermost = [op_of(e) for e in events if not within(e.cpu_parent, names)]
    assert Counter(name for name in outermost if name in names) == names
    left = {op_of(e) for e in events if not e.cpu_children and not within(e, names)}
    assert left <= VIEWS | set(ALLOCATIONS)


def op_of(event) -> str:
    return event.name.removeprefix("aten::")


def within(event, names) -> bool:
    """Is this event, or one that contains it, one of these operators?"""
    while event is not None:
        if op_of(event) in names:
            return True
        event = event.cpu_parent
    return False


def test_softmax_is_one_kernel_of_eager_and_five_ops_of_ours() -> None:
    c = lab.inspect(lambda x: x.softmax(-1), torch.randn(64, 100))
    assert c.kernels_text == "1 eager, 5 unfused → 1 fused"
    assert c.eager is not None
    assert (c.eager.bytes_read, c.eager.bytes_written) == (25_600, 25_600)


def trig(x, w):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2 + w[0]


@pytest.mark.parametrize("function", [trig, norm, attention, conditions])
def test_kept_bytes_equal_those_of_eager_hooks(function) -> None:
    """Measured with eager mode's own hooks: each storage once, those of inputs separately."""
    inputs = [torch.randn(size, 16, requires_grad=True) for size in (8, 16)]
    graph = lab.inspect(function, *inputs).graphs[0]
    held: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        held[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = function(*inputs)
    assert result.grad_fn is not None and graph.eager is not None and graph.partition is not None
    given = {tensor.data_ptr() for tensor in inputs}
    kept = sum(storage.nbytes() for storage in held.values())
    without_inputs = sum(s.nbytes() for place, s in held.items() if place not in given)
    assert 0 < without_inputs < kept
    assert (graph.eager.kept, graph.eager.kept_without_inputs) == (kept, without_inputs)
    assert graph.partition.bytes_if_all_saved == without_inputs
    assert f"eager keeps {without_inputs:,}" in str(graph.partition)


def test_eager_keeps_12_000_bytes_of_sin_and_cos_squared() -> None:
    x = torch.randn(1000, requires_grad=True)
    graph = lab.inspect(lambda x: torch.sin(x) ** 2 + torch.cos(x) ** 2, x).graphs[0]
    assert graph.eager is not None and graph.partition is not None
    assert (graph.eager.kept, graph.partition.bytes_if_all_saved) == (12_000, 8_000)


def test_gradients_count_too() -> None:
    x = torch.randn(8, 16, requires_grad=True)
    forward, both = (lab.inspect(torch.nn.functional.gelu, t).eager for t in (x.detach(), x))
    assert forward is not None and dict(forward.calls) == {"gelu": 1}
    assert both is not None and dict(both.calls) == {"gelu": 1, "gelu_backward": 1}


def cubes(x):
    return (x**3).sum() + (x.sin() * x).sum()


def test_gradients_inside_transforms_are_counted() -> None:
    """torch.func allows no hooks on saved tensors, so autograd's nodes are read."""
    x = torch.randn(8, requires_grad=True)
    without, both = (lab.inspect(torch.func.hessian(cubes), t).eager for t in (x.detach(), x))
    assert without is not None and without.kept == 0
    assert both is not None and both.kernels > without.kernels
    assert both.kept_inputs == 32 and both.kept_without_inputs > 0


@pytest.mark.parametrize("function", [trig, norm, attention, conditions])
def test_autograd_nodes_and_hooks_agree(function) -> None:
    """Inside a transform, hooks are not allowed; the kept bytes outside it are the same."""
    inputs = [torch.randn(size, 16, requires_grad=True) for size in (8, 16)]

    def transformed(x, w):
        return function(x, w), torch.func.grad(lambda y: y.sum())(x.detach())

    alone, beside = (lab.inspect(f, *inputs).eager for f in (function, transformed))
    assert alone is not None and beside is not None
    assert (beside.kept, beside.kept_inputs) == (alone.kept, alone.kept_inputs)


def test_symbolic_sizes_use_hints_and_unbacked_sizes_give_no_cost() -> None:
    x = torch.randn(8, 16)
    dynamic = lab.inspect(lambda x: x * 2, x, options={"dynamic": True}).eager
    assert dynamic is not None and dynamic.bytes == 2 * 8 * 16 * 4

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        unknown = lab.inspect(lambda x: x.nonzero() + 1, x)
    assert unknown.eager is None and "eager" not in unknown.kernels_text


def test_the_count_changes_nothing(tmp_path) -> None:
    x = torch.zeros(4)
    c = lab.inspect(lambda x: F.dropout(x.add_(1), 0.5), x)
    assert x.eq(1).all() and c.eager is not None
    loaded = lab.load(c.save(tmp_path / "c.json"))
    assert loaded.eager == c.eager


def test_attributes_of_a_graph_are_not_written() -> None:
    """An optimizer's parameters and state are attributes of its graph, and are written in place."""
    parameters = [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2, 2))]
    optimizer = torch.optim.AdamW(parameters, lr=0.1, foreach=False)
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()

    def state() -> list[torch.Tensor]:
        held = [t for values in optimizer.state.values() for t in values.values()]
        return [t.detach().clone() for t in (*parameters, *held)]

    seen: list[list[torch.Tensor]] = []

    class Watch(lab.Observer):
        def entered(self, phase: str) -> None:
            if phase == "eager":
                seen.append(state())

        def left(self, phase: str, result: object) -> None:
            if phase == "eager":
                seen.append(state())

    c = lab.inspect(lambda: optimizer.step(), observer=Watch())
    before, after = seen
    assert all(map(torch.equal, before, after)) and len(before) == 8
    assert c.eager is not None and dict(c.eager.calls)["addcdiv_"] == 2


def test_buffers_of_modules_are_not_written() -> None:
    norm = torch.nn.BatchNorm1d(4)
    c = lab.inspect(norm, torch.randn(8, 4))
    assert norm.num_batches_tracked == 1 and c.eager is not None
