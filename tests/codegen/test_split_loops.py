"""Loops are split where masks change, and the pieces compute the same results."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab

sys.path.insert(0, str(Path(__file__).parent))
Compiled = importlib.import_module("cpp_backend").Compiled

x, y = torch.randn(40, 300), torch.randn(40, 700)
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "cat": (lambda a, b: torch.cat([a.relu(), b * 2], 1), (x, y), 2),
    "cat of three": (lambda a, b: torch.cat([a, b, a + 1], 1).exp(), (x, y), 3),
    "cat of flat tensors": (lambda a, b: torch.cat([a, b * 2]), (x[0], y[0]), 2),
    "pad": (lambda a: F.pad(a, (3, 5, 1, 2), value=1.5), (x,), 3),
    "pad of pad": (lambda a: F.pad(F.pad(a, (3, 5)) + 1, (2, 2)), (x,), 5),
    "columns by number": (lambda a: torch.where(torch.arange(300) >= 70, a, -a), (x,), 2),
    "one column": (lambda a: torch.where(torch.arange(300) == 70, a, -a), (x,), 2),
    "window": (lambda a: F.avg_pool1d(a, 3, 2, 1), (x,), 1),
    "window ends": (lambda a: F.avg_pool1d(a, 4, 2, 2, ceil_mode=True), (x,), 1),
    "repeated": (lambda a: a[:, :, None].expand(40, 300, 2).reshape(40, 600).exp(), (x,), 1),
    "repeated, with a rest": (
        lambda a: a[:, :100, None].expand(40, 100, 3).reshape(40, 300)[:, :299].exp(), (x,), 2
    ),
    "too many pieces": (lambda a: torch.cat([a[:, :70]] * 7, 1), (x,), 1),
    "too short": (lambda a: F.pad(a[:, :9], (1, 1)), (x,), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_pieces(name: str) -> None:
    function, args, pieces = CASES[name]
    compiled = Compiled()
    torch.testing.assert_close(compiled(function)(*args), function(*args))
    text = "\n".join(str(kernel.code) for kernel in compiled.kernels)
    assert text.count("simd") == pieces, text
    if (pieces in (2, 3) and name != "pad") or "window" in name:
        assert "if" not in text and "?" not in text, text
    if "repeated" in name:
        assert " / " not in text and " % " not in text, text


def thirds(a: torch.Tensor) -> torch.Tensor:
    n = a.shape[1] // 3
    return torch.cat([a[:, :n], a.sin(), a[:, n:]], 1)


SYMBOLIC: dict[str, tuple[Callable[..., Any], int]] = {
    "cat": (lambda a, b: torch.cat([a.relu(), b * 2], 1), 2),
    "pad": (lambda a, b: F.pad(a, (3, 5), value=1.5) + 1, 3),
    "cat and pad": (lambda a, b: F.pad(torch.cat([a, b * 2], 1), (0, 2)), 3),
    "thirds": (lambda a, b: thirds(a), 3),
    "slice of the second, or of both": (lambda a, b: torch.cat([a, b], 1)[:, 5:].exp(), 1),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_pieces_of_symbolic_sizes(name: str) -> None:
    """Split if the order of the cuts is the same for all sizes; correct for each size."""
    function, pieces = SYMBOLIC[name]
    given = [torch.randn(40, 300), torch.randn(40, 700)]
    for tensor in given:
        torch._dynamo.mark_dynamic(tensor, 1)
    (kernel,) = lab.inspect(function, *given).graphs[0].forward.kernels
    assert str(kernel).count("simd") == pieces
    assert pieces == 1 or not re.search(r"\?|^ *if", str(kernel), re.MULTILINE)
    torch.compiler.reset()
    compiled = lab.compile(function, dynamic=True)
    for left, right in ((300, 700), (2, 9), (7, 3), (4, 4), (64, 5), (1000, 31)):
        args = torch.randn(40, left), torch.randn(40, right)
        torch.testing.assert_close(compiled(*args), function(*args))


def test_rows_are_split_if_masks_would_prevent_vectorization() -> None:
    """A window with padding, and its gradient: several loops without masks."""
    image = torch.randn(64, 1, 40, 40, requires_grad=True)
    compiled = Compiled()
    result = compiled(lambda a: F.max_pool2d(a, 3, 2, 1))(image)
    expected = F.max_pool2d(image, 3, 2, 1)
    torch.testing.assert_close(result, expected)
    forward = str(compiled.kernels[0].code)
    assert forward.count("simd") == 2, forward
    assert "in0[" in forward and "? in0" not in forward, forward
    weights = torch.randn_like(expected)
    gradients = [torch.autograd.grad(y, image, weights)[0] for y in (result, expected)]
    torch.testing.assert_close(*gradients)
    backward = "\n".join(str(kernel.code) for kernel in compiled.kernels[1:])
    assert "if (" not in backward, backward


def test_rows_that_threads_share_are_split_too() -> None:
    """A stack of images: one loop over all images per part, without masks."""

    def stacked(a: torch.Tensor) -> torch.Tensor:
        return torch.stack([a.remainder(0.3), (a + 1) / (a - 2), a.sin()], 1)

    images = torch.randn(8, 96, 128)
    c = lab.inspect(stacked, images)
    torch.testing.assert_close(c.result, stacked(images))
    (kernel,) = c.graphs[0].forward.kernels
    assert str(kernel).count("parallel for collapse(2)") == 3, str(kernel)
    assert "if (" not in str(kernel) and "?" not in str(kernel), str(kernel)


@pytest.mark.parametrize("size", [14, 56])
def test_pieces_inside_a_loop_share_no_values(size: int) -> None:
    """In the first piece, the elements of a window inside the border are sums of zeros (timm's
    EfficientFormer)."""

    def mixed(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        y = x.relu()
        pooled = F.avg_pool2d(y, 3, 1, 1, count_include_pad=False)
        return y + (pooled - y) * scale[:, None, None]

    images = torch.randn(2, 48, size, size).to(memory_format=torch.channels_last)
    scale = torch.randn(48)
    torch.testing.assert_close(Compiled()(mixed)(images, scale), mixed(images, scale))


def test_a_chain_of_maxima_is_one_vector_loop() -> None:
    """The result is NaN if either operand is NaN."""
    nan = torch.where(torch.rand(6, 8, 300) < 0.2, torch.nan, torch.randn(6, 8, 300))

    def function(a: torch.Tensor) -> torch.Tensor:
        found = a[0]
        for n in range(1, 6):
            found = torch.minimum(torch.maximum(found, a[n]), a[n - 1])
        return found

    torch.testing.assert_close(Compiled()(function)(nan), function(nan), equal_nan=True)


ANGLES = torch.linspace(-3, 3, 303)


def quaternions(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Products of quaternions."""
    (p, q, r, s), (t, u, v, w) = a.unbind(-1), b.unbind(-1)
    real, i = p * t - q * u - r * v - s * w, p * u + q * t + r * w - s * v
    return torch.stack([real, i, p * v - q * w + r * t + s * u, p * w + q * v - r * u + s * t], -1)


