"""Accelerators can be switched off, one at a time and all together."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.compiler import accelerators
from inductor_lab.compiler.accelerate import bare_calls
from inductor_lab.compiler.accelerate.packing import WEIGHTS
from inductor_lab.compiler.accelerate.pool import POOL
from inductor_lab.compiler.base.errors import BadOption
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.torch_door.torch_names import OPTIONAL

NEEDS = {one.name: one.needs for one in accelerators.ACCELERATORS if one.needs}
OFF = [(), *((name,) for name in accelerators.NAMES), ("all",)]


class Net(torch.nn.Module):
    """A convolution with a norm, a product that is large enough to be measured, and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(16, 48, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(48)
        self.linear = torch.nn.Linear(1024, 512)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        made = self.norm(self.convolution(images)).relu()
        return self.linear(made.flatten(2)).softmax(-1)


@pytest.mark.parametrize("off", OFF, ids=lambda off: ",".join(off) or "nothing")
def test_results_are_right_without(off: tuple[str, ...]) -> None:
    torch.manual_seed(0)
    net, images = Net().eval(), torch.randn(8, 16, 32, 32)
    fast = lab.compile(net, options={"accelerators_off": off})
    with torch.no_grad():
        for _ in range(2):
            assert_close(fast(images), net(images), rtol=1e-4, atol=1e-5)
    x = torch.randn(1000, dtype=torch.float64, requires_grad=True)
    trained = lab.compile(lambda x: (x.sin() * x).sum(), options={"accelerators_off": off})
    for _ in range(3):
        (gradient,) = torch.autograd.grad(trained(x), x)
        assert_close(gradient, x.detach().sin() + x.detach() * x.detach().cos())


def test_a_disabled_accelerator_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    net, images = Net().eval(), torch.randn(8, 16, 32, 32)
    with torch.no_grad():
        whole = lab.inspect(net, images, options={"accelerators_off": "all"}).graphs[0].forward
    assert "POOL" not in str(whole.host) and "inductor_lab.linear" not in str(whole.loops)
    assert not whole.libraries
    assert not any(fired.rule == "channels_last" for fired in whole.rewrites.fired)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the functions that are called without AOTAutograd's wrapper."""
    made: list[Any] = []
    own = bare_calls.direct_call
    monkeypatch.setattr(bare_calls, "direct_call", lambda *given: made.append(given) or own(*given))
    return made


def direct_calls(monkeypatch: pytest.MonkeyPatch, off: Any) -> int:
    """Return how many calls of a trained function skipped AOTAutograd's wrapper."""
    made = watched(monkeypatch)
    torch._dynamo.reset()
    x = torch.randn(10, requires_grad=True)
    fast = lab.compile(lambda x: x.sin().sum(), options={"accelerators_off": off})
    for _ in range(2):
        fast(x).backward()
    return len(made)


def test_bare_calls_have_a_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert direct_calls(monkeypatch, []) == 1
    assert direct_calls(monkeypatch, ["bare_calls"]) == 0


def test_a_norm_in_training_skips_the_wrapper(monkeypatch: pytest.MonkeyPatch) -> None:
    """It updates its running moments itself, and increments their versions."""
    made = watched(monkeypatch)
    norm, eager = torch.nn.BatchNorm1d(4), torch.nn.BatchNorm1d(4)
    fast, x = lab.compile(norm), torch.randn(8, 4)
    for _ in range(4):
        before = norm.running_mean._version
        torch.testing.assert_close(fast(x), eager(x))
        assert norm.running_mean._version == before + 1
    assert len(made) == 1
    torch.testing.assert_close(norm.running_var, eager.running_var)
    assert norm.num_batches_tracked == 4


def test_warm_graphs_have_a_switch() -> None:
    def saved(off: Any) -> int:
        torch._dynamo.reset()
        counters.clear()
        with torch._functorch.config.patch(enable_autograd_cache=True):
            lab.compile(lambda x: x.sin() * 3.25, options={"accelerators_off": off})(torch.ones(7))
        found = counters["aot_autograd"]
        return found["autograd_cache_saved"] + found["autograd_cache_hit"]

    assert saved([]) == 1
    assert saved(["warm_graphs"]) == 0


def test_packing_and_the_pool_have_switches() -> None:
    lab.release_memory()
    weights, kept = WEIGHTS.nbytes, POOL.held
    torch.manual_seed(0)
    net, images = Net().eval(), torch.randn(8, 16, 32, 32)
    off = ["packed_weights", "pool"]
    with torch.no_grad():
        lab.compile(net, options={"accelerators_off": off})(images)
    assert (WEIGHTS.nbytes, POOL.held) == (weights, kept)


@pytest.mark.parametrize("name", NEEDS)
def test_an_accelerator_is_off_if_torch_lacks_a_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = NEEDS[name]
    assert lacking in OPTIONAL
    assert name not in accelerators.effective_options(Options()).accelerators_off
    missing = {lacking: ("x",)}
    monkeypatch.setattr(accelerators, "missing", lambda feature: missing.get(feature, ()))
    assert accelerators.effective_options(Options()).accelerators_off == (name,)


def test_other_options_follow_the_switches() -> None:
    options = accelerators.effective_options(Options.make({"accelerators_off": "all"}))
    assert options.accelerators_off == tuple(accelerators.NAMES)
    assert (options.matmul, options.memory_pool, options.pack_weights) == ("aten", 0.0, False)
    added = {one.step.name for each in accelerators.ACCELERATORS for one in each.passes}
    assert options.passes_off == tuple(sorted(added)) and "convolutions" in added
    assert accelerators.effective_options(options) == options


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(BadOption, match="bare_calls"):
        accelerators.effective_options(Options(accelerators_off=("speed",)))
