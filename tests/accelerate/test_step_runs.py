"""Consecutive kernels in one call compute the same as one after another, and fail alike."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.accelerate import own_products, step_runs
from inductor_lab.compiler.accelerate.packing import LINEAR, WEIGHTS
from inductor_lab.compiler.accelerate.step_runs import InRuns, arena_places

pytestmark = pytest.mark.skipif(
    not own_products.knows(torch.float32), reason="this machine has no vectors that it knows"
)


@pytest.fixture
def made(
    runs_made: list[InRuns], monkeypatch: pytest.MonkeyPatch
) -> list[InRuns]:
    """The calls with runs that were made; our own library computes all products."""
    libraries = "inductor_lab.compiler.accelerate.matmul_libraries.timed"
    times = {"ATen": 2.0, "oneDNN": 2.0, "inductor_lab packed": 1.0}
    monkeypatch.setattr(libraries, lambda product: times)
    return runs_made


class Layer(torch.nn.Module):
    """Attention and a pair of products, each with a norm."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(4))
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        self.up, self.down = torch.nn.Linear(width, 512), torch.nn.Linear(512, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = (part(x).unflatten(-1, (4, -1)).transpose(1, 2) for part in self.parts[:3])
        attended = torch.nn.functional.scaled_dot_product_attention(*heads)
        x = self.norms[0](x + self.parts[3](attended.transpose(1, 2).flatten(2)))
        return self.norms[1](x + self.down(torch.nn.functional.gelu(self.up(x))))


def layers() -> tuple[torch.nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    return torch.nn.Sequential(Layer(), Layer()).eval(), torch.randn(4, 64, 128)


def check(compiled: Callable[..., Any], plain: Callable[..., Any], *given: torch.Tensor) -> None:
    torch.testing.assert_close(compiled(*given), plain(*given), rtol=1e-4, atol=1e-4)


def test_layers_are_one_call(made: list[InRuns]) -> None:
    net, x = layers()
    compiled = lab.compile(net)
    one_by_one = lab.compile(net, options={"accelerators_off": ["step_runs"]})
    with torch.no_grad():
        for _ in range(3):
            check(compiled, net, x)
            assert torch.equal(compiled(x.flip(0)), one_by_one(x.flip(0)))
    (whole,) = made
    (run,) = whole.runs
    names = [step.name for step in run.steps]
    assert names.count(LINEAR) == 12 and len(names) >= 18
    assert whole.fast is not None and whole.fast is not whole.plain.call
    text = str(whole.host_in_runs)
    assert text.count("run_0(") == 1 and "    cpp_fused" not in text
    assert f"# 12 {LINEAR}, " in text
    assert x.nbytes <= run.nbytes < 10 * x.nbytes


def test_results_are_not_in_the_arena(made: list[InRuns]) -> None:
    net, x = layers()
    compiled = lab.compile(net)
    with torch.no_grad():
        first = compiled(x)
        kept = first.clone()
        compiled(x + 1)
        gc.collect()
        compiled(x + 2)
    assert torch.equal(first, kept) and first.untyped_storage().nbytes() == first.nbytes
    assert made[0].runs


def test_a_weight_that_changes_or_cannot_be_packed(made: list[InRuns]) -> None:
    net, x = layers()
    compiled = lab.compile(net)
    with torch.no_grad():
        check(compiled, net, x)
        net[0].up.weight.mul_(2)
        check(compiled, net, x)
        net[1].up.weight.data.add_(0.1)
        check(compiled, net, x)
        shared = net[0].down.weight.data  # now another tensor could write to it
        shared += 0.1
        check(compiled, net, x)
        del shared
        check(compiled, net, x)
    assert made


def test_without_gradients_the_plain_program_runs(made: list[InRuns]) -> None:
    """A parameter that requires no gradient is never packed: NumPy could write to it."""
    net, x = layers()
    net.requires_grad_(False)
    compiled = lab.compile(net)
    with torch.no_grad():
        for _ in range(2):
            check(compiled, net, x)
            net[0].up.weight.numpy()[:] *= 1.5
    assert not made or WEIGHTS.nbytes == 0


def test_inputs_are_updated(made: list[InRuns]) -> None:
    def steps(x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        mean = x.mean(1, keepdim=True)
        state.mul_(0.9).add_(mean.sum(0))
        scaled = (x - mean).softmax(1)
        state[:1] += scaled.amax()
        return scaled.cumsum(0) + state

    torch.manual_seed(0)
    x = torch.randn(64, 50)
    states = torch.zeros(50), torch.zeros(50)
    compiled = lab.compile(steps)
    for _ in range(3):
        torch.testing.assert_close(compiled(x, states[0]), steps(x, states[1]))
        torch.testing.assert_close(*states)
    assert made and any(len(run.steps) >= step_runs.FEWEST for run in made[0].runs)


def test_between_library_calls(made: list[InRuns]) -> None:
    """Buffers that a library call reads or makes are tensors."""

    def steps(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a = (x.softmax(1).cumsum(1) - x.mean()).sin()
        values, order = a.sort(1)
        b = (values.softmax(0) + order).cumsum(0) * a.std()
        return b, torch.fft.rfft(b).abs().softmax(0), a[:, ::2]

    x = torch.randn(40, 30)
    compiled = lab.compile(steps)
    for _ in range(2):
        check(compiled, steps, x)
    assert made


def test_an_index_out_of_range_has_its_line(made: list[InRuns]) -> None:
    def looked_up(x: torch.Tensor, table: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        y = x.softmax(0).softmax(1).cumsum(0)
        found = table[at]
        return (found + y).softmax(0).softmax(1).cumsum(0)

    x, table = torch.randn(20, 30), torch.randn(7, 30)
    compiled = lab.compile(looked_up)
    good, bad = torch.arange(20) % 7, torch.arange(20)
    check(compiled, looked_up, x, table, good)
    with pytest.raises(IndexError, match="out of range") as caught:
        compiled(x, table, bad)
    assert "found = table[at]" in str(caught.value)
    check(compiled, looked_up, x, table, good)
    assert made and made[0].fast is not made[0].plain.call


def test_steps_are_timed_one_by_one(made: list[InRuns]) -> None:
    net, x = layers()
    with torch.no_grad():
        c = lab.inspect(net, x)
        found = c.profile(steps=2)
    assert made and len(found.events) == len(c.graphs[0].forward.schedule.steps)


def test_the_profiler_of_torch_sees_each_kernel(made: list[InRuns]) -> None:
    net, x = layers()
    compiled = lab.compile(net)
    with torch.no_grad():
        compiled(x)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
            compiled(x)
    assert made and any("cpp_fused" in event.key for event in seen.key_averages())


def test_training(made: list[InRuns]) -> None:
    net, x = layers()
    compiled = lab.compile(net)
    for _ in range(2):
        gradients = [torch.autograd.grad(f(x).square().sum(), net[0].up.weight)[0]
                     for f in (compiled, net)]  # fmt: skip
        torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-3)


def test_threads(made: list[InRuns]) -> None:
    net, x = layers()
    compiled = lab.compile(net)
    given = [x + k for k in range(4)]
    with torch.no_grad():
        expected = [net(each) for each in given]
        compiled(x)
    wrong: list[float] = []

    def work(k: int) -> None:
        with torch.no_grad():
            for _ in range(30):
                found = compiled(given[k])
                if not torch.allclose(found, expected[k], rtol=1e-4, atol=1e-5):
                    wrong.append(float((found - expected[k]).abs().max()))

    several = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for one in several:
        one.start()
    for one in several:
        one.join(120)
    assert made and not wrong


@pytest.mark.parametrize("seed", range(20))
def test_storages_in_an_arena_do_not_overlap(seed: int) -> None:
    chance = random.Random(seed)
    lives, sizes = {}, {}
    for n in range(chance.randint(1, 60)):
        first = chance.randint(0, 50)
        lives[f"buf{n}"] = first, first + chance.randint(0, 9)
        sizes[f"buf{n}"] = chance.choice([0, 1, 64, 100, 4096, chance.randint(1, 10_000)])
    places, nbytes = arena_places(lives, sizes)
    for position in range(61):
        alive = sorted((places[n], sizes[n]) for n, (a, b) in lives.items() if a <= position <= b)
        for (start, size), (after, _) in pairwise(alive):
            assert start + size <= after and start % step_runs.ALIGNED == 0
        assert all(start + size <= nbytes for start, size in alive)
    least = max(sum(sizes[n] for n, (a, b) in lives.items() if a <= k <= b) for k in range(61))
    assert nbytes <= 2 * least + 64 * len(lives)
