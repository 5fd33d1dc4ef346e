"""Packed weights of convolutions, with folded norms, are always up to date."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

import inductor_lab as lab
from inductor_lab.compiler.accelerate import convolution_libraries, convolutions, own_products
from inductor_lab.compiler.accelerate.packing import PAYS, TRIES, WEIGHTS

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN"
)


LIBRARIES = ["oneDNN", *(["inductor_lab"] if own_products.knows(torch.float32) else [])]


@pytest.fixture(autouse=True, params=LIBRARIES)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The library that is chosen, because fake times say that it is the fastest."""
    times = {f"{name} packed": 1.0 + (name != request.param) for name in LIBRARIES}
    monkeypatch.setattr(convolution_libraries, "measured", lambda *given: times)
    monkeypatch.setattr(convolutions, "SMALLEST", 1)
    monkeypatch.setattr(convolutions, "SMALLEST_KEPT", 1)
    torch._dynamo.reset()
    lab.release_memory()
    yield request.param
    lab.release_memory()


def net(**given: int) -> nn.Sequential:
    """Return a convolution with a norm, followed by one without."""
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(16)
    norm.running_var.uniform_(0.5, 2)
    norm.running_mean.normal_()
    return nn.Sequential(nn.Conv2d(8, 16, 3, **given), norm, nn.ReLU(), nn.Conv2d(16, 4, 1)).eval()


def images() -> torch.Tensor:
    return torch.randn(2, 8, 20, 20, generator=torch.Generator().manual_seed(1))


def assert_up_to_date(fast: Callable[..., torch.Tensor], eager: nn.Module) -> None:
    """Check that the compiled network computes the current result of eager mode.

    Eager mode uses a copy, because its library requests a writable pointer.
    """
    with torch.no_grad():
        expected = copy.deepcopy(eager).double()(images().double())
        got = fast(images())
        torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=1e-5)


def packings(module: nn.Sequential) -> int:
    """Return how often the weight with a norm was packed."""
    packed = WEIGHTS._packed.get(id(module[0].weight))
    return 0 if packed is None else packed.uses["packings"]


def test_our_packed_form_serves_images_of_all_sizes(library: str) -> None:
    module = net()
    fast = lab.compile(module, dynamic=False)
    with torch.no_grad():
        for size in (20, 24):
            fast(torch.randn(2, 8, size, size))
    assert packings(module) == (2 if library == "oneDNN" else 1)


def packed_bytes(weight: torch.Tensor, library: str) -> int:
    """Return the size of a packed weight; ours is padded to whole panels."""
    functions = own_products.functions_for(torch.float32)
    if library == "oneDNN" or functions is None:
        return weight.nbytes
    return weight.nbytes // len(weight) * -(-len(weight) // functions.columns) * functions.columns


def test_weights_are_packed_once(library: str) -> None:
    module = net()
    fast = lab.compile(module)
    for _ in range(3):
        assert_up_to_date(fast, module)
    assert packings(module) == 1
    assert WEIGHTS.nbytes == sum(packed_bytes(module[n].weight, library) for n in (0, 3))


def test_small_weights_are_computed_in_each_call(
    monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    module = net()
    monkeypatch.setattr(convolutions, "SMALLEST_KEPT", module[0].weight.numel())
    assert_up_to_date(lab.compile(module), module)
    assert WEIGHTS.nbytes == packed_bytes(module[0].weight, library)


WRITES: dict[str, Callable[[nn.Sequential], object]] = {
    "weight": lambda m: m[0].weight.data.mul_(-2),
    "the other weight": lambda m: m[3].weight.detach().add_(1),
    "bias": lambda m: m[0].bias.data.add_(1),
    "scale": lambda m: m[1].weight.data.mul_(3),
    "shift": lambda m: m[1].bias.detach().sub_(2),
    "mean": lambda m: m[1].running_mean.add_(1),
    "variance, by NumPy": lambda m: m[1].running_var.numpy().fill(3),
    "NumPy": lambda m: m[0].weight.detach().numpy().fill(0.5),
    "load_state_dict": lambda m: m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()}),
    "a new parameter": lambda m: setattr(m[0], "weight", nn.Parameter(torch.ones(16, 8, 3, 3))),
    "channels last": lambda m: m.to(memory_format=torch.channels_last)[0].weight.data.add_(1),
}


@pytest.mark.parametrize("write", WRITES)
def test_all_writes_are_noticed(write: str) -> None:
    module = net()
    fast = lab.compile(module)
    assert_up_to_date(fast, module)
    assert packings(module) == 1
    for _ in range(2):
        WRITES[write](module)
        assert_up_to_date(fast, module)


def test_a_norm_that_often_changes_is_computed_in_each_call() -> None:
    module = net()
    fast = lab.compile(module)
    for _ in range(TRIES + 3):
        assert_up_to_date(fast, module)
        module[1].running_var.add_(1)
    assert packings(module) == TRIES
    for _ in range(PAYS * TRIES):
        assert_up_to_date(fast, module)
    assert packings(module) == TRIES + 1


def test_writes_through_an_earlier_array_are_noticed() -> None:
    module = net()
    array = module[0].weight.detach().numpy()
    fast = lab.compile(module)
    for _ in range(3):
        assert_up_to_date(fast, module)
        array += 1
    assert packings(module) == 0


@pytest.mark.parametrize(
    "given",
    [{"stride": 2}, {"padding": 2, "padding_mode": "zeros"}, {"dilation": 2}, {"groups": 4},
     {"bias": False, "groups": 8, "stride": 3}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("last", [False, True])
def test_every_geometry(given: dict[str, int], last: bool) -> None:
    module = net(**given)
    if last:
        module = module.to(memory_format=torch.channels_last)
    assert_up_to_date(lab.compile(module), module)
    assert packings(module) == 1


def test_training_with_evaluation_between() -> None:
    results = []
    for compiled in (False, True):
        module = net()
        run = lab.compile(module) if compiled else module
        steps = torch.optim.SGD(module.parameters(), lr=0.01)
        for _ in range(3):
            run.train()
            steps.zero_grad()
            run(images()).square().mean().backward()
            steps.step()
            run.eval()
            assert_up_to_date(run, module)
        results.append([*module.parameters(), *module.buffers()])
    for expected, got in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