def complex_products(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Pairs of real numbers as complex numbers."""
    (p, q), (r, s) = a.unflatten(-1, (2, 2)).unbind(-1), b.unflatten(-1, (2, 2)).unbind(-1)
    return torch.stack([p * r - q * s, p * s + q * r], -1).flatten(-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("product", [quaternions, complex_products])
def test_adjacent_stores_are_rounded_as_in_eager_mode(
    product: Callable[..., torch.Tensor], dtype: torch.dtype
) -> None:
    """GCC 12 fuses multiplications with adjacent differences and sums, although contraction is off.
    """
    torch.manual_seed(0)
    a, b = torch.randn(2, 303, 4, dtype=dtype)
    c = lab.inspect(product, a, b)
    assert torch.equal(c.result, product(a, b))
    assert "lab_difference<" in str(c.graphs[0].forward.kernels[0])


@pytest.mark.parametrize("parts", [2, 3, 9, 16])
def test_the_elements_of_a_stack_are_unrolled(parts: int) -> None:
    """Also if a 4 by 4 matrix is assembled: vector lanes run along the matrices."""
    given = [ANGLES + k for k in range(parts)]
    c = lab.inspect(lambda *given: torch.stack([x * 2 for x in given], -1), *given)
    assert torch.equal(c.result, torch.stack([x * 2 for x in given], -1))
    (kernel,) = c.graphs[0].forward.kernels
    assert str(kernel).count("out0[") == parts and "?" not in str(kernel)


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_very_short_rows_are_unrolled(columns: int) -> None:
    """Except conditional rows of 3: GCC 12 uses one condition for all."""
    x, scale = ANGLES.reshape(-1, 1) * torch.ones(columns), torch.arange(1.0, columns + 1)
    c = lab.inspect(lambda x, scale: x * scale, x, scale)
    assert torch.equal(c.result, x * scale)
    assert str(c.graphs[0].forward.kernels[0]).count("out0[") == columns
    c = lab.inspect(lambda x, scale: torch.where(x > 0, x * scale, x), x, scale)
    assert torch.equal(c.result, torch.where(x > 0, x * scale, x))
    assert str(c.graphs[0].forward.kernels[0]).count("out0[") == (1 if columns == 3 else columns)


def test_a_loop_that_becomes_vectorized_is_not_collapsed_with_the_outer_loop() -> None:
    """Few images with many points and three channels: points are vectorized, images threaded."""
    x = torch.randn(4, 3, 224, 224)
    c = lab.inspect(lambda x: x.contiguous(memory_format=torch.channels_last) + 1, x)
    (kernel,) = c.graphs[0].forward.kernels
    assert "simd" in str(kernel) and "collapse" not in str(kernel)
    assert torch.equal(c.result, x + 1)


def test_a_short_row_of_sums_of_one_element_is_not_unrolled() -> None:
    """Outer products: each element is a sum without a loop."""
    a, b = torch.randn(12, 64, 1), torch.randn(12, 1, 4)
    c = lab.inspect(lambda a, b: torch.bmm(a, b) + 1, a, b)
    torch.testing.assert_close(c.result, a * b + 1)


def test_loops_over_a_row_are_split_next_to_its_sums() -> None:
    """A norm followed by a rotation of halves, as for queries and keys: GCC did not vectorize the
    masks, with several statements each (650 instead of 450 µs in bfloat16)."""

    def rotated(a: torch.Tensor) -> torch.Tensor:
        a = a * torch.rsqrt(a.square().mean(-1, keepdim=True) + 1e-6)
        first, second = a.chunk(2, -1)
        return torch.cat([first * 2 - second * 3, second * 2 + first * 3], -1)

    compiled, heads = Compiled(), torch.randn(40, 64)
    torch.testing.assert_close(compiled(rotated)(heads), rotated(heads))
    (kernel,) = compiled.kernels
    assert "if (" not in str(kernel.code), str(kernel.code)


@pytest.mark.parametrize("first", [True, False])
def test_reductions_are_split_where_a_mask_changes(first: bool) -> None:
    """A softmax with an attention sink, and other reductions of concatenated tensors: with masks,
    the softmax took 1.6 times as long."""

    def reduced(a: torch.Tensor, sink: torch.Tensor) -> tuple[torch.Tensor, ...]:
        both = (sink[:, None], a) if first else (a, sink[:, None])
        joined = torch.cat(both, -1)
        padded = F.pad(a.double(), (20, 30), value=0.5)
        return joined.softmax(-1), joined.logsumexp(-1), padded.prod(-1), (joined > 3).any(-1)

    values, sink = torch.randn(40, 90), torch.randn(40)
    values[3, 7], sink[5], sink[9] = torch.nan, torch.inf, -torch.inf
    c = lab.inspect(reduced, values, sink)
    torch.testing.assert_close(c.result, reduced(values, sink), equal_nan=True)
    texts = "".join(str(kernel) for kernel in c.graphs[0].forward.kernels)
    assert "? in" not in texts and "if (" not in texts, texts
    few, some = values[:2].repeat(1, 900), sink[:2]  # threads share the loops inside a point
    torch.testing.assert_close(
        lab.compile(reduced)(few, some), reduced(few, some), equal_nan=True
    )
