"""Every rule of the verifier accepts a legal program and refuses one that breaks only this rule."""

from dataclasses import replace

import pytest
import sympy
import torch

from inductor_lab.compiler.ir.expr import Const, IndexValue, Load, Masked, Op, Temp
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
    Scatter,
    Write,
)
from inductor_lab.compiler.ir.verify import (
    EXPR_RULES,
    PROGRAM_RULES,
    STEP_RULES,
    InvalidProgram,
    verify,
    violations,
)

f32, f16, i64, b8 = torch.float32, torch.float16, torch.int64, torch.bool
i, j, r = Axis("i0", 4), Axis("i1", 8), Axis("r0", 8)
I, J, R = Index.of(i), Index.of(j), Index.of(r)
n = sympy.Symbol("s0", integer=True, positive=True)
x = Load("x", (I, J), f32)


def buffer(name, kind="computed", size=(4, 8), dtype=f32):
    return Buffer(name, BufferKind(kind), dtype, "cpu", Layout.contiguous(size))


def program(*steps, buffers=(), inputs=("x",), outputs=(), constants=None):
    """`x` is a float input of 4 x 8, `y` an int64 input of 4; other buffers are given."""
    given = [buffer("x", "input"), *buffers]
    return LoopProgram("p", inputs, {b.name: b for b in given}, steps, outputs, constants or {})


def pointwise(body, dtype=None, size=(4, 8)):
    """A program of one nest over `size` with this body."""
    axes = (i, j)[: len(size)]
    out = buffer("out", size=size, dtype=dtype or body.dtype)
    return program(Pointwise("out", axes, body), buffers=(out,))


def written(write):
    """A program that gives an input a new value."""
    made = pointwise(x)
    view = BufferView("out", Layout.contiguous((4, 8)))
    return replace(made, outputs=(view,), writes=(write,))


def reduction(kind="sum", body=None, dtype=f32):
    body = body or Load("x", (I, R), f32)
    out = buffer("out", size=(4,), dtype=dtype)
    return program(Reduction("out", (i,), (r,), kind, body), buffers=(out,))


def scatter(kind="add", body=x, outputs=()):
    """`out` is x with rows added to it."""
    row = Index.of(Gathered(Load("y", (I,), i64), 4))
    start = buffer("start", dtype=body.dtype)
    made = buffer("out", dtype=body.dtype)
    return program(
        Pointwise("start", (i, j), body),
        Scatter("out", "start", (i, j), (row, J), kind, body),
        buffers=(buffer("y", "input", (4,), i64), start, made),
        inputs=("x", "y"),
        outputs=tuple(BufferView(name, made.layout) for name in outputs),
    )


def extern(kind="extern"):
    view = BufferView("x", Layout.contiguous((4, 8)))
    call = ExternCall(("out",), "aten.clone.default", (view,))
    return program(call, buffers=(buffer("out", kind),))


def op(name, *args, dtype=None):
    return Op(name, args, dtype or args[0].dtype)


one = Const(1.0, f32)
nest = Pointwise("out", (i, j), x)
out = buffer("out")
half = Op("convert", (x,), f16)
positive = op("gt", x, Const(0.0, f32), dtype=b8)
shifted = Load("x", (I, J + 1), f32)
inside = op("lt", IndexValue(J, i64), Const(7, i64), dtype=b8)
constant = buffer("c", "constant", (2,))
symbolic = buffer("x", "input", (n, 8))

