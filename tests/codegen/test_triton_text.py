"""The text of Triton kernels: masks, blocks, rows, index types, origins."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.triton.printer import triton_kernel
from inductor_lab.compiler.codegen.triton.triton_ops import TRITON_OPS
from inductor_lab.compiler.ir.expr import Const, Load, Op
from inductor_lab.compiler.ir.index import Axis, Index, Size
from inductor_lab.compiler.ir.program import Buffer, BufferKind, Layout, Pointwise, Reduction
from inductor_lab.compiler.schedule.schedule import Cost, Group
from inductor_lab.compiler.torch_door.torch_api import fake_mode
from tests.codegen.triton_programs import kernels_of

F32 = torch.float32


def buffer(name: str, *size: Size, dtype: torch.dtype = F32) -> Buffer:
    return Buffer(name, BufferKind.COMPUTED, dtype, "cpu", Layout.contiguous(size))


def pointwise(*size: Size, dtype: torch.dtype = F32) -> tuple[Group, dict[str, Buffer]]:
    """`y = -(x)` with the given sizes."""
    axes = tuple(Axis(f"i{d}", n) for d, n in enumerate(size))
    load = Load("x", tuple(Index.of(axis) for axis in axes), dtype, frozenset({"x"}))
    nest = Pointwise("y", axes, Op("neg", (load,), dtype), frozenset({"neg"}))
    group = Group("fused_neg", axes, (nest,), frozenset({"y"}), {}, Cost(), nest.origins)
    return group, {name: buffer(name, *size, dtype=dtype) for name in "xy"}


def row_sum(rows: Size, row: Size) -> tuple[Group, dict[str, Buffer]]:
    i, j = Axis("i", rows), Axis("j", row)
    load = Load("x", (Index.of(i), Index.of(j)), F32)
    nest = Reduction("y", (i,), (j,), "sum", load, frozenset({"sum_1"}))
    axes = (i,) if rows != 1 else ()
    group = Group("fused_sum", axes, (nest,), frozenset({"y"}), {}, Cost(), nest.origins)
    return group, {"x": buffer("x", rows, row), "y": buffer("y", rows)}


def printed(made: tuple[Group, dict[str, Buffer]]) -> Kernel:
    return triton_kernel(*made, "kernel")


def test_axes_are_merged_and_full_blocks_need_no_mask() -> None:
    assert str(printed(pointwise(16, 64))) == (
        "@triton.jit\n"
        "def kernel(in0, out0, XBLOCK: tl.constexpr):\n"
        "    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)\n"
        "    t0 = tl.load(in0 + xindex)\n"
        "    tl.store(out0 + xindex, t0 * -1.0)\n"
    )


def test_a_partial_block_needs_a_mask() -> None:
    text = str(printed(pointwise(1000)))
    assert "xmask = xindex < 1000" in text
    assert "tl.load(in0 + xindex, xmask)" in text and "t0 * -1.0, xmask)" in text


def test_large_buffers_are_indexed_with_64_bits() -> None:
    assert "program_id(0).to(tl.int64)" in str(printed(pointwise(1 << 16, 1 << 15)))
    assert "int64" not in str(printed(pointwise(1 << 16, 1 << 14)))


def test_short_rows_are_one_block_and_long_rows_a_loop() -> None:
    short = printed(row_sum(64, 500))
    assert "for " not in str(short) and short.launch["constants"] == {"XBLOCK": 2, "RBLOCK": 512}
    assert "lab.row_sum(tl.where(rmask, t0, 0.0))" in str(short)
    long = printed(row_sum(64, 100_000))
    assert "for roffset in range(0, 100000, RBLOCK):" in str(long)
    assert "acc0_block = tl.where(rmask, acc0_block + t0, acc0_block)" in str(long)
    even = printed(row_sum(64, 1 << 16))
    assert "mask" not in str(even) and "acc0_block = acc0_block + t0" in str(even)


def test_a_full_reduction_is_one_program() -> None:
    kernel = printed(row_sum(1, 1000))
    assert "program_id" not in str(kernel) and kernel.launch["xnumel"] == 1
    assert "tl.store(out0 + tl.full([1, 1], 0, tl.int32), acc0)" in str(kernel)


def test_a_row_that_is_visited_several_times_is_read_once() -> None:
    (kernel,) = kernels_of(lambda x: torch.softmax(x, -1), torch.randn(64, 100))
    assert str(kernel).count("tl.load") == 1
    (kernel,) = kernels_of(lambda x: torch.softmax(x, -1), torch.randn(64, 10_000))
    assert str(kernel).count("tl.load") == 3


def test_points_that_are_adjacent_in_memory_share_a_program() -> None:
    (kernel,) = kernels_of(lambda x: x.sum(0), torch.randn(400, 64))
    assert kernel.launch["constants"]["XBLOCK"] == 16
    (kernel,) = kernels_of(lambda x: x.sum(1), torch.randn(64, 2000))
    assert kernel.launch["constants"]["XBLOCK"] == 1


def test_a_transposed_read_makes_tiles() -> None:
    a, b = torch.randn(50, 70), torch.randn(70, 50)
    (kernel,) = kernels_of(lambda a, b: a + b.t(), a, b)
    assert kernel.launch["constants"] == {"XBLOCK": 32, "YBLOCK": 32}
    assert (kernel.launch["xnumel"], kernel.launch["ynumel"]) == (50, 70)
    assert "tl.load(in1 + (xindex + 50 * yindex), xmask & ymask)" in str(kernel)
    with fake_mode():
        large = torch.empty(4096, 2048), torch.empty(2048, 4096)
        (kernel,) = kernels_of(lambda a, b: a + b.t(), *large, run=False)
    assert kernel.launch["constants"] == {"XBLOCK": 64, "YBLOCK": 64}


@pytest.mark.parametrize(("length", "sides"), [(4096, (1, 1024)), (3136, (4, 256)), (70, (32, 32))])
def test_a_value_that_a_row_shares_is_read_once(length: int, sides: tuple[int, int]) -> None:
    x, b = torch.randn(40, length), torch.randn(40)
    (kernel,) = kernels_of(lambda x, b: x + b[:, None], x, b)
    assert tuple(kernel.launch["constants"].values()) == sides
    assert "tl.load(in0 + xindex" in str(kernel)


def test_few_columns_are_summed_by_enough_programs() -> None:
    with fake_mode():
        first, last = kernels_of(lambda x: x.sum(0), torch.empty(65536, 2048), run=False)
    assert (first.launch["xnumel"], last.launch["xnumel"]) == (32 * 2048, 2048)
    assert first.launch["constants"] == {"XBLOCK": 64, "RBLOCK": 8}
    assert first.launch["num_warps"] == 2


def test_positions_are_as_narrow_as_indices() -> None:
    (kernel,) = kernels_of(lambda x: x.argmax(1), torch.randn(3, 5000))
    assert "lab.next_max" in str(kernel) and "int64" not in str(kernel)


def test_every_statement_has_origins() -> None:
    kernel = printed(pointwise(1000))
    (store,) = kernel.code.lines_of("neg")
    assert "tl.store" in kernel.code.lines[store - 1].text
    (load,) = kernel.code.lines_of("x")
    assert "tl.load" in kernel.code.lines[load - 1].text
    frame = [line for line in kernel.code.lines if not line.statement]
    assert all(not line.origins for line in frame)


def test_the_table_of_operations_can_be_replaced() -> None:
    group, buffers = pointwise(8)
    kernel = triton_kernel(group, buffers, "kernel", ops={**TRITON_OPS, "neg": "2 * {0}"})
    assert "2 * t0" in str(kernel)


def test_a_long_signature_is_wrapped() -> None:
    xs = [torch.randn(8) for _ in range(20)]
    (kernel,) = kernels_of(lambda *xs: sum(xs), *xs)
    assert max(len(line.text) for line in kernel.code.lines) <= 100


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.uint8])
def test_constants_keep_the_dtype_of_a_value(dtype: torch.dtype) -> None:
    i = Axis("i", 8)
    condition = Op("gt", (Load("x", (Index.of(i),), F32), Const(0.0, F32)), torch.bool)
    choice = Op("where", (condition, Const(1, dtype), Const(2, dtype)), dtype)
    nest = Pointwise("y", (i,), choice)
    group = Group("fused_where", (i,), (nest,), frozenset({"y"}), {}, Cost())
    text = str(triton_kernel(group, {"x": buffer("x", 8), "y": buffer("y", 8, dtype=dtype)}, "k"))
    name = str(dtype).removeprefix("torch.")
    assert f"tl.full([], 1{'.0' if dtype.is_floating_point else ''}, tl.{name})" in text
    assert "t0 > 0.0" in text


def test_floor_division_of_an_odd_length() -> None:
    """Triton's division truncates: -(-5 // 2) would be 2, so Python computes the division."""

    def half(x: torch.Tensor) -> torch.Tensor:
        return x[: -(-x.shape[0] // 2)] + 1

    compiled = lab.compile(half, dynamic=True, options={"language": "triton"})
    for length in (4, 5, 9, 2):
        assert torch.equal(compiled(torch.arange(float(length))), half(torch.arange(float(length))))
    options = {"language": "triton", "dynamic": True}
    (graph,) = lab.inspect(half, torch.arange(5.0), options=options).graphs
    (kernel,) = graph.forward.kernels
    assert "//" not in str(kernel) and "// 2" in str(graph.forward.host)
    assert ".entry" in str(kernel.ladder("cuda:90")["ptx"])
