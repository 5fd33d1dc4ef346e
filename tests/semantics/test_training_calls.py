"""Calls with gradients that skip AOTAutograd's wrapper: all guarantees of autograd hold."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import inductor_lab as lab
from inductor_lab.compiler.pipeline import GraphCompiler
from tests.semantics.compare import assert_same, wave
from tests.test_calls import files_entered

Function = Callable[..., Any]


def trained(fn: Function, *args: torch.Tensor, **options: Any) -> Function:
    """A compiled function after one forward and backward; later calls skip the wrapper."""
    fast = lab.compile(fn, **options)
    backwards(fast, *args)
    return fast


def backwards(fn: Function, *args: torch.Tensor) -> list[Any]:
    given = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in args]
    results = fn(*given)
    kept = results if isinstance(results, tuple) else (results,)
    tensors = [r for r in kept if isinstance(r, torch.Tensor) and r.requires_grad]
    torch.autograd.backward(tensors, [wave(*t.shape) for t in tensors])
    return [*kept, *(x.grad for x in given)]


@pytest.mark.parametrize("create", [False, True])
def test_the_first_backward_may_run_again(create: bool) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.LayerNorm(8))
    gradients = []
    for call in (net, lab.compile(net)):
        x = wave(3, 4).requires_grad_()
        losses = call(x).sin().sum(0)
        options = {"retain_graph": True, "create_graph": create}
        first = torch.autograd.grad(losses[0], [x, *net.parameters()], **options)
        gradients.append([*first, *torch.autograd.grad(losses[1], [x, *net.parameters()])])
    assert_same(gradients[1], gradients[0])


def check(fn: Function, *args: torch.Tensor) -> Function:
    fast = trained(fn, *args)
    for _ in range(2):
        assert_same(backwards(fast, *args), backwards(fn, *args), strides=True)
    return fast


def straight(fn: Function, *args: torch.Tensor) -> bool:
    """Does a step, forward and backward, skip all of AOTAutograd's wrappers?"""
    fast = trained(fn, *args)
    entered = files_entered(lambda: backwards(fast, *args))
    assert any(name.startswith("<host program") for name in entered)
    return not any("runtime_wrapper" in name for name in entered)


def trig(x: torch.Tensor) -> torch.Tensor:
    return x.sin() ** 2 * x.cos()


X = wave(4, 6)

STRAIGHT: dict[str, Function] = {
    "pointwise": trig,
    "two results": lambda x: (x.sin(), x.cos().sum(0)),
    "results without gradient": lambda x: (x > 0, x.sin(), x.argmax(1), 3),
    "a result that is saved": torch.exp,
    "a saved view of a result": lambda x: x.exp().view(-1).sigmoid().view(2, 12),
    "a library's call": lambda x: (x @ x.T).relu(),
    "a result of a library, seen otherwise": lambda x: (x.view(2, 2, 6) @ x.T).view(2, 8),
    "a reduction": lambda x: x.softmax(1),
    "a layer": torch.nn.functional.layer_norm,
}


@pytest.mark.parametrize("name", STRAIGHT)
def test_calls_run_only_the_compiled_graphs(name: str) -> None:
    fn = STRAIGHT[name]
    if name == "a layer":
        args = (X, wave(6), wave(6))
        check(lambda x, w, b: fn(x, (6,), w, b), *args)
    else:
        check(fn, X)
        assert straight(fn, X)


def written(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    x.detach().add_(1)
    return y


AROUND: dict[str, Function] = {
    "a view of an input": lambda x: (x[1:], x * 2),
    "a view of another result": lambda x: (y := x * 2, y[1:]),
    "writes to an input": written,
}


@pytest.mark.parametrize("name", AROUND)
def test_calls_that_need_the_wrapper_use_it(name: str) -> None:
    assert not straight(AROUND[name], X)
    if name != "writes to an input":
        check(AROUND[name], X)


def test_dynamic_sizes() -> None:
    fast = trained(trig, X, dynamic=True)
    for size in (3, 4, 7):
        x = wave(size, 6)
        assert_same(backwards(fast, x), backwards(trig, x))


def test_calls_before_the_first_backward() -> None:
    fast = lab.compile(trig)
    given = [wave(4, 6).requires_grad_() for _ in range(3)]
    results = [fast(x) for x in given]
    results[1].sum().backward()
    results.append(fast(given[1]))
    results[3].sum().backward()
    results[0].sum().backward()
    eager = wave(4, 6).requires_grad_()
    trig(eager).sum().backward()
    assert_same([given[0].grad, given[1].grad], [eager.grad, 2 * eager.grad])


def test_gradients_of_some_results() -> None:
    fn: Function = lambda x: (x.sin(), x.cos(), x.exp())  # noqa: E731
    fast = trained(fn, X)
    for chosen in ((0,), (1, 2), (2,)):
        found = []
        for call in (fast, fn):
            x = X.clone().requires_grad_()
            results = call(x)
            sum(results[n].sum() for n in chosen).backward()
            found.append(x.grad)
        assert_same(*found)


TANGENTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": lambda g: g.t().contiguous().t(),
    "one number everywhere": lambda g: torch.tensor(2.0).expand_as(g),
    "every other element": lambda g: g.repeat_interleave(2, 1)[:, ::2],
    "at an offset": lambda g: torch.cat([g, g])[4:],
    "negated lazily": lambda g: torch.complex(g, g).conj().imag,
}


