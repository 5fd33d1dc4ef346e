"""Channels-last images and folded batch norms: results and strides are those of eager mode."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn
from torch._decomp import core_aten_decompositions
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import inductor_lab as lab
from inductor_lab.compiler.accelerate import convolutions
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.rewrite import insert_calls
from inductor_lab.compiler.rewrite.passes import rewrite
from inductor_lab.compiler.torch_door import torch_api

SIZE = 32


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_api.reset()
    monkeypatch.setattr(convolutions, "SMALLEST", 1)
    monkeypatch.setattr(convolutions, "SMALLEST_KEPT", 1)


class Residual(nn.Module):
    """A small network with typical operations of convolutional networks."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        self.first = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.SiLU())
        self.deep = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.BatchNorm2d(8))
        self.wide = nn.Sequential(nn.Conv2d(8, 16, 1, 2), nn.BatchNorm2d(16, affine=False))
        self.head = nn.Linear(16 * 16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = torch.relu(x + self.deep(self.first(x)))
        return self.head(self.wide(x).flatten(1))


def net(module: nn.Module | None = None) -> nn.Module:
    torch.manual_seed(0)
    module = module or Residual()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2)
            if part.affine:
                part.weight.data.normal_()
                part.bias.data.normal_()
    return module.eval()


def images(batch: int = 2, channels: int = 3) -> torch.Tensor:
    return torch.randn(batch, channels, SIZE, SIZE, generator=torch.Generator().manual_seed(1))


def inspected(module: nn.Module, x: torch.Tensor, **options: object) -> lab.Compilation:
    with torch.no_grad():
        return lab.inspect(module, x, options=options)


def fired(c: lab.Compilation, part: str = "forward") -> Counter[str]:
    rewrites = getattr(c.graphs[0], part).rewrites
    return Counter(f.rule for f in rewrites.fired if f.rule in ("channels_last", "batch_norm"))


def right(module: nn.Module, c: lab.Compilation, x: torch.Tensor) -> None:
    with torch.no_grad():
        expected = module(x)
        exact = module.double()(x.double())
        module.float()
    forward, inputs = c.graphs[0].forward, c.graphs[0].inputs
    for got in (c.result, forward.loops.run(*inputs)[0], forward.schedule.run(*inputs)[0]):
        assert got.stride() == expected.stride()
        torch.testing.assert_close(got.double(), exact, rtol=1e-5, atol=1e-5)


def test_images_are_channels_last_and_norms_are_folded() -> None:
    module, x = net(), images()
    c = inspected(module, x)
    assert fired(c) == {"channels_last": 4, "batch_norm": 4}
    right(module, c, x)
    host = str(c.graphs[0].forward.host)
    assert host.count("inductor_lab.convolution.default(") == 4
    changed = [n.name for n in c.graphs[0].forward.rewrites.module.graph.nodes if _is_copy(n)]
    assert len(changed) <= 4 + 2, "the weights, the image, and one for the flattening view"


def _is_copy(node: torch.fx.Node) -> bool:
    return node.target is torch.ops.aten.clone.default


