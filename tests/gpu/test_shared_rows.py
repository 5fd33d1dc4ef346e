"""Rows that several programs share on a GPU: programs wait for each other's results."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from tests.gpu.test_triton_gpu import agree

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]


def softmax(x: Any) -> Any:
    return torch.softmax(x, -1)


def softmax_and_sums(x: Any) -> Any:
    """Return softmax and row sums, so that the values of rows are results too."""
    top = x.amax(1, keepdim=True)
    powers = (x - top).exp()
    return powers / powers.sum(1, keepdim=True), top


def layer_norm(x: Any) -> Any:
    return F.layer_norm(x, x.shape[1:])


def gradient(x: Any) -> Any:
    y = x.tanh()
    return y * (x - (y * x).sum(-1, keepdim=True))


@pytest.mark.parametrize("function", [softmax, softmax_and_sums, layer_norm, gradient])
@pytest.mark.parametrize("shape", [(128, 16_388), (300, 50_260), (150, 131_072), (130, 151_936)])
def test_rows_of_all_lengths(function: Callable[..., Any], shape: tuple[int, int]) -> None:
    x = torch.randn(*shape, device="cuda")
    compiled = agree(function, x, rtol=1e-4, atol=1e-5)
    assert any("shared" in kernel.launch for kernel in compiled.kernels)


IMAGES = [
    (32, 64, 56, 56),
    (64, 128, 28, 28),
    (64, 512, 14, 14),
    (7, 96, 60, 44),
    (8, 64, 128, 128),
    (512, 256, 7, 7),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", IMAGES)
def test_batch_norm_in_training(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Checks results, gradients and running moments several times.

    If a program read values that another program had already overwritten, calls would differ.
    """
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm2d(shape[1], device="cuda")
    exact = copy.deepcopy(norm).double()
    x = (torch.randn(shape, device="cuda") * 3 + 1).to(dtype).requires_grad_()
    y = x.detach().double().requires_grad_()
    step = torch.compile(lambda x: F.silu(norm(x)), backend=lab.inductor_lab)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    for _ in range(5):
        out, wanted = step(x), F.silu(exact(y))
        along = torch.randn_like(out)
        found = torch.autograd.grad(out, [x, *norm.parameters()], along)
        expected = torch.autograd.grad(wanted, [y, *exact.parameters()], along.double())
        pairs = [(out, wanted), *zip(found, expected, strict=True)]
        pairs += zip(norm.buffers(), exact.buffers(), strict=True)
        for one, other in pairs:
            error = (one.double() - other.double()).norm() / other.double().norm()
            assert error < tolerance, f"{error:.1e}"


@pytest.mark.parametrize("groups", [1, 8, 32])
def test_group_norm(groups: int) -> None:
    x = torch.randn(8, 320, 64, 64, device="cuda")
    agree(lambda x: F.silu(F.group_norm(x, groups)), x, rtol=1e-4, atol=1e-5)


def test_nonfinite_values() -> None:
    x = torch.randn(128, 40_000, device="cuda")
    x[1, 39_999] = float("nan")
    x[2] = float("-inf")
    x[3, 5] = float("inf")
    agree(softmax, x, rtol=1e-4, atol=1e-7)


def test_half_precision() -> None:
    x = torch.randn(256, 32_000, device="cuda", dtype=torch.bfloat16)
    agree(softmax, x, rtol=2e-2, atol=1e-6)


def test_every_call_gives_the_same_bits() -> None:
    x = torch.randn(500, 100_004, device="cuda")
    compiled = lab.compile(softmax)
    first = compiled(x)
    assert all(torch.equal(compiled(x), first) for _ in range(200))


def test_concurrent_calls_on_two_streams() -> None:
    compiled = lab.compile(softmax)
    given = [torch.randn(600, 131_072, device="cuda") for _ in range(2)]
    expected = [compiled(x) for x in given]
    streams = [torch.cuda.Stream() for _ in given]
    torch.cuda.synchronize()
    found: list[list[torch.Tensor]] = [[], []]
    for _ in range(20):
        for x, stream, results in zip(given, streams, found, strict=True):
            with torch.cuda.stream(stream):
                results[:] = [compiled(x)]
    torch.cuda.synchronize()
    for results, wanted in zip(found, expected, strict=True):
        assert torch.equal(results[0], wanted)


def test_recorded_in_a_cuda_graph() -> None:
    compiled = lab.compile(softmax, mode="reduce-overhead")
    for seed in range(6):
        torch.manual_seed(seed)
        x = torch.randn(200, 70_000, device="cuda")
        torch.testing.assert_close(compiled(x), softmax(x), rtol=1e-4, atol=1e-7)
