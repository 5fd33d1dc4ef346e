"""The loop IR as text."""


import pytest
import sympy
import torch
from torch.utils._sympy.functions import FloorDiv

from inductor_lab.compiler.ir import text
from inductor_lab.compiler.ir.expr import Const, IndexValue, Load, Masked, Op, SizeValue, Temp
from inductor_lab.compiler.ir.index import ZERO, Axis, Gathered, Index
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    BufferView,
    ExternCall,
    Layout,
    LoopProgram,
    Pointwise,
    Reduction,
)

f32, i64, u8 = torch.float32, torch.int64, torch.uint8
i, j, r = Axis("i0", 8390), Axis("i1", 8), Axis("r0", 8)
I, J, R = Index.of(i), Index.of(j), Index.of(r)
n = sympy.Symbol("s0", integer=True, positive=True)
k = Axis("i2", 16)
K = Index.of(k)


@pytest.mark.parametrize(
    ("dtype", "short"),
    [
        (torch.float32, "f32"),
        (torch.bfloat16, "bf16"),
        (torch.float16, "f16"),
        (torch.int64, "i64"),
        (torch.uint8, "u8"),
        (torch.bool, "b8"),
        (torch.complex64, "c64"),
        (torch.float8_e4m3fn, "f8_e4m3fn"),
    ],
)
def test_dtypes(dtype, short):
    assert text.dtype_text(dtype) == short


def test_sizes():
    halves = FloorDiv(n, 2)
    assert text.size_text(halves * 4 + 1) == "4*(s0//2) + 1"
    assert text.sizes_text((n, 3)) == "[s0, 3]"


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (ZERO, "0"),
        (I * 512 + J + 3, "512*i0 + i1 + 3"),
        (J * -1 + 7, "-i1 + 7"),
        (I - 2, "i0 - 2"),
        (I * n + J, "s0*i0 + i1"),
        (I * (n + 1), "(s0 + 1)*i0"),
        (I + n, "i0 + s0"),
        (K // 8, "i2//8"),
        ((K % 8) * 4, "4*(i2%8)"),
        ((I + J) // n, "(i0 + i1)//s0"),
        (Index.of(Gathered(Load("ids", (I,), i64), 100)), "ids[i0]"),
    ],
)
def test_indices(index, expected):
    assert text.index_text(index) == expected


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (Const(-0.0, f32), "-0.0"),
        (SizeValue(n, f32), "f32(s0)"),
        (IndexValue(I + 1, i64), "i64(i0 + 1)"),
        (Op("convert", (Load("x", (I, J), u8),), f32), "f32(x[i0, i1])"),
        (Op("bitcast", (Const(1.0, f32),), torch.int32), "bitcast_i32(1.0)"),
        (Temp("tmp0", f32), "tmp0"),
        (
            Masked(Const(True, torch.bool), Load("s", (), f32), Const(0.0, f32)),
            "masked(True, s[], 0.0)",
        ),
    ],
)
def test_expressions(expr, expected):
    assert text.expr_text(expr) == expected


def buffer(name, kind, size, dtype=u8, stride=None):
    layout = Layout(size, stride) if stride else Layout.contiguous(size)
    return Buffer(name, BufferKind(kind), dtype, "cpu", layout)


def example():
    buffers = [
        buffer("x1", "input", (1, 8)),
        buffer("x2", "input", (8390, 8)),
        buffer("c0", "constant", (), f32),
        buffer("buf0", "computed", (8390, 8)),
        buffer("buf1", "computed", (8390,), i64),
        buffer("buf2", "extern", (8, 8390), u8, (1, 8)),
    ]
    x1, x2 = Load("x1", (ZERO, J), u8), Load("x2", (I, J), u8)
    maximum = Op("maximum", (x2, Op("neg", (x1,), u8)), u8)
    total = Op("convert", (Load("buf0", (I, R), u8),), i64)
    view = BufferView("buf0", Layout((8, 8390), (1, 8)))
    steps = (
        Pointwise("buf0", (i, j), maximum, frozenset({"maximum", "neg"})),
        Reduction("buf1", (i,), (r,), "sum", total, frozenset({"sum_1"})),
        ExternCall(("buf2", None), "aten.f", (view, (1, n)), (("d", u8),), "no lowering"),
    )
    outputs = (BufferView("buf0", buffers[3].layout), view, n, None)
    named = {b.name: b for b in buffers}
    return LoopProgram("forward", ("x1", n, "x2"), named, steps, outputs)


EXPECTED = """\
LoopProgram(forward: 2 loop nests, 1 extern call)
input x1[1, 8] : u8 cpu
input s0 : int
input x2[8390, 8] : u8 cpu
const c0[] : f32 cpu
buf0[i0, i1] : u8 cpu  i0<8390, i1<8      # maximum, neg  <- x1, x2
  = maximum(x2[i0, i1], neg(x1[0, i1]))
buf1[i0] : i64 cpu  i0<8390               # sum_1  <- buf0
  = sum over r0<8 of i64(buf0[i0, r0])
buf2[8, 8390] stride [1, 8] : u8 cpu
  buf2, _ = extern aten.f(buf0[8, 8390] stride [1, 8], [1, s0], d=u8)  # no lowering
return buf0, buf0[8, 8390] stride [1, 8], s0, None
"""


def test_program():
    assert str(example()) == EXPECTED


def test_lines_know_their_origins():
    lines = text.program_lines(example())
    assert [line for line, origins in lines if "sum_1" in origins] == EXPECTED.splitlines()[7:9]


def test_origins_are_in_reading_order():
    assert text.origins_text(frozenset({"add_10", "add_2", "add"})) == "add, add_2, add_10"
