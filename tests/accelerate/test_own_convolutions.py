"""Our own library for convolutions computes what float64 says, and reads only its operands."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.accelerate import (
    convolution_libraries,
    convolutions,
    own_convolutions,
    own_products,
)
from inductor_lab.compiler.accelerate.packing import Window
from inductor_lab.compiler.ir.program import ExternCall
from inductor_lab.compiler.library_choice import OWN, Choice
from inductor_lab.debug.judge.guarded import Edge, Guarded

pytestmark = pytest.mark.skipif(
    not own_products.knows(torch.float32), reason="this machine has no vectors that it knows"
)
Images = tuple[int, int, int, int]
CASES: dict[str, tuple[Images, tuple[int, int, int], Window]] = {
    "3x3": ((2, 64, 9, 10), (64, 3, 3), Window((1, 1), (1, 1), (1, 1), 1)),
    "3x3, step 2": ((2, 32, 12, 9), (70, 3, 3), Window((2, 2), (1, 1), (1, 1), 1)),
    "1x1": ((1, 40, 7, 7), (65, 1, 1), Window((1, 1), (0, 0), (1, 1), 1)),
    "1x1, step 2": ((3, 17, 8, 7), (64, 1, 1), Window((2, 2), (0, 0), (1, 1), 1)),
    "7x7 of three channels": ((2, 3, 30, 33), (64, 7, 7), Window((2, 2), (3, 3), (1, 1), 1)),
    "patches": ((2, 3, 32, 32), (96, 8, 8), Window((8, 8), (0, 0), (1, 1), 1)),
    "long rows": ((1, 200, 5, 150), (66, 3, 3), Window((1, 1), (1, 1), (1, 1), 1)),
    "deep": ((2, 300, 7, 7), (128, 3, 3), Window((1, 1), (1, 1), (1, 1), 1)),
    "rows and columns differ": ((2, 5, 11, 6), (3, 2, 4), Window((3, 1), (0, 2), (1, 1), 1)),
    "margins wider than the window": ((1, 4, 3, 3), (5, 3, 3), Window((1, 1), (4, 5), (1, 1), 1)),
    "window wider than the image": ((1, 4, 2, 1), (5, 5, 3), Window((1, 1), (2, 1), (1, 1), 1)),
    "one pixel": ((1, 8, 1, 1), (8, 3, 3), Window((1, 1), (1, 1), (1, 1), 1)),
    "step over pixels": ((1, 8, 13, 13), (8, 2, 2), Window((5, 4), (1, 1), (1, 1), 1)),
}


def operands(name: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Window]:
    torch.manual_seed(0)
    images, (kernels, rows, columns), window = CASES[name]
    x, weight = torch.randn(images), torch.randn(kernels, images[1], rows, columns)
    last = torch.channels_last
    return x.contiguous(memory_format=last), weight, torch.randn(kernels), window


def exact(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, window: Window
) -> torch.Tensor:
    given = (None if one is None else one.double() for one in (x, weight, bias))
    return torch.conv2d(*given, window.stride, window.padding)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, threads: int) -> None:
    x, weight, bias, window = operands(name)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        packed = own_convolutions.pack(weight, window, x.shape)
        for added in (bias, None):
            found = own_convolutions.convolve(x, packed, weight, added, window)
            expected = exact(x, weight, added, window)
            assert found.shape == expected.shape
            assert found.is_contiguous(memory_format=torch.channels_last)
            assert (found - expected).abs().max() <= 2e-6 * expected.abs().max()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("edge", ["start", "end"])
@pytest.mark.parametrize("name", CASES)
def test_only_the_operands_are_read(name: str, edge: Edge) -> None:
    """At both ends of the memory of images and packed weight the process may not read."""
    x, weight, bias, window = operands(name)
    packed = own_convolutions.pack(weight, window, x.shape)
    expected = own_convolutions.convolve(x, packed, weight, bias, window)
    memory = Guarded()
    placed = [
        memory.place(number, one.permute(order).contiguous().view(torch.uint8).flatten(), edge)
        for number, (one, order) in enumerate(((x, (0, 2, 3, 1)), (packed, (0,))))
    ]
    images, channels, height, width = x.shape
    inside = placed[0].view(torch.float32).view(images, height, width, channels)
    found = own_convolutions.convolve(
        inside.permute(0, 3, 1, 2), placed[1].view(torch.float32), weight, bias, window
    )
    assert torch.equal(found, expected)


@pytest.mark.parametrize("name", ["3x3", "3x3, step 2", "7x7 of three channels"])
def test_special_values_reach_only_their_windows(name: str) -> None:
    x, weight, bias, window = operands(name)
    x[0, 0, 0, 0], x[-1, 1, 4, 5], x[0, 2, -1, -1] = float("inf"), float("nan"), -float("inf")
    packed = own_convolutions.pack(weight, window, x.shape)
    found = own_convolutions.convolve(x, packed, weight, bias, window)
    expected = exact(x, weight, bias, window)
    assert torch.equal(found.isfinite(), expected.isfinite())
    assert torch.equal(found.isnan(), expected.isnan())


def test_it_is_as_exact_as_the_library() -> None:
    x, weight, bias, window = operands("deep")
    packed = own_convolutions.pack(weight, window, x.shape)
    ours = own_convolutions.convolve(x, packed, weight, bias, window)
    library = torch.conv2d(x, weight, bias, window.stride, window.padding)
    errors = [(one - exact(x, weight, bias, window)).abs().mean() for one in (ours, library)]
    assert errors[0] < 2 * errors[1]


@pytest.mark.parametrize("dilation, groups", [((2, 2), 1), ((1, 1), 2)])
def test_other_windows_are_left_to_the_library(dilation: tuple[int, int], groups: int) -> None:
    assert not own_convolutions.knows(Window((1, 1), (1, 1), dilation, groups))


# ---- the choice --------------------------------------------------------------------------------


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Callable[..., torch.nn.Sequential]:
    """Return networks whose weights are packed."""
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(convolutions, "SMALLEST", 1)
    monkeypatch.setattr(convolutions, "SMALLEST_KEPT", 1)
    torch._dynamo.reset()
    lab.release_memory()

    def make(**more: int) -> torch.nn.Sequential:
        torch.manual_seed(0)
        norm = torch.nn.BatchNorm2d(64)
        norm.running_var.uniform_(0.5, 2)
        first = torch.nn.Conv2d(16, 64, 3, padding=1, **more)
        last = torch.nn.Conv2d(64, 2, 1, **more)
        return torch.nn.Sequential(first, norm, torch.nn.ReLU(), last).eval()

    return make


def own_calls(c: lab.Compilation) -> int:
    calls = (step for step in c.graphs[0].forward.schedule.steps if isinstance(step, ExternCall))
    return sum(call.args[-1] == own_products.NAME for call in calls)


@pytest.mark.parametrize("own, called", [(1.0, 1), (1.04, 1), (1.2, 0)])
def test_the_faster_library_is_called(
    own: float, called: int, network: Callable[..., torch.nn.Sequential], monkeypatch
) -> None:
    asked: list[object] = []

    def measured(question: object, candidates: object, cache: bool) -> dict[str, float]:
        asked.append(question)
        return {"oneDNN packed": 1.0, OWN: own}

    monkeypatch.setattr(convolution_libraries, "measured", measured)
    module, x = network(), torch.randn(2, 16, 20, 20)
    with torch.no_grad():
        expected = copy.deepcopy(module).double()(x.double())
        c = lab.inspect(module, x)
        torch.testing.assert_close(lab.compile(module)(x).double(), expected, rtol=1e-5, atol=1e-5)
    assert own_calls(c) == 2 * called and len(set(asked)) == 2
    choice, _ = c.graphs[0].forward.libraries
    assert "convolution (800, 144) x (144, 64) float32: oneDNN packed 1000.000 ms" in str(choice)


def test_every_candidate_computes_the_same(network: Callable[..., torch.nn.Sequential]) -> None:
    found: list[dict[str, torch.Tensor]] = []
    real = convolution_libraries.candidates_of

    def candidates(*given: object) -> dict[str, convolution_libraries.Candidate]:
        made = real(*given)
        found.append({name: candidate.run() for name, candidate in made.items()})
        return made

    with pytest.MonkeyPatch.context() as patched, torch.no_grad():
        patched.setattr(convolution_libraries, "candidates_of", candidates)
        lab.inspect(network(), torch.randn(2, 16, 20, 20))
    assert len(found) == 2
    for results in found:
        assert set(results) == {"oneDNN packed", OWN}
        torch.testing.assert_close(*results.values(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("more", [{"dilation": 2}, {"groups": 2}])
def test_other_convolutions_are_not_measured(
    more: dict[str, int], network: Callable[..., torch.nn.Sequential]
) -> None:
    with torch.no_grad():
        c = lab.inspect(network(**more), torch.randn(2, 16, 20, 20))
    assert not c.graphs[0].forward.libraries and own_calls(c) == 0


def test_a_choice_between_two_packed_weights_prefers_ours_if_they_are_close() -> None:
    def chosen(own: float) -> str:
        seconds = ("oneDNN packed", 1.0), (OWN, own)
        return Choice("convolution", (1, 2, 3), "float32", seconds).chosen

    assert [chosen(own) for own in (0.5, 1.05, 1.06)] == [OWN, OWN, "oneDNN packed"]
