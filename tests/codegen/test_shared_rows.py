"""Which rows several programs share, which stay in the caches, and the text of the kernels.

No GPU is needed; tests/gpu/test_shared_rows.py runs the kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

import inductor_lab as lab
from inductor_lab.compiler.codegen.kernel import Kernel
from tests.codegen.triton_programs import kernels_of, loads_of_rows

Shape = tuple[int, ...]


def kernels(function: Callable[..., Any], *shapes: Shape, dtype: Any = None) -> list[Kernel]:
    """The kernels of a call for a GPU target; no GPU is needed."""
    with FakeTensorMode():
        given = [torch.empty(shape, dtype=dtype, device="cuda") for shape in shapes]
        return kernels_of(function, *given, run=False)


def softmax(x: Any) -> Any:
    return torch.softmax(x, -1)


def gradient(y: Any, g: Any) -> Any:
    return y * (g - (y * g).sum(-1, keepdim=True))


def layer_norm(x: Any) -> Any:
    return F.layer_norm(x, x.shape[1:])


def running(x: Any, m: Any) -> Any:
    """Some results are one value per row."""
    return x - x.mean(1, keepdim=True), m * 0.9 + x.mean(1)


def batch_norm(x: Any) -> Any:
    return F.relu(F.batch_norm(x, None, None, training=True))


SHARED: dict[str, tuple[Any, ...]] = {
    "softmax": (softmax, (1024, 131_072)),
    "the longest row": (softmax, (512, 524_288)),
    "few": (softmax, (32, 65_536)),
    "a rest": (softmax, (300, 50_260)),
    "one row": (layer_norm, (1, 32_000)),
    "two buffers": (gradient, (200, 40_000), (200, 40_000)),
}


@pytest.mark.parametrize("name", SHARED)
def test_a_row_is_read_once_and_compiles(name: str) -> None:
    function, *shapes = SHARED[name]
    (kernel,) = kernels(function, *shapes)
    parts, words = kernel.launch["shared"]
    length = shapes[0][1]
    assert 1 < parts <= 32
    assert (parts - 1) * kernel.launch["constants"]["RBLOCK"] < length
    text = str(kernel.code)
    exchanges = text.count("of_all_parts") + text.count("published_parts")
    assert words == parts * exchanges > 0
    for number, _ in enumerate(shapes):
        assert len(loads_of_rows(kernel, number)) == 1
    assert kernel.ladder("cuda:90")["cubin"]


@pytest.mark.parametrize("side", [14, 28, 56])
def test_a_channel_is_read_once_for_its_moments_and_its_result(side: int) -> None:
    (kernel,) = kernels(batch_norm, (64, 128, side, side))
    length = 64 * side * side
    assert kernel.launch["shared"][0] == -(-length // kernel.launch["constants"]["RBLOCK"])
    assert len(loads_of_rows(kernel, 0)) == 1


def test_one_program_writes_values_per_row() -> None:
    (kernel,) = kernels(running, (1024, 131_072), (1024,))
    stores = [line for line in str(kernel.code).splitlines() if "tl.store" in line]
    assert {("rindex" in line, "rpart == 0" in line) for line in stores} == {
        (True, False),
        (False, True),
    }


def test_a_target_without_a_device_gets_the_same_kernel() -> None:
    found = lab.inspect(softmax, torch.zeros(128, 20_000), options={"target": "cuda:90"})
    (kernel,) = found.graphs[0].forward.kernels
    assert kernel.launch["shared"] == (5, 10)
    assert kernel.ladder("hip:gfx942")["hsaco"]


NOT_SHARED: dict[str, tuple[Any, ...]] = {
    "it stays in the caches": (softmax, (4096, 16_384)),
    "unaligned rows": (softmax, (1024, 50_257)),
    "read once": (lambda x: x.sum(1), (1024, 131_072)),
    "integers": (lambda x: x - x.long().sum(1, keepdim=True), (1024, 131_072)),
    "a scan": (lambda x: x.cumsum(1) - x.sum(1, keepdim=True), (1024, 131_072)),
    "argmax": (lambda x: x - x.argmax(1, keepdim=True), (1024, 131_072)),
    "too long": (softmax, (1024, 524_292)),
    "too few": (softmax, (16, 65_536)),
    "columns": (lambda x: x - x.mean(0), (16_384, 16_384)),
    "images with the channels last": (
        lambda x: batch_norm(x.permute(0, 3, 1, 2)), (64, 56, 56, 256),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_SHARED)
def test_these_rows_are_not_shared(name: str) -> None:
    function, *shapes = NOT_SHARED[name]
    assert not any("shared" in kernel.launch for kernel in kernels(function, *shapes))


def test_a_maximum_and_a_sum_without_normalization_use_parts() -> None:
    with FakeTensorMode():
        x = torch.empty(8192, 32_000, device="cuda")
        targets = torch.empty(8192, dtype=torch.int64, device="cuda")
        first, *_ = kernels_of(F.cross_entropy, x, targets, run=False)
    assert "shared" not in first.launch
    assert first.launch["xnumel"] == 8192 * 8


BLOCKS = {
    "large": (softmax, torch.float32, 8192, 8192, 32),
    "of halves": (softmax, torch.bfloat16, 8192, 4096, 16),
    "small": (layer_norm, torch.bfloat16, 5120, 2048, 8),
    "read once": (lambda x: x.sum(1), torch.float32, 8192, 2048, 8),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_the_block_of_a_row_depends_on_the_bytes_read_twice(name: str) -> None:
    function, dtype, length, block, warps = BLOCKS[name]
    (kernel,) = kernels(function, (4096, length), dtype=dtype)
    found = kernel.launch["constants"]["RBLOCK"], kernel.launch["num_warps"]
    assert found == (block, warps)
