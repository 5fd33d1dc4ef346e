"""Reductions in two steps: which are split, and that only the order of sums changes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.compiler.ir.program import Reduction
from inductor_lab.compiler.ir.verify import verify
from inductor_lab.compiler.lower.passes.split_reductions import ENOUGH_PROGRAMS
from inductor_lab.compiler.schedule.verify import verify_schedule
from tests.codegen.triton_programs import loads_of_rows

NAN, INF = float("nan"), float("inf")


def floats(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def rounded(*shape: int) -> torch.Tensor:
    """Few different values, so that the extremes occur many times."""
    return floats(*shape).round()


def one_nan(*shape: int) -> torch.Tensor:
    values = floats(*shape)
    values.view(-1)[values.numel() * 2 // 3] = NAN
    return values


# name: function, arguments, whether it is split
Case = tuple[Callable[..., Any], torch.Tensor, bool]
CASES: dict[str, Case] = {
    "sum": (lambda x: (x * 2).sum(), floats(100_000), True),
    "odd": (lambda x: x.sum(), floats(99_991), True),
    "mean_of_matrix": (lambda x: x.mean(), floats(300, 401), True),
    "norm": (lambda x: x.norm(), floats(100_000), True),
    "var": (lambda x: torch.var_mean(x), floats(100_000), True),
    "prod": (lambda x: x.prod(), 1 + floats(70_000) / 1e4, True),
    "rows": (lambda x: (x.sum(1), x.amax(1), x.amin(1)), floats(3, 70_001), True),
    "columns": (lambda x: (x.sum(0), x.amax(0)), floats(40_001, 5), True),
    "middle": (lambda x: x.sum((0, 2)), floats(40, 3, 1000), True),
    "small_outer": (lambda x: x.sum(), floats(2, 3, 30_000), True),
    "argmax": (lambda x: x.argmax(), rounded(100_003), True),
    "argmin_rows": (lambda x: x.argmin(1), rounded(3, 70_001), True),
    "argmax_of_nan": (lambda x: (x.argmax(), x.argmin(), x.amax()), one_nan(100_003), True),
    "argmax_of_lowest": (lambda x: (x * 0 - INF).argmax(), floats(100_003).abs() + 1, True),
    "argmax_of_matrix": (lambda x: x.argmax(), rounded(300, 401), True),
    "max_and_place": (lambda x: x.max(0), rounded(80_000), True),
    "any_all": (lambda x: ((x > 4).any(), (x > -9).all()), floats(100_003), True),
    "int": (lambda x: (x.sum(), x.amax(), x.argmin()), rounded(100_003).long(), True),
    "bool": (lambda x: (x.sum(), x.any(), x.max()), floats(100_003) > 1, True),
    "bfloat16": (lambda x: x.sum(), floats(100_003).bfloat16(), True),
    "softmax": (lambda x: x.softmax(0), floats(70_000), True),
    "short": (lambda x: x.sum(), floats(10_000), False),
    "many_rows": (lambda x: x.sum(1), floats(ENOUGH_PROGRAMS, 700), False),
    "no_elements": (lambda x: x.sum(1), floats(3, 0), False),
}


def same(found: Any, expected: Any) -> None:
    found = found if isinstance(found, tuple | list) else (found,)
    expected = expected if isinstance(expected, tuple | list) else (expected,)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, rtol=2e-3 if b.dtype is torch.bfloat16 else 1e-4, atol=1e-3)


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    function, x, cut = CASES[name]
    expected = function(x)
    expected = tuple(torch.nan_to_num(e) for e in expected) if name.endswith("nan") else expected
    c = lab.inspect(function, x, options={"language": "triton"})
    part = c.graphs[0].forward
    verify(part.loops)
    verify_schedule(part.schedule)
    assert any("p0" in str(nest.axes) for nest in part.loops.nests) == cut, str(part.loops)
    for found in (c.result, part.loops.run(x), part.schedule.run(x)):
        found = tuple(map(torch.nan_to_num, found)) if name.endswith("nan") else found
        same(found, expected)


def test_the_sum_of_a_tensor_fills_a_gpu() -> None:
    c = lab.inspect(lambda x: (x * x).sum(), floats(1 << 20), target="cuda:90")
    parts, total = c.graphs[0].forward.kernels
    assert parts.launch["xnumel"] >= ENOUGH_PROGRAMS and total.launch["xnumel"] == 1
    assert "sum over p0<128 of buf1_parts[p0]" in str(c.graphs[0].forward.loops)
    for kernel in (parts, total):
        assert ".visible .entry" in kernel.ladder("cuda:90")["ptx"]


def test_no_reduction_is_split_on_a_cpu() -> None:
    c = lab.inspect(lambda x: x.sum(), floats(1 << 20))
    assert len(c.graphs[0].forward.loops.nests) == 1


@pytest.mark.parametrize(("rows", "parts"), [(1200, 300), (1206, 9)])
def test_rows_are_split_if_their_parts_fill_a_gpu(rows: int, parts: int) -> None:
    """1206 rows have at most 301 parts; 201 is the next number of parts without a remainder."""
    c = lab.inspect(lambda x: (x.softmax(1), x.sum(0)), floats(rows, 512), target="cuda:90")
    part = c.graphs[0].forward
    assert f"p0<{parts}" in str(part.loops), str(part.loops)
    assert any(group.in_parts for group in part.schedule.groups) == (parts == 300)


def test_values_and_positions_share_one_memory_pass() -> None:
    c = lab.inspect(lambda x: x.max(0), floats(1 << 17), target="cuda:90")
    assert len(c.graphs[0].forward.kernels) == 2


def test_a_sum_of_symbolic_length() -> None:
    compiled = lab.compile(
        lambda x: (x.sum(), x.argmax()), dynamic=True, options={"language": "triton"}
    )
    for size in (7, 5000, 700_001):
        x = floats(size)
        same(compiled(x), (x.double().sum().float(), x.argmax()))


MOMENTS: dict[str, tuple[torch.Tensor, tuple[int, ...], tuple[int, int] | None]] = {
    "a part of each image": (floats(16, 3, 96, 112), (0, 2, 3), (48, 3584)),
    "of each row": (floats(16, 3, 96, 112).transpose(2, 3), (0, 2, 3), (1792, 96)),
    "channels last": (
        floats(16, 3, 96, 112).to(memory_format=torch.channels_last), (0, 2, 3), (1536, 112),
    ),
    "of a long signal": (floats(4, 3, 10_000), (0, 2), (16, 2500)),
    "shorter ones, to have eight": (floats(5, 16, 1024), (1, 2), (8, 2048)),
    "nothing divides it": (floats(2, 3, 4099), (0, 2), None),
    "of a view": (floats(3, 200, 8, 120)[:, 100:], (1, 2, 3), (25, 3840)),
    "few elements": (floats(64, 3, 7, 7), (0, 2, 3), None),
}  # fmt: skip


@pytest.mark.parametrize("name", MOMENTS)
def test_parts_of_moments(name: str) -> None:
    """(parts, elements per part): one block holds a part, and a part is contiguous in memory."""
    x, dims, expected = MOMENTS[name]
    c = lab.inspect(
        lambda x: torch.var_mean(x, dims), x.half().float(), options={"language": "triton"}
    )
    part = c.graphs[0].forward
    verify(part.loops)
    first, *_ = [nest for nest in part.loops.nests if isinstance(nest, Reduction)]
    sizes = [axis.size for axis in first.axes], [axis.size for axis in first.reduce_axes]
    results = prod(x.shape[d] for d in range(x.ndim) if d not in dims)
    found = prod(sizes[0]) // results, prod(sizes[1])
    assert found == (expected or (1, prod(x.shape[d] for d in dims))), str(part.loops)
    exact = torch.var_mean(x.half().double(), dims)
    for mine, right in zip(c.result, exact, strict=True):
        assert_close(mine.double(), right, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("keepdim", [False, True])
def test_moments_of_parts(dtype: torch.dtype, keepdim: bool) -> None:
    x = (floats(9, 3, 40, 50) + 100 * torch.arange(3)[:, None, None]).to(dtype)

    def moments(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.var_mean(x, (0, 2, 3), correction=2, keepdim=keepdim)

    c = lab.inspect(moments, x, options={"language": "triton"})
    part = c.graphs[0].forward
    verify(part.loops)
    assert str(part.loops).count("r0<2000") + str(part.loops).count("r2<50") >= 2
    for found, expected in zip(c.result, moments(x.double()), strict=True):
        rtol = 2e-3 if dtype is torch.float16 else 2e-6
        assert_close(found.double(), expected, rtol=rtol, atol=1e-4 if rtol > 1e-3 else 1e-7)
    for stage in (part.loops, part.schedule):
        for found, expected in zip(stage.run(x), c.result, strict=True):
            assert_close(found, expected)


@pytest.mark.parametrize("offset, first", [(0.0, 0.0), (1000.0, 1000.0), (0.0, 100.0)])
def test_moments_of_columns_from_one_of_their_elements(offset: float, first: float) -> None:
    """Also if the mean is far from zero, and if the element is far from the mean."""
    x = floats(8, 48, 48, 64) + offset
    x[:, :, 0] = first

    def moments(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.var_mean(x, (0, 1, 2))

    c = lab.inspect(moments, x, options={"language": "triton"})
    kernel = c.graphs[0].forward.kernels[0]
    assert str(kernel).count("for ") == 1
    exact, nearest = moments(x.double()), moments(x)
    for found, right, eager in zip(c.result, exact, nearest, strict=True):
        error, of_eager = ((n.double() - right).abs().max() for n in (found, eager))
        assert error <= 4 * of_eager + 1e-6 * right.abs().max() + 1e-7 * abs(first - offset)


@pytest.mark.parametrize("shape", [(8, 4, 40, 64), (4, 3, 96, 112), (4, 3, 40_000)])
def test_a_batch_norm_reads_its_input_twice_on_a_gpu(shape: tuple[int, ...]) -> None:
    x = floats(*shape)

    def normalized(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.batch_norm(x, None, None, training=True).relu()

    c = lab.inspect(normalized, x, target="cuda:90")
    part = c.graphs[0].forward
    reading = [
        kernel for kernel in part.kernels
        if any(parameter.buffer in part.loops.inputs for parameter in kernel.parameters)
    ]
    assert len(part.kernels) == 3 and len(reading) == 2
    assert len(loads_of_rows(reading[0], 0)) == 1 and "for " not in str(reading[0])


def test_column_sums_are_recognized_next_to_loads_of_small_vectors() -> None:
    """The gradients of a layer norm's weights: mean and deviation are one number for each row."""
    x, w = torch.randn(512, 256, requires_grad=True), torch.randn(256, requires_grad=True)
    c = lab.inspect(
        lambda x, w: torch.nn.functional.layer_norm(x, (256,), w), x, w,
        options={"target": "cuda:90"},
    )  # fmt: skip
    columns = [k for k in c.graphs[0].backward.kernels if k.launch["xnumel"] != 512]
    assert columns and all(k.launch["constants"]["XBLOCK"] >= 16 for k in columns)
