"""The structure of programs: arguments and results of all kinds, modules, modes, graph breaks."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as fwAD
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

import inductor_lab as lab
from tests.semantics.compare import (
    assert_same,
    check_call,
    check_gradients,
    wave,
    weighted,
    with_gradients,
)


@dataclass
class Record:
    tensor: torch.Tensor
    count: int = 0


RESULTS = {
    "none": lambda x: None,
    "dict": lambda x: {"a": x + 1, "b": [x * 2, None, (x,)], "c": "text", "d": 3},
    "dataclass": lambda x: Record(x + 1, 3),
    "list": lambda x: [*x.unbind(0), x.chunk(2)],
    "module_of_functions": lambda x: torch.stack([f(x) for f in (torch.sin, torch.cos)]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results(name: str) -> None:
    check_call(RESULTS[name], lambda: [wave(4, 3)])


def test_keyword_arguments_and_modules() -> None:
    layers = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4, bias=False)})

    def function(x: torch.Tensor, which: str = "a", *, scale: int = 2) -> dict[str, Any]:
        return {"out": layers[which](x) * scale, "nothing": None}

    compiled = lab.compile(function)
    for which in "ab":
        for scale in (2, 3):
            x = wave(3, 4)
            assert_same(compiled(x, which, scale=scale), function(x, which, scale=scale))


def test_graph_break() -> None:
    def function(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    check_call(function, lambda: [wave(4)])


@pytest.mark.parametrize("sign", [1, -1])
def test_python_branches_on_a_value(sign: int) -> None:
    def function(x):
        count = int(x.sum().item() * 10)
        return x * count if x.sum() > 0 else x - 1

    check_call(function, lambda: [wave(4) * sign])


def test_compiled_functions_call_compiled_functions() -> None:
    inner = lab.compile(lambda x: x.sin())
    assert_same(lab.compile(lambda x: inner(x) + 1)(wave(4)), wave(4).sin() + 1)


def test_no_grad_and_inference_mode() -> None:
    def function(x):
        with torch.no_grad():
            y = x.sin()
        return y, x * 2

    found = lab.compile(function)(wave(4).requires_grad_())
    assert [t.requires_grad for t in found] == [False, True]
    double = lab.compile(lambda x: (x * 2).sin())
    assert_same(double(wave(4)), (wave(4) * 2).sin())
    with torch.inference_mode():
        assert_same(double(wave(4)), (wave(4) * 2).sin())


def test_requires_grad_may_differ_between_calls() -> None:
    compiled = lab.compile(lambda x: x * 2)
    assert not compiled(wave(4)).requires_grad
    assert compiled(wave(4).requires_grad_()).requires_grad


def test_backward_twice() -> None:
    x = wave(4).requires_grad_()
    result = lab.compile(lambda x: (x * 2).sin())(x).sum()
    result.backward(retain_graph=True)
    once = x.grad.clone()
    result.backward()
    assert_same(x.grad, 2 * once)


def test_gradients_of_gradients_raise_clearly() -> None:
    x = wave(4).requires_grad_()
    (first,) = torch.autograd.grad(lab.compile(lambda x: (x**3).sum())(x), x, create_graph=True)
    assert_same(first, 3 * x**2)
    with pytest.raises(RuntimeError, match="double backward"):
        torch.autograd.grad(first.sum(), x)


def test_function_transforms() -> None:
    def function(x):
        slope = torch.func.grad(lambda v: (v**3).sum())(x)
        rows = torch.func.vmap(lambda v: v.softmax(0))(x)
        return slope, rows, torch.func.jvp(torch.sin, (x,), (x,))

    check_call(function, lambda: [wave(4, 4)])
    inspected = lab.inspect(function, wave(4, 4))
    assert_same(inspected.result, function(wave(4, 4)))
    assert inspected.eager is not None and inspected.eager.kernels > 3, "eager's calls are counted"


def test_a_failed_cost_estimate_restores_all_modes() -> None:
    """Fake tensors do not know the number of nonzero elements, which is needed inside these
    modes."""
    found = torch.func.vmap(torch.func.grad(lambda v: (v * torch.tensor([2.0]).item()).sum()))

    def function(x):
        return found(x) * x.sum()

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        assert_same(lab.inspect(function, wave(4, 4)).result, function(wave(4, 4)))
    assert_same(torch.randn(3).requires_grad_().sigmoid().requires_grad, True)


def test_tangents_of_forward_mode() -> None:
    x, tangent = wave(4), wave(4) * 2
    compiled = lab.compile(lambda x, y: x.sin() * y)
    expected = compiled(x, x)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, tangent)
        found = fwAD.unpack_dual(compiled(dual, x.requires_grad_()))
        assert_same(found.tangent, x.cos() * x * tangent)
        found.primal.sum().backward()
    assert_same(x.grad, x.sin().detach())
    assert_same(compiled(x.detach(), x.detach()), expected)


@pytest.mark.parametrize("gradients", [False, True])
def test_fake_tensors_of_the_user_stay_fake(gradients: bool) -> None:
    """They have no memory that a kernel could read; this crashed the process."""
    compiled = lab.compile(lambda x: (x.sin() * 2).sum(-1))
    for _ in range(2):
        with FakeTensorMode():
            found = compiled(torch.empty(4, 5, requires_grad=gradients))
            assert isinstance(found, FakeTensor) and found.shape == (4,)
        x = wave(4, 5)
        assert_same(compiled(x), (x.sin() * 2).sum(-1))


PROMOTED = {
    "int into float": lambda row: row + 1,
    "float into int": lambda row: row.long() * 2.5,
    "on the left": lambda row: 1 - row,
}


@pytest.mark.parametrize("name", PROMOTED)
def test_vmap_promotes_numbers(name: str) -> None:
    """vmap converts a number to the dtype of an element, which it treats as a separate tensor."""
    check_call(torch.vmap(PROMOTED[name]), lambda: [wave(4) * 9])


def test_autocast() -> None:
    layer = nn.Linear(8, 8)

    def function(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return F.relu(layer(x)).float(), layer(x).softmax(-1)

    expected = with_gradients(function, [wave(4, 8)])
    found = with_gradients(lab.compile(function), [wave(4, 8)])
    assert_same(found, expected, rtol=2e-2, atol=2e-2)


def test_checkpoint() -> None:
    layer = nn.Linear(4, 4)

    def function(x):
        def inner(y):
            return F.dropout(layer(y).relu().sin(), 0.0)

        return torch.utils.checkpoint.checkpoint(inner, x, use_reentrant=False) * 2

    check_gradients(function, wave(3, 4))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_recomputes_the_same_random_numbers(reentrant: bool) -> None:
    def function(x):
        def inner(y):
            return F.dropout(y.sin(), 0.5).sin()

        return torch.utils.checkpoint.checkpoint(inner, x * 1, use_reentrant=reentrant)

    x = torch.ones(1000, requires_grad=True)
    result = lab.compile(function)(x)
    result.sum().backward()
    assert 300 < (result != 0).sum() < 700
    assert torch.equal(result != 0, x.grad != 0)


def test_a_seed_repeats_random_numbers() -> None:
    compiled = lab.compile(lambda x: F.dropout(x, 0.5))
    runs, states = [], []
    for _ in range(2):
        torch.manual_seed(3)
        runs.append([compiled(torch.ones(1000)) for _ in range(2)])
        states.append(torch.get_rng_state())
    assert_same(runs[0], runs[1])
    assert torch.equal(*states)
    assert not torch.equal(*runs[0])


def test_dropout_keeps_its_mask_for_the_gradient() -> None:
    x = torch.ones(1000, requires_grad=True)
    result = lab.compile(lambda x: F.dropout(x, 0.5))(x)
    result.sum().backward()
    assert_same(result, x.grad)


def test_autograd_function() -> None:
    class Strange(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * 3 * x

    check_gradients(lambda x: Strange.apply(x * 2) + x, wave(4))


def test_forward_hooks() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model[0].register_forward_hook(lambda module, given, result: result * 2)
    model.register_forward_pre_hook(lambda module, given: (given[0] + 1,))
    check_gradients(model, wave(3, 4))


def test_backward_hooks() -> None:
    layer = nn.Linear(4, 4)
    calls = []
    layer.register_full_backward_hook(lambda *_: calls.append(1))
    layer.weight.register_hook(lambda gradient: gradient * 2)

    def function(x):
        y = layer(x)
        y.register_hook(lambda gradient: gradient * 3)
        return y.sin()

    grads = []
    for call in (function, lab.compile(function)):
        call(wave(3, 4)).sum().backward()
        grads.append(layer.weight.grad)
        layer.weight.grad = None
    assert_same(grads[1], grads[0])
    assert len(calls) == 2


@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_norm_statistics(momentum: float | None) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4, momentum=momentum))
    reference, compiled = copy.deepcopy(model), lab.compile(model)
    for step in range(3):
        x = wave(6, 4) * step + step
        assert_same(compiled(x), reference(x))
    assert_same(dict(model.state_dict()), dict(reference.state_dict()))
    model.eval(), reference.eval()
    assert_same(compiled(wave(6, 4)), reference(wave(6, 4)))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_optimizer_steps(name: str) -> None:
    model = nn.Linear(4, 4)
    reference = copy.deepcopy(model)
    kind = getattr(torch.optim, name)
    ours, theirs = kind(model.parameters(), lr=0.1), kind(reference.parameters(), lr=0.1)
    step = lab.compile(lambda: ours.step())
    for _ in range(3):
        for one in (model, reference):
            one.zero_grad()
            weighted(one(wave(3, 4)).pow(2)).backward()
        step()
        theirs.step()
    assert_same(dict(model.state_dict()), dict(reference.state_dict()))


def test_a_whole_training_step() -> None:
    def step_of(model):
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)

        def step(x):
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return step

    model = nn.Linear(4, 4)
    reference = copy.deepcopy(model)
    ours, theirs = lab.compile(step_of(model)), step_of(reference)
    for _ in range(3):
        assert_same(ours(wave(3, 4)), theirs(wave(3, 4)))
    assert_same(dict(model.state_dict()), dict(reference.state_dict()))


def test_tensor_subclass() -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    found = lab.compile(lambda x: x * 2 + 1)(TwoTensor(wave(4), wave(4) + 1))
    assert_same([found.a, found.b], [wave(4) * 2 + 1, wave(4) * 2 + 3])


def test_complex_and_sparse_tensors() -> None:
    check_gradients(lambda x: torch.fft.rfft(x).abs(), wave(8))
    check_call(lambda x: torch.complex(x, x) * 2j + 1, lambda: [wave(4)])
    check_gradients(lambda x: (torch.complex(x, x) * (1 + 2j)).abs(), wave(4))
    sparse = torch.eye(4).to_sparse()
    found = lab.compile(lambda s, x: s @ x + 1)(sparse, wave(4, 4))
    assert_same(found, wave(4, 4) + 1)


def test_an_index_out_of_range_raises() -> None:
    compiled = lab.compile(lambda x, i: x[i] * 2)
    with pytest.raises(IndexError):
        compiled(wave(4), torch.tensor([9]))
