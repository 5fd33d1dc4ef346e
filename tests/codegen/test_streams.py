"""Streaming stores: which large results use them, and that the results are correct."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.compiler.codegen.cpu import passes

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int64]


@pytest.fixture
def everything_streams(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    torch.compiler.reset()
    monkeypatch.setattr(passes, "STREAMED_BYTES", 0)
    yield
    torch.compiler.reset()


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return (torch.randn(shape, generator=generator) * 50).to(dtype)


def code_of(fn: Callable[..., Any], *args: torch.Tensor) -> str:
    graph = lab.inspect(fn, *args).graphs[0]
    return "\n".join(str(kernel.code) for kernel in graph.forward.kernels)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [256, 257, 1000, 70_001])
def test_every_element_is_written(everything_streams: None, dtype: torch.dtype, size: int) -> None:
    x = numbers(size, dtype=dtype)
    assert_close(lab.compile(lambda x: x + 1)(x), x + 1, rtol=0, atol=0)
    y = numbers(3, 5, size, dtype=dtype)
    assert_close(lab.compile(lambda y: y[:, 1:] * 2)(y), y[:, 1:] * 2, rtol=0, atol=0)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "rows": lambda x: torch.softmax(x, -1),
    "norm": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    "two results": lambda x: (x + 1, (x * 2).to(torch.float64)),
    "a test": lambda x: x > 0,
    "broadcast": lambda x: x[:, None] + x[None],
    "checked": lambda x: x[:, (torch.arange(x.shape[1], device=x.device) * 7) % 300] * 2,
    "scattered": lambda x: torch.index_add(x, 0, torch.tensor([1, 1, 3]), x[:3]),
    "columns": lambda x: x - x.mean(0),
    "pieces": lambda x: torch.cat([x, x * 2], 1),
    "transposed": lambda x: x.t() + 1,
    "written": lambda x: x.mul_(3).amax(-1),
}


@pytest.mark.parametrize("columns", [777, 768])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(everything_streams: None, name: str, threads: int, columns: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        ours, theirs = numbers(37, columns), numbers(37, columns)
        assert_close(lab.compile(PROGRAMS[name])(ours), PROGRAMS[name](theirs))
        assert_close(ours, theirs)
    finally:
        torch.set_num_threads(before)


def test_only_large_unread_results_are_streamed() -> None:
    large, small = torch.zeros(4_000_000), torch.zeros(3_999_000)
    assert "lab_stream" in code_of(lambda x: x + 1, large)
    assert "lab_stream" not in code_of(lambda x: x + 1, small)
    assert "lab_stream" not in code_of(lambda x: x.add_(1), large.clone())
    square = torch.zeros(2000, 2000)
    assert "lab_stream" not in code_of(lambda x: (x + 1) @ x, square)
    assert "lab_stream" not in code_of(lambda x: ((y := x + 1), y @ x), square)


def test_a_streaming_loop_is_vectorized_and_threaded() -> None:
    text = code_of(lambda x: torch.relu(x + 1), torch.zeros(4_000_000))
    lines = [line.strip() for line in text.splitlines()]
    assert lines.count("#pragma omp parallel for") == 1
    assert lines.count("#pragma omp simd") == 1
    assert "parallel for simd" not in text


@pytest.mark.parametrize("start, size, whole", [(0, 640, True), (1, 639, False), (0, 650, False)])
def test_full_lines(everything_streams: None, start: int, size: int, whole: bool) -> None:
    """A block of full cache lines has a constant length, so that it stays in registers."""
    x = numbers(5, 650)
    text = code_of(lambda x: x[:, start : start + size].clone(), x)
    assert ("lab_stream_lines(" in text) == whole
    assert ("lab_stream(" in text) != whole
    rows = code_of(lambda x: torch.cat([x[:, :320], x[:, :330] * 2], 1), x)
    assert "lab_stream_lines(" not in rows, "rows of 650 floats start inside a cache line"
