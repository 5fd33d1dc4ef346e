"""The time, bytes and flops of each kernel in a running program; timers are removed afterwards."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.compiler.ir.program import Buffer, BufferKind, BufferView, ExternCall, Layout
from inductor_lab.compiler.schedule.cost import extern_cost


def layer(x, w):
    return torch.softmax((x @ w).sin() + x.exp(), -1)


@pytest.fixture(scope="module")
def measured(known_limits):
    x, w = (torch.randn(64, 64, requires_grad=True) for _ in range(2))
    return lab.inspect(layer, x, w).measure(seconds=0.05)


def test_every_step_of_both_directions_has_a_time(measured) -> None:
    forward, backward = measured.parts
    for part in (forward, backward):
        assert len(part.times) == len(part.schedule.steps) > 1
        assert all(0 < took.roof < took.seconds and 0 < took.seconds < 10 for took in part.times)
    kernels = [took.name for took in forward.times if took.generated]
    assert kernels == [kernel.name for kernel in forward.kernels]


def test_a_product_has_its_flops_and_a_kernel_its_bytes(measured) -> None:
    forward = measured.graphs[0].forward
    product = next(took for took in forward.times if took.name == "aten.mm.default")
    assert product.flops == 2 * 64**3 and not product.generated
    kernel = next(took for took in forward.times if took.generated)
    assert kernel.nbytes == forward.schedule.groups[0].cost.bytes


def test_a_convolution_has_its_flops_too() -> None:
    x, w = torch.randn(1, 3, 16, 16), torch.randn(8, 3, 3, 3)
    compiled = lab.inspect(lambda x, w: F.conv2d(x, w).relu(), x, w).measure(0)
    times = compiled.graphs[0].forward.times
    assert max(took.flops for took in times) == 2 * 8 * 14 * 14 * 3 * 9


def test_every_library_counts_the_flops_of_a_product() -> None:
    def buffer(name: str, *size: int) -> Buffer:
        return Buffer(name, BufferKind.INPUT, torch.float32, "cpu", Layout.contiguous(size))

    buffers = {b.name: b for b in (buffer("a", 4, 8), buffer("b", 8, 16), buffer("out", 4, 16))}
    a, b = (BufferView(name, buffers[name].layout) for name in ("a", "b"))
    turned = BufferView("b", Layout((16, 8), (1, 16)))
    plain = ExternCall(("out",), "aten.mm.default", (a, b))
    onednn = ExternCall(
        ("out",), "mkldnn._linear_pointwise.default", (a, turned, None, "none", [], "")
    )
    for call in (plain, onednn):
        assert extern_cost(call, buffers).flops == 2 * 4 * 8 * 16


def test_equal_kernels_have_separate_times() -> None:
    def layers(x, w):
        for _ in range(3):
            x = F.layer_norm(torch.relu(x @ w), (64,))
        return x

    measured = lab.inspect(layers, torch.randn(64, 64), torch.randn(64, 64)).measure(0)
    times = measured.graphs[0].forward.times
    assert [took.generated for took in times] == [False, True] * 3
    # two calls can take the same number of nanoseconds, but not all three
    assert all(len({took.seconds for took in times[first::2]}) > 1 for first in (0, 1))


def test_timers_are_removed_after_a_measurement(measured) -> None:
    part = measured.graphs[0].forward
    names = part.executable.call.__globals__
    assert names["aten"] is torch.ops.aten
    assert "timed" not in repr(names[part.kernels[0].name])


def test_saved_files_keep_the_times(measured, tmp_path) -> None:
    loaded = lab.load(measured.save(tmp_path / "measured.json"))
    assert [part.times for part in loaded.parts] == [part.times for part in measured.parts]
    with pytest.raises(NotRunnable, match="loaded from a file"):
        loaded.measure()


def test_a_compilation_for_another_machine_is_not_measured() -> None:
    elsewhere = lab.inspect(lambda x: x.sin(), torch.ones(8), target="cuda:90")
    with pytest.raises(NotRunnable, match="cuda:90"):
        elsewhere.measure()


def scaled(x):
    return (x.sin().sum(0) * x).relu()


@pytest.mark.parametrize("disturb", [
    lambda c: torch.compiler.reset(),
    lambda c: c.again(torch.ones(5, 4, requires_grad=True)),
    lambda c: [c.again(torch.ones(n, 4)) for n in (5, 6)],
], ids=["reset", "another size", "other sizes"])  # fmt: skip
def test_a_call_that_now_runs_other_code_is_inspected_again(known_limits, disturb) -> None:
    c = lab.inspect(scaled, torch.ones(3, 4, requires_grad=True))
    steps = [part.schedule.steps for part in c.parts]
    disturb(c)
    measured = c.measure(0)
    assert [len(part.times) for part in measured.parts] == list(map(len, steps))
    assert not any(part.assumed for part in measured.parts), "of the sizes that were inspected"
    disturb(c)
    assert {row.part for row in c.profile(3).rows} == {"g0.forward", "g0.backward"}
    disturb(c)
    assert len(list(c.steps())) > 0
    disturb(c)
    assert c.ablation(seconds=0).rows
    assert c.blame().fault is None and c.what_if(fusion=False).after.kernels > c.after.kernels
    assert c.again(torch.ones(3, 4, requires_grad=True)).result is not None


def test_stock_is_timed_in_a_step_that_calls_backward_itself(known_limits) -> None:
    stock = lab.inspect(training_step(lambda loss: loss), torch.ones(8, 32), compiler="stock")
    assert any(k.seconds for k in stock.measure(0).graphs[0].forward.kernels)


def test_several_graphs_and_branches() -> None:
    def broken(x):
        y = x.sin()
        print("a graph break")
        return torch.cond(y.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (y,))

    compilation = lab.inspect(broken, torch.ones(8)).measure(0)
    assert len(compilation.graphs) == 2
    assert all(part.times for part in compilation.parts)


def training_step(returned):
    torch.manual_seed(0)
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return returned(loss)

    return train


@pytest.mark.parametrize("returned", [lambda loss: loss, lambda loss: None])
def test_a_step_that_calls_backward_itself_is_timed_unchanged(known_limits, returned) -> None:
    c = lab.inspect(training_step(returned), torch.ones(8, 32))
    measured = c.measure(seconds=0)
    backward = measured.graphs[0].backward
    assert len(backward.times) == len(backward.schedule.steps) > 0
    assert any(row.part == "g0.backward" for row in c.profile(3).rows)
    assert c.ablation(seconds=0).rows


def test_results_without_a_gradient_are_timed_without(known_limits) -> None:
    model = torch.nn.Linear(32, 32)
    c = lab.inspect(lambda x: model(x).sin().detach(), torch.ones(8, 32)).measure(seconds=0)
    assert c.graphs[0].forward.times
