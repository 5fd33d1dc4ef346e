"""Networks of convolutions run in single calls of C++, with weights that are up to date."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

import inductor_lab as lab
from inductor_lab.compiler.accelerate import convolution_libraries, convolutions, own_products
from inductor_lab.compiler.accelerate.convolution_libraries import CONVOLUTION
from inductor_lab.compiler.accelerate.packing import PAYS, TRIES, WEIGHTS
from inductor_lab.compiler.accelerate.step_runs import InRuns
from inductor_lab.compiler.library_choice import OWN

pytestmark = pytest.mark.skipif(
    not own_products.knows(torch.float32), reason="this machine has no vectors that it knows"
)


@pytest.fixture
def made(
    runs_made: list[InRuns], monkeypatch: pytest.MonkeyPatch
) -> list[InRuns]:
    """The calls with runs that were made; our own library computes all convolutions."""
    times = {"oneDNN packed": 2.0, OWN: 1.0}
    monkeypatch.setattr(convolution_libraries, "measured", lambda *given: times)
    monkeypatch.setattr(convolutions, "SMALLEST", 1)
    monkeypatch.setattr(convolutions, "SMALLEST_KEPT", 1)
    return runs_made


class Block(nn.Module):
    """Two convolutions with norms, added to the input."""

    def __init__(self, width: int, norm: bool) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) if norm else nn.Identity()
                                   for _ in range(2))  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.norms[0](self.parts[0](x)).relu()
        return (x + self.norms[1](self.parts[1](inner))).relu()


def network(norm: bool = True) -> nn.Sequential:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2), *(Block(32, norm) for _ in range(3)),
                        nn.Conv2d(32, 3, 1)).eval()  # fmt: skip
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_var.uniform_(0.5, 2)
            module.running_mean.normal_()
    return net


def images() -> torch.Tensor:
    return torch.randn(2, 16, 31, 24, generator=torch.Generator().manual_seed(1))


def assert_right(fast: Callable[..., torch.Tensor], net: nn.Module) -> None:
    expected = copy.deepcopy(net).double()(images().double())
    torch.testing.assert_close(fast(images()).double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("norm", [True, False])
def test_a_network_is_one_call(norm: bool, made: list[InRuns]) -> None:
    net = network(norm)
    fast = lab.compile(net)
    with torch.no_grad():
        for _ in range(3):
            assert_right(fast, net)
    (whole,) = made
    assert whole.fast is not None and whole.fast is not whole.plain.call
    names = [step.name for run in whole.runs for step in run.steps]
    assert names.count(CONVOLUTION) >= 7 and len(names) >= 13
    assert 0 < str(whole.host_in_runs).count("    run_") <= 2


WRITES: dict[str, Callable[[nn.Sequential], object]] = {
    "weight": lambda net: net[1].parts[0].weight.data.mul_(-1),
    "bias": lambda net: net[1].parts[1].bias.data.add_(1),
    "running mean": lambda net: net[2].norms[0].running_mean.add_(1),
    "running variance": lambda net: net[2].norms[1].running_var.mul_(1.5),
    "weight of a norm": lambda net: net[3].norms[0].weight.data.mul_(0.5),
    "new weight": lambda net: setattr(net[0], "weight", nn.Parameter(-net[0].weight.detach())),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_are_noticed(name: str, made: list[InRuns]) -> None:
    net = network()
    fast = lab.compile(net)
    with torch.no_grad():
        for _ in range(PAYS * TRIES):  # so often that packing does not pay
            assert_right(fast, net)
            WRITES[name](net)
            assert_right(fast, net)
    assert made


def test_a_weight_that_another_tensor_shares_is_not_packed(made: list[InRuns]) -> None:
    net = network()
    fast = lab.compile(net)
    shared = net[1].parts[0].weight.data
    with torch.no_grad():
        for _ in range(2):
            assert_right(fast, net)
            shared.numpy()[:] *= -1.5
        assert_right(fast, net)
    assert made and WEIGHTS.nbytes > 0


def test_results_of_earlier_calls_stay(made: list[InRuns]) -> None:
    net = network()
    fast = lab.compile(net)
    with torch.no_grad():
        first = fast(images())
        kept = first.clone()
        fast(images() + 1)
    assert torch.equal(first, kept)