class WithFolds(nn.Module):
    """A network with batch norms, biases and pooling that returns an image."""

    def __init__(self, groups: int = 8) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        self.deep = nn.Conv2d(8, 8, 3, padding=1, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.max_pool2d(torch.relu(self.stem(x)), 2)
        x = torch.relu(x + self.norm(self.deep(x)))
        return x, x.mean((2, 3))


def for_a_gpu(module: nn.Module, x: torch.Tensor) -> torch.fx.GraphModule:
    """Return the rewritten graph of a network for a GPU, which does not have to be present."""
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    with FakeTensorMode(), torch.no_grad():
        shapes = [(value.shape, value.dtype) for value in (*state.values(), x)]
        fakes = [torch.empty(shape, dtype=dtype, device="cuda") for shape, dtype in shapes]

        def run(*given: torch.Tensor) -> object:
            named = dict(zip(state, given[:-1], strict=True))
            return torch.func.functional_call(module, named, given[-1])

        graph = make_fx(run, core_aten_decompositions())(*fakes)
    return rewrite(graph, "forward", Options()).module


@pytest.fixture
def cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make meta functions return cuDNN's layouts: results have the layout of their operands."""

    def as_cudnn(node: torch.fx.Node) -> object:
        value: Any = insert_calls.computed(node)
        if node.target is not torch.ops.aten.convolution.default:
            return value
        with value.fake_mode:
            return torch.ops.aten.clone.default(value, memory_format=torch.channels_last)

    monkeypatch.setattr(convolutions, "computed", as_cudnn)


@pytest.mark.usefixtures("cudnn")
def test_on_a_gpu_images_are_channels_last_and_nothing_is_folded() -> None:
    module, x = net(WithFolds()), images()
    rewritten = for_a_gpu(module, x)
    with torch.no_grad():
        results = rewritten(*module.parameters(), *module.buffers(), x)
        for got, expected in zip(results, module(x), strict=True):
            torch.testing.assert_close(got, expected)
            assert got.stride() == expected.stride()
    convolution = torch.ops.aten.convolution.default
    calls = rewritten.graph.find_nodes(op="call_function", target=convolution)
    assert [node.args[2] for node in calls] == [None, None]
    last = [node.args[0].meta["val"] for node in calls]
    assert all(image.is_contiguous(memory_format=torch.channels_last) for image in last)


@pytest.mark.usefixtures("cudnn")
def test_grouped_convolutions_are_unchanged_on_a_gpu() -> None:
    assert not any(map(_is_copy, for_a_gpu(net(WithFolds(groups=2)), images()).graph.nodes))


def test_a_library_that_changes_the_layout_itself_is_not_used() -> None:
    graph = for_a_gpu(net(WithFolds()), images()).graph
    without_gpu = not torch.cuda.is_available()
    assert any(map(_is_copy, graph.nodes)) != without_gpu


def test_convolutions_can_be_switched_off() -> None:
    module, x = net(), images()
    assert fired(inspected(module, x, rewrites_off=("batch_norm",))) == {"channels_last": 4}
    for name in ("channels_last", "convolutions"):
        c = inspected(module, x, rewrites_off=(name,))
        assert not fired(c)
        right(module, c, x)
    assert not fired(inspected(module, x, target="cuda:90"))


@pytest.mark.parametrize("kept", ["pack_weights", "requires_grad", "a copy"])
def test_weights_that_cannot_be_packed_are_computed_in_each_call(kept: str) -> None:
    module, x = net().requires_grad_(kept != "requires_grad"), images()
    c = inspected(module, x, pack_weights=kept != "pack_weights")
    host = str(c.graphs[0].forward.host)
    assert ("inductor_lab.convolution" in host) == (kept == "a copy")
    assert fired(c) == {"channels_last": 4, "batch_norm": 4}
    right(module, c, x)


def test_images_that_are_returned_keep_their_strides() -> None:
    class Features(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            x = self.net.stem(x)
            small = self.net.wide(self.net.first(x))
            return small, small.transpose(1, 3)

    module, x = Features().eval(), images()
    with torch.no_grad():
        expected, got = module(x), inspected(module, x).result
        for a, b in zip(got, expected, strict=True):
            assert a.stride() == b.stride()
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
        given = x.contiguous(memory_format=torch.channels_last)
        expected, got = module(given), inspected(module, given).result
        for a, b in zip(got, expected, strict=True):
            assert a.stride() == b.stride()
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_all_changes_of_parameters_are_noticed() -> None:
    module, x = net(), images()
    fast = lab.compile(module)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)
        for part in module.modules():
            if isinstance(part, nn.Conv2d | nn.BatchNorm2d) and part.weight is not None:
                part.weight.data.mul_(-0.5)  # no version counter notices this
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.add_(1)
        torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)
        module.load_state_dict(net().state_dict())
        torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)


def test_training_is_unchanged() -> None:
    x, results = images(), []
    for compiled in (False, True):
        module = net().train()
        run = lab.compile(module) if compiled else module
        run(x).square().sum().backward()
        results.append([p.grad for p in module.parameters()] + list(module.buffers()))
    for expected, got in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    c = lab.inspect(net().train(), x)
    c.result.sum().backward()
    assert not fired(c) and not fired(c, "backward")