@pytest.mark.parametrize("name", TANGENTS)
def test_gradients_in_any_layout(name: str) -> None:
    fast = trained(trig, X)
    given = TANGENTS[name](wave(4, 6))
    found = []
    for call in (fast, trig):
        x = X.clone().requires_grad_()
        found.append(torch.autograd.grad(call(x), x, given))
    assert_same(*found)


def test_a_result_with_another_layout() -> None:
    check(lambda x: x.t() * 2, X)


def test_channels_last_gradients() -> None:
    fn: Function = lambda x: x.relu() * 2  # noqa: E731
    x = wave(2, 3, 4, 5)
    fast = trained(fn, x)
    given = wave(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    found = []
    for call in (fast, fn):
        leaf = x.clone().requires_grad_()
        found.append(torch.autograd.grad(call(leaf), leaf, given))
    assert_same(*found)


def test_the_graph_is_freed_without_retain_graph() -> None:
    fast = trained(trig, X)
    x = X.clone().requires_grad_()
    result = fast(x).sum()
    result.backward(retain_graph=True)
    once = x.grad.clone()
    result.backward()
    assert_same(x.grad, 2 * once)
    with pytest.raises(RuntimeError, match="a second time"):
        result.backward()


def test_saved_tensors_are_freed_in_the_backward() -> None:
    fast = trained(trig, X)
    result = fast(X.clone().requires_grad_())
    assert len(result.grad_fn.saved_tensors) > 0
    result.sum().backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        result.grad_fn.saved_tensors  # noqa: B018


def test_a_saved_tensor_that_is_written_raises() -> None:
    fast = trained(trig, X)
    x = X.clone().requires_grad_()
    result = fast(x)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_a_result_may_be_written() -> None:
    fast = trained(trig, X)
    found = []
    for call in (fast, trig):
        x = X.clone().requires_grad_()
        result = call(x)
        result.mul_(3)
        result[1:].add_(1)
        result.sum().backward()
        found.append((result, x.grad))
    assert_same(*found)


def test_saved_tensors_hooks() -> None:
    fast = trained(trig, X)
    seen: list[str] = []

    def pack(t: torch.Tensor) -> torch.Tensor:
        seen.append("pack")
        return t.double()

    def unpack(t: torch.Tensor) -> torch.Tensor:
        seen.append("unpack")
        return t.float()

    x = X.clone().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        result = fast(x)
    assert seen == ["pack"] * len(seen) and seen
    result.backward(wave(4, 6))
    assert seen.count("unpack") == seen.count("pack")
    assert_same(x.grad, backwards(trig, X)[-1])


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_around_a_compiled_function(reentrant: bool) -> None:
    fast = trained(trig, X)
    found = backwards(lambda x: checkpoint(fast, x, use_reentrant=reentrant), X)
    assert_same(found, backwards(trig, X))


def test_gradients_cannot_be_differentiated_again() -> None:
    fast = trained(trig, X)
    x = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(fast(x).sum(), x, create_graph=True)
    (expected,) = torch.autograd.grad(trig(x).sum(), x)
    assert_same(gradient, expected)
    with pytest.raises(RuntimeError, match="double backward"):
        gradient.sum().backward()


def test_a_gradient_that_is_passed_on_stays_a_leaf() -> None:
    fn: Function = lambda x, y: x + y  # noqa: E731
    fast = trained(fn, X, X)
    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    given = wave(4, 6)
    found = torch.autograd.grad(fast(x, y), (x, y), given, create_graph=True)
    assert given.is_leaf and not given.requires_grad
    assert_same(found, (given, given))


def test_deterministic_algorithms() -> None:
    fast = trained(trig, X)
    result = fast(X.clone().requires_grad_())
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="use_deterministic_algorithms"):
            result.sum().backward()
        assert_same(backwards(fast, X), backwards(trig, X))
    finally:
        torch.use_deterministic_algorithms(False)


