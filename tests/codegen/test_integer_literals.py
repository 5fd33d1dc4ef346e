"""Integer literals have the exact type, so that expressions wrap as in eager mode."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from inductor_lab.compiler.base.options import FusionOptions, Options
from inductor_lab.compiler.codegen.cpp.cpp_ops import CTYPES, const_text
from inductor_lab.compiler.codegen.cpp.printer import cpp_kernel
from inductor_lab.compiler.codegen.host.host_program import host_program
from inductor_lab.compiler.ir.expr import Const, Load, Op
from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    BufferView,
    Layout,
    LoopProgram,
    Pointwise,
)
from inductor_lab.compiler.runtime.executable import build_executable
from inductor_lab.compiler.schedule.passes import schedule_program

INTEGERS = [t for t in CTYPES if not t.is_floating_point and t is not torch.bool]


def numbers_of(dtype: torch.dtype) -> list[int]:
    """The limits of a type, and numbers next to the limits of narrower types."""
    info = torch.iinfo(dtype)
    edges = [sign * 2**bits + d for bits in (7, 8, 15, 16, 31, 32, 63, 64)
             for sign in (1, -1) for d in (-1, 0, 1)]  # fmt: skip
    return sorted({info.min, info.max, *(n for n in edges if info.min <= n <= info.max)})


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_an_expression_with_a_literal_wraps(dtype: torch.dtype) -> None:
    """`x + literal > 3` in one expression: in a wider type the sum would not wrap."""
    layout, axis = Layout.contiguous((8,)), Axis("i0", 8)
    info = torch.iinfo(dtype)
    values = torch.tensor([0, 1, 2, 3, info.max, info.max - 1, info.min, info.min + 1], dtype=dtype)
    load, origins = Load("x", (Index.of(axis),), dtype), frozenset({"formula"})
    x = Buffer("x", BufferKind.INPUT, dtype, "cpu", layout)
    made = [
        Buffer(f"buf{k}", BufferKind.COMPUTED, torch.bool, "cpu", layout)
        for k in range(len(numbers_of(dtype)))
    ]
    nests = []
    for buffer, number in zip(made, numbers_of(dtype), strict=True):
        total = Op("add", (load, Const(number, dtype)), dtype)
        body = Op("gt", (total, Const(3, dtype)), torch.bool)
        nests.append(Pointwise(buffer.name, (axis,), body, origins))
    outputs = tuple(BufferView(buffer.name, layout) for buffer in made)
    buffers = {buffer.name: buffer for buffer in (x, *made)}
    program = LoopProgram("forward", ("x",), buffers, tuple(nests), outputs)
    schedule = schedule_program(program, FusionOptions())
    kernels = [cpp_kernel(g, buffers, f"cpp_{g.name}") for g in schedule.groups]
    call = build_executable(schedule, kernels, host_program(schedule, kernels), Options())
    for number, result in zip(numbers_of(dtype), call([values]), strict=True):
        with np.errstate(over="ignore"):
            total = values.numpy() + np.array([number], values.numpy().dtype)
        assert result.tolist() == (total > 3).tolist(), const_text(Const(number, dtype))


@pytest.mark.parametrize(
    ("number", "dtype", "text"),
    [
        (-(2**31), torch.int32, "INT32_MIN"),
        (-(2**31), torch.int64, "INT64_C(-2147483648)"),
        (-(2**63), torch.int64, "INT64_MIN"),
        (2**31, torch.uint32, "UINT32_C(2147483648)"),
        (2**32 - 1, torch.int64, "INT64_C(4294967295)"),
        (2**63, torch.uint64, "UINT64_C(9223372036854775808)"),
        (-128, torch.int8, "(-128)"),
    ],
)
def test_the_text_of_a_literal(number: int, dtype: torch.dtype, text: str) -> None:
    assert const_text(Const(number, dtype)) == text