@pytest.fixture
def trained_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the layout for training on a CPU too, whatever its cost."""
    monkeypatch.setattr(convolutions, "TRAINED_ON", ("cpu",))
    monkeypatch.setattr(convolutions, "WEIGHT", 0)
    monkeypatch.setattr(convolutions, "RESULT", 0)


@pytest.mark.usefixtures("trained_here")
@pytest.mark.parametrize("make", [Residual, WithFolds])
def test_forward_and_backward_change_the_layout_together(make: type[nn.Module]) -> None:
    """Saved images change too.  Results and gradients have the same strides as in eager mode."""
    module, x = net(make()).train(), images().requires_grad_()
    reference, plain = copy.deepcopy(module), x.detach().clone().requires_grad_()
    exact = x.detach().double().requires_grad_()
    c = lab.inspect(module, x)
    graph = c.graphs[0]
    assert graph.backward is not None
    (output,) = graph.forward.rewrites.module.graph.find_nodes(op="output")
    saved = [node.meta["val"] for node in output.all_input_nodes if node.op == "call_function"]
    wide = [v for v in saved if v.dim() == 4 and min(v.shape[1:]) > 1]
    last = [v for v in wide if v.is_contiguous(memory_format=torch.channels_last)]
    assert len(last) > len(wide) // 2

    def gradients(module: nn.Module, result: Any, given: torch.Tensor) -> list[torch.Tensor]:
        results = result if isinstance(result, tuple) else (result,)
        along = [torch.ones_like(r).cos() * (n + 1) for n, r in enumerate(results)]
        grads = torch.autograd.grad(results, [given, *module.parameters()], along)
        return [*results, *grads, *module.buffers()]

    found = gradients(module, c.result, x)
    doubled = copy.deepcopy(reference).double()
    eager = gradients(reference, reference(plain), plain)
    wanted = gradients(doubled, doubled(exact), exact)
    for got, mine, right in zip(found, eager, wanted, strict=True):
        assert got.stride() == mine.stride()
        torch.testing.assert_close(got.double(), right.double(), rtol=1e-3, atol=1e-4)


def test_gradients_in_eval_mode() -> None:
    x, grads = images(), []
    for compiled in (False, True):
        module = net()
        run = lab.compile(module) if compiled else module
        given = x.clone().requires_grad_()
        run(given).square().sum().backward()
        grads.append([given.grad, *(p.grad for p in module.parameters())])
    for expected, got in zip(*grads, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


def test_other_batches() -> None:
    module = net()
    fast = lab.compile(module, dynamic=True)
    with torch.no_grad():
        for batch in (2, 5, 1):
            x = images(batch)
            torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)


def test_graphs_that_read_strides_are_unchanged() -> None:
    class Raw(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.net.stem(x)
            return self.net.wide(self.net.first(y + 1)).sum() + y.as_strided((4, 3), (5, 7)).sum()

    module, x = Raw().eval(), images()
    c = inspected(module, x)
    assert not fired(c)
    right(module, c, x)


def test_large_weights_and_small_images_are_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = torch.randn(64, 64, 3, 3)
    c = lab.inspect(lambda x: nn.functional.conv2d(x, weight).relu(), torch.randn(1, 64, 4, 4))
    assert not fired(c)
    monkeypatch.setattr(convolutions, "SMALLEST", 2**30)
    assert not fired(inspected(net(), images()))


def test_only_operands_with_one_number_per_channel_are_folded() -> None:
    class Other(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()
            self.plane = nn.Parameter(torch.randn(8, 16, 16))
            self.scale = nn.Parameter(torch.randn(8, 1, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.net.stem[0](x)
            z = self.net.first[0](y * self.plane)
            used = self.net.first[0](y)
            z = self.scale - z * self.scale + used * self.scale + used
            return self.net.head(self.net.wide(z).mean((2, 3)).repeat(1, 16))

    module, x = Other().eval(), images()
    c = inspected(module, x)
    assert fired(c)["channels_last"] == 4
    right(module, c, x)
