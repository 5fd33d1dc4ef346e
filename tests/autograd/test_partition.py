"""The partition: gradients are correct, and the saved bytes depend on the budget."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import inductor_lab as lab
from tests.autograd.backend import PartitionOnly, compiled

FUNCTIONS = {
    "trig": lambda x, w: torch.sin(x) ** 2 + torch.cos(x) ** 2,
    "chain": lambda x, w: x.sin().exp().tanh().sigmoid().log(),
    "matmul": lambda x, w: (x @ w).relu() @ w,
    "gelu": lambda x, w: F.gelu(x @ w) @ w.t(),
    "softmax": lambda x, w: F.softmax(x @ w, -1) * x,
    "log_softmax": lambda x, w: F.log_softmax(x @ w, -1),
    "layer_norm": lambda x, w: F.layer_norm(x @ w, (8,), w[0], w[1]),
    "attention": lambda x, w: F.scaled_dot_product_attention(
        (x @ w)[None, None], x[None, None], (x * 2)[None, None]
    ),
    "cat": lambda x, w: torch.cat([x.sin(), x.cos() @ w], 0),
    "views": lambda x, w: (x.t().reshape(4, -1)[1:].exp() * w.sum()).transpose(0, 1),
    "broadcast": lambda x, w: (x[:, None, :] * w[None]).sum(1).cos(),
    "two_outputs": lambda x, w: (x.exp() @ w, x.exp().sum(0)),
    "residual": lambda x, w: x + (x + (x @ w).relu() @ w).tanh() @ w,
    "division": lambda x, w: x / (x.norm(dim=-1, keepdim=True) + 1) + x.var(0),
    "where": lambda x, w: torch.where(x > 0, x.exp(), (x @ w).sin()),
    "cumulative": lambda x, w: x.cumsum(0) * x.amax(1, keepdim=True),
    "indexing": lambda x, w: x[torch.tensor([0, 2, 2])] @ w[:, ::2],
    "conv": lambda x, w: F.conv1d(x[None], w[:, :, None].repeat(1, 1, 3)[:, :6], padding=1),
    "pool": lambda x, w: F.max_pool2d((x @ w)[None, None], 2),
    "input_changed": lambda x, w: x.clone().mul_(2).add_(x @ w).exp_(),
    "no_tangent": lambda x, w: (x.detach().sin() * w).sum(),
}


def _gradients(fn, inputs):
    copies = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    results = fn(*copies)
    results = results if isinstance(results, tuple) else (results,)
    weights = [torch.linspace(0.1, 1, r.numel(), dtype=r.dtype).view(r.shape) for r in results]
    sum((r * w).sum() for r, w in zip(results, weights, strict=True)).backward()
    return [*results, *(copy.grad for copy in copies)]


def _assert_same(left, right):
    for ours, eager in zip(left, right, strict=True):
        assert (ours is None) == (eager is None)
        if eager is not None:
            torch.testing.assert_close(ours, eager)


@pytest.mark.parametrize("budget", [1.0, 0.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_equal_eager(name, budget):
    shape = (6, 6) if name == "conv" else (8, 8)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(*shape, generator=generator, dtype=torch.float64)
    w = torch.randn(8, 8, generator=generator, dtype=torch.float64)
    x = x[:, :8] if name != "conv" else x
    fn = FUNCTIONS[name]
    ours, backend = compiled(fn, budget)
    _assert_same(_gradients(ours, (x, w)), _gradients(fn, (x, w)))
    for made in backend.partitions:
        assert made.bytes_if_min <= made.cut_bytes


def test_trig_saves_only_its_input():
    ours, backend = compiled(FUNCTIONS["trig"])
    _gradients(lambda x: ours(x, None), [torch.randn(10)])
    (made,) = backend.partitions
    assert [(v.name, v.is_input) for v in made.saved] == [("primals_1", True)]
    assert made.cut_bytes == 0
    assert {r.name for r in made.recomputed} == {"sin", "cos"}
    assert made.bytes_if_all_saved == 4 * 40


@pytest.mark.parametrize("name", ["gelu", "residual", "softmax", "layer_norm"])
def test_a_smaller_budget_keeps_fewer_bytes(name):
    kept = []
    inputs = [torch.randn(8, 8), torch.randn(8, 8)]
    for budget in (1.0, 0.5, 0.0):
        ours, backend = compiled(FUNCTIONS[name], budget)
        _gradients(ours, inputs)
        kept.append(backend.partitions[0].cut_bytes)
    assert kept[0] > kept[2] == 0
    assert kept[1] <= 0.5 * kept[0]


def test_matmul_is_recomputed_only_below_budget_one():
    inputs = [torch.randn(8, 8), torch.randn(8, 8)]
    at_one, backend = compiled(FUNCTIONS["residual"], 1.0)
    _gradients(at_one, inputs)
    assert not any("mm" in r.op for r in backend.partitions[0].recomputed)
    at_zero, backend = compiled(FUNCTIONS["residual"], 0.0)
    _gradients(at_zero, inputs)
    assert any("mm" in r.op for r in backend.partitions[0].recomputed)


@pytest.mark.parametrize("budget", [1.0, 0.0])
def test_dropout_uses_one_mask_in_both_directions(budget):
    ours, backend = compiled(lambda x: F.dropout(x.exp(), 0.5), budget)
    x = torch.randn(1000, requires_grad=True)
    y = ours(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())
    assert 300 < (y == 0).sum() < 700
    kept = [v for v in backend.partitions[0].saved if not v.is_input]
    assert any("random" in v.why for v in kept)


def _block(x, w):
    return ((x @ w).sin() @ w).cos()


def test_checkpointed_region_is_recomputed():
    def plain(x, w):
        return _block(_block(x, w), w).sum()

    def checkpointed(x, w):
        inner = checkpoint(_block, x, w, use_reentrant=False)
        return checkpoint(_block, inner, w, use_reentrant=False).sum()

    inputs = [torch.randn(8, 8), torch.randn(8, 8)]
    kept = {}
    for fn in (plain, checkpointed):
        ours, backend = compiled(fn)
        _assert_same(_gradients(ours, inputs), _gradients(fn, inputs))
        kept[fn] = backend.partitions[0]
    assert kept[checkpointed].cut_bytes < kept[plain].cut_bytes
    assert kept[checkpointed].cut_bytes == 8 * 8 * 4
    assert any("mm" in r.op for r in kept[checkpointed].recomputed)


def test_a_checkpointed_dropout_keeps_its_mask():
    def block(x, w):
        mask = torch.rand_like(x) > 0.5
        return ((x @ w).sin() * mask) @ w

    def fn(x, w):
        return checkpoint(block, x, w, use_reentrant=False).exp()

    ours, backend = compiled(fn)
    _gradients(ours, [torch.randn(8, 8), torch.randn(8, 8)])
    kept = {v.nbytes for v in backend.partitions[0].saved if not v.is_input}
    assert kept == {64, 256}, "the mask in bools, and the result of exp"
    assert any("mm" in r.op for r in backend.partitions[0].recomputed)


def test_symbolic_sizes_are_saved():
    def fn(x, w):
        return (x @ w).sin().sum(0) * x.shape[0] / (x.shape[0] + 1)

    ours, backend = compiled(fn, dynamic=True)
    for rows in (3, 5):
        inputs = [torch.randn(rows, 8), torch.randn(8, 8)]
        _assert_same(_gradients(ours, inputs), _gradients(fn, inputs))
    assert len(backend.partitions) == 1
    names = {v.name for v in backend.partitions[0].saved}
    nodes = backend.joints[0].graph.nodes
    sizes = {n.name for n in nodes if n.op == "placeholder" and not n.tensor}
    assert names & sizes


@pytest.mark.parametrize("dynamic", [False, True])
def test_backward_is_compiled_with_its_forward(dynamic):
    x = torch.randn(4, 4, requires_grad=True)
    ours, backend = compiled(lambda x: x.sin(), dynamic=dynamic)
    y = ours(x)
    assert backend.order == ["forward", "backward"]
    y.sum().backward()
    assert backend.order == ["forward", "backward"]
    torch.testing.assert_close(x.grad, x.detach().cos())


def test_recomputed_ops_run_just_before_their_use():
    """At budget 0 the backward must not start by recomputing the complete forward."""

    def fn(x, w):
        for _ in range(4):
            x = (x @ w).sin()
        return x

    ours, backend = compiled(fn, 0.0)
    _gradients(ours, [torch.randn(4, 4), torch.randn(4, 4)])
    nodes = [n for n in backend.partitions[0].backward.nodes if n.op == "call_function"]
    first_cos = next(i for i, n in enumerate(nodes) if "cos" in n.target)
    first_gradient = next(i for i, n in enumerate(nodes) if "tangents_1" in n.inputs)
    assert first_gradient == first_cos + 1


def test_every_value_has_a_decision():
    ours, backend = compiled(FUNCTIONS["gelu"])
    _gradients(ours, [torch.randn(8, 8), torch.randn(8, 8)])
    (made,), (joint,) = backend.partitions, backend.joints
    assert made.about("mm").choice == "saved"
    assert "expensive" in made.about("mm").reasons[0]
    known = {node.name for node in joint.graph.nodes}
    assert all(decision.node in known and decision.reasons for decision in made.decisions)
    assert str(made).startswith("Partition(")


def test_joint_graph_runs():
    ours, backend = compiled(FUNCTIONS["matmul"])
    x, w = torch.randn(8, 8), torch.randn(8, 8)
    _gradients(ours, [x, w])
    (joint,) = backend.joints
    assert (joint.primals, joint.tangents) == (("primals_1", "primals_2"), ("tangents_1",))
    eager = _gradients(FUNCTIONS["matmul"], [x, w])
    tangent = torch.linspace(0.1, 1, 64).view(8, 8)
    _assert_same(joint.run(x, w, tangent), eager)


def test_forward_and_backward_lead_back_to_the_joint_graph():
    ours, backend = compiled(FUNCTIONS["softmax"])
    _gradients(ours, [torch.randn(8, 8), torch.randn(8, 8)])
    (made,) = backend.partitions
    for graph in (made.forward, made.backward):
        for node in graph.nodes:
            if node.op != "output":
                assert node.came_from == (node.name,)


def test_a_saved_input_that_is_written_later():
    def function(x, state):
        y = x * state.clone()
        state.add_(1)
        return y

    x, before = torch.randn(3, requires_grad=True), torch.randn(3)
    state = before.clone()
    torch.compile(function, backend=PartitionOnly())(x, state).sum().backward()
    torch.testing.assert_close(state, before + 1)
    torch.testing.assert_close(x.grad, before)


def test_cross_entropy_saves_no_matrix_of_ones_and_zeros() -> None:
    """The one in each row is recomputed by comparing positions: no other saved value is as large as
    the logits."""
    x, target = torch.randn(64, 300, requires_grad=True), torch.arange(64)
    graph = lab.inspect(F.cross_entropy, x, target).graphs[0]
    large = [saved.name for saved in graph.partition.saved if saved.nbytes >= x.nbytes]
    assert large == ["primals_1"]
    (ours,) = torch.autograd.grad(lab.compile(F.cross_entropy)(x, target), x)
    (theirs,) = torch.autograd.grad(F.cross_entropy(x, target), x)
    torch.testing.assert_close(ours, theirs)