def test_within_functorch() -> None:
    fast = trained(trig, X)
    x = X.clone().requires_grad_()
    result = fast(x)
    with pytest.raises(RuntimeError, match="vmap"):
        torch.func.vmap(lambda g: torch.autograd.grad(result, x, g))(torch.ones(3, 4, 6))


def test_inputs_without_gradients_are_not_differentiated() -> None:
    fn: Function = lambda x, y: (y.detach() * 2, x * 3)  # noqa: E731
    fast = lab.compile(fn)
    for _ in range(3):
        x, root = X.clone().requires_grad_(), X.clone().requires_grad_()
        y = root.exp()
        first, second = fast(x, y)
        second.sum().backward()
        assert not first.requires_grad and root.grad is None
        y.sum().backward()  # its graph is still there
        assert_same((x.grad, root.grad), (torch.full_like(X, 3), X.exp()))


def test_hooks_on_results_and_inputs() -> None:
    fast = trained(trig, X)
    found = []
    for call in (fast, trig):
        x = X.clone().requires_grad_()
        x.register_hook(lambda g: g * 2)
        result = call(x)
        result.register_hook(lambda g: g + 1)
        result.sum().backward()
        found.append(x.grad)
    assert_same(*found)


def test_backward_in_another_thread() -> None:
    fast = trained(trig, X)
    x = X.clone().requires_grad_()
    result = fast(x).sum()
    thread = threading.Thread(target=result.backward)
    thread.start()
    thread.join()
    assert_same(x.grad, torch.autograd.grad(trig(x).sum(), x)[0])


def test_backward_while_torchdynamo_traces() -> None:
    fast = trained(trig, X)

    def step(x: torch.Tensor) -> torch.Tensor:
        result = fast(x) * 2
        torch._dynamo.graph_break()
        result.sum().backward()
        return x.grad + 1

    found = []
    for _ in range(3):
        torch.manual_seed(0)
        found.append(lab.compile(step)(X.clone().requires_grad_()))
    x = X.clone().requires_grad_()
    (2 * trig(x)).sum().backward()
    for one in found:
        assert_same(one, x.grad + 1)


def test_grad_mode_and_inference_mode() -> None:
    fast = trained(trig, X)
    x = X.clone().requires_grad_()
    with torch.no_grad():
        assert not fast(x).requires_grad
    with torch.inference_mode():
        assert_same(fast(X), trig(X))
    assert fast(x).requires_grad
    result = fast(x)
    with torch.no_grad():
        result.sum()
        torch.autograd.backward(result, torch.ones_like(result))
    assert_same(x.grad, torch.autograd.grad(trig(x).sum(), x)[0])


def test_autocast() -> None:
    fn: Function = lambda x: (x @ x.T).relu()  # noqa: E731
    fast = lab.compile(fn)
    for _ in range(2):
        with torch.autocast("cpu", torch.bfloat16):
            x = X.clone().requires_grad_()
            result = fast(x)
            assert result.dtype == torch.bfloat16
        result.float().sum().backward()
        assert x.grad is not None and x.grad.dtype == torch.float32
        assert_same(backwards(fast, X), backwards(fn, X))


def test_the_same_input_twice() -> None:
    fn: Function = lambda a, b: a * 2 + b.sin()  # noqa: E731
    fast = trained(fn, X, X)
    found = []
    for call in (fast, fn):
        x = X.clone().requires_grad_()
        call(x, x).sum().backward()
        found.append(x.grad)
    assert_same(*found)


def test_compiled_autograd() -> None:
    fast = trained(trig, X)
    expected = backwards(trig, X)
    with torch._dynamo.compiled_autograd._enable(lab.compile):
        for _ in range(2):
            assert_same(backwards(fast, X), expected)
    assert_same(backwards(fast, X), expected)


def test_the_backward_graph_is_released() -> None:
    graphs: list[weakref.ref[Any]] = []
    compile_part = GraphCompiler.compile_part

    def watched(self: GraphCompiler, module: torch.fx.GraphModule, name: str) -> Any:
        if name == "backward":
            graphs.append(weakref.ref(module))
        return compile_part(self, module, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GraphCompiler, "compile_part", watched)
        fast = trained(trig, X)
    backwards(fast, X)
    gc.collect()
    assert len(graphs) == 1 and graphs[0]() is None