CASES = {
    "inputs_exist": (
        pointwise(x),
        program(inputs=("x", "y")),
        "the input y is not an INPUT buffer",
    ),
    "made_once": (
        pointwise(x),
        program(nest, nest, buffers=(out,)),
        "the buffer out appears twice",
    ),
    "all_made": (pointwise(x), program(buffers=(out,)), "no step computes out"),
    "named_by_key": (
        pointwise(x),
        LoopProgram("p", (), {"z": buffer("x", "input")}, (), ()),
        "the buffer under z is named x",
    ),
    "constants_present": (
        program(buffers=(constant,), constants={"c": torch.zeros(2)}),
        program(buffers=(constant,), constants={"c": torch.zeros(3)}),
        "the constant c is torch.float32[3]",
    ),
    "outputs_exist": (
        program(outputs=(BufferView("x", Layout.contiguous((4, 8))), None, 3)),
        program(outputs=(BufferView("z", Layout.contiguous((4, 8))),)),
        "the output z is not a buffer",
    ),
    "symbols_bound": (
        LoopProgram("p", ("x",), {"x": symbolic}, (), ()),
        LoopProgram("p", ("x",), {"x": buffer("x", "input", (2 * n, 8))}, (), ()),
        "no input defines s0",
    ),
    "reads_are_made": (
        pointwise(x),
        pointwise(Load("late", (I, J), f32)),
        "reads late, which no earlier step computes",
    ),
    "writes_its_kind": (extern(), extern("computed"), "makes out, which is COMPUTED"),
    "visits_its_buffer": (
        pointwise(x),
        program(Pointwise("out", (i,), one), buffers=(out,)),
        "loops over [4], but the buffer is [4, 8]",
    ),
    "axes_distinct": (
        reduction(),
        program(
            Reduction("out", (i,), (Axis("i0", 8),), "sum", one),
            buffers=(buffer("out", size=(4,)),),
        ),
        "the axis i0 appears twice",
    ),
    "reduction_known": (reduction("max"), reduction("median"), "there is no reduction median"),
    "scatter_known": (scatter("maximum"), scatter("median"), "there is no scatter median"),
    "base_continued": (
        scatter(outputs=["out"]),
        scatter(outputs=["out", "start"]),
        "overwrites start, whose old value is needed later",
    ),
    "stores_its_dtype": (
        reduction("sum", dtype=f16),
        pointwise(x, dtype=f16),
        "computes torch.float32, but the buffer is torch.float16",
    ),
    "load_fits_buffer": (
        pointwise(x),
        pointwise(Load("x", (I,), f32)),
        "x[i0] has 1 indices, the buffer has 2 dimensions",
    ),
    "axes_are_own": (
        pointwise(x),
        pointwise(Load("x", (I, R), f32)),
        "uses the axis r0<8, which is not a loop of this nest",
    ),
    "in_bounds": (
        pointwise(Masked(inside, shifted, one)),
        pointwise(shifted),
        "the index i1 + 1 of x leaves 0..8",
    ),
    "writes_go_to_inputs": (
        written(Write("x", "copy_")),
        written(Write("out", "copy_")),
        "out is written, but it is not an input or is written twice",
    ),
    "op_known": (
        pointwise(op("add", x, one)),
        pointwise(op("add", x)),
        "add takes 2 operands, not 1",
    ),
    "operands_agree": (
        pointwise(op("where", positive, x, one, dtype=f32)),
        pointwise(op("add", x, Const(1, i64))),
        "the operands of add are torch.float32, torch.int64",
    ),
    "result_follows": (
        pointwise(positive),
        pointwise(op("gt", x, one, dtype=f32)),
        "gt gives torch.bool, not torch.float32",
    ),
    "no_half_arithmetic": (
        pointwise(half),
        pointwise(op("neg", half)),
        "neg computes in torch.float16",
    ),
    "mask_is_bool": (
        pointwise(Masked(positive, x, one)),
        pointwise(Masked(x, x, one)),
        "the mask x[i0, i1] is torch.float32",
    ),
    "const_fits": (
        pointwise(Const(255, torch.uint8)),
        pointwise(Const(256, torch.uint8)),
        "the constant 256 does not fit torch.uint8",
    ),
    "no_temps": (pointwise(x), pointwise(Temp("tmp0", f32)), "uses the temporary tmp0"),
    "position_is_number": (
        pointwise(IndexValue(J, i64)),
        pointwise(IndexValue(J, b8)),
        "the position i1 is used as bool",
    ),
}


def test_every_rule_has_an_example():
    assert CASES.keys() == {*PROGRAM_RULES, *STEP_RULES, *EXPR_RULES}


@pytest.mark.parametrize("rule", CASES)
def test_accepts(rule):
    verify(CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_refuses(rule):
    _, illegal, reason = CASES[rule]
    assert (rule, reason) in [(v.rule, v.reason) for v in violations(illegal)]


def test_all_violations_are_listed():
    with pytest.raises(InvalidProgram) as caught:
        verify(pointwise(op("frobnicate", Load("late", (ZERO, J), f32))))
    assert {v.rule for v in caught.value.violations} == {"reads_are_made", "op_known"}
    assert "out: there is no operation frobnicate  [op_known]" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (op("sin", Const(1, i64)), "sin is not defined on torch.int64"),
        (op("shift_left", one, one), "shift_left is not defined on torch.float32"),
        (op("bitwise_and", one, one), "bitwise_and is not defined on torch.float32"),
        (op("logical_not", one, dtype=b8), "logical_not is not defined on torch.float32"),
        (op("philox_uniform", one, one), "philox_uniform is not defined on torch.float32"),
        (op("where", one, x, x, dtype=f32), "the condition of where is torch.float32"),
        (
            op("bitcast", x, dtype=i64),
            "bitcast from torch.float32 to torch.int64 changes the width",
        ),
        (
            op("philox_uniform", Const(1, i64), Const(1, i64)),
            "philox_uniform gives torch.float32, not torch.int64",
        ),
        (
            Masked(positive, x, Const(0, i64)),
            "masked gives torch.float32 where the mask is true and torch.int64 elsewhere",
        ),
        (Load("x", (I * -1 + 3, J - 1), f32), "the index i1 - 1 of x leaves 0..8"),
        (Const(0.5, i64), "the constant 0.5 does not fit torch.int64"),
    ],
)
def test_other_refusals(body, reason):
    assert reason in [v.reason for v in violations(pointwise(body))]


def test_half_precision_is_storage_only():
    assert not list(violations(scatter("store", half)))
    assert [v.rule for v in violations(scatter("add", half))] == ["scatter_known"]


def test_a_scatter_runs_and_prints():
    made = scatter("add", outputs=["out"])
    given, rows = torch.randn(4, 8), torch.tensor([2, 0, 2, 2])
    expected = given.index_add(0, rows, given)
    torch.testing.assert_close(made.run(given, rows)[0], expected)
    text = "out[y[i0], i1] : f32 cpu  i0<4, i1<8\n  = start with add of x[i0, i1]"
    assert text in str(made)
    with pytest.raises(IndexError, match="out of range"):
        made.run(given, rows + 2)
