"""The interpreter: the meaning of every operation, index form and reduction, on real tensors."""

import json
import math
import os
import subprocess
import sys

import pytest
import sympy
import torch

from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.compiler.ir.expr import Const, IndexValue, Load, Masked, Op, SizeValue
from inductor_lab.compiler.ir.index import ZERO, Axis, Gathered, Index
from inductor_lab.compiler.ir.interpret import evaluate, run_nest
from inductor_lab.compiler.ir.ops import OPS, REDUCTIONS, SCANS
from inductor_lab.compiler.ir.ops_torch import OPERATIONS, REDUCERS, SCANNERS
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

f32, f64, i32, i64, u8, b8 = (
    torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool,
)  # fmt: skip
i, j, k, r = Axis("i0", 4), Axis("i1", 6), Axis("i2", 24), Axis("r0", 6)
I, J, K, R = map(Index.of, (i, j, k, r))
nan, inf = math.nan, math.inf


def values(expr, axes, **env):
    """All elements of `expr` over `axes`, contiguous."""
    return evaluate(expr, axes, env).expand([axis.size for axis in axes]).contiguous()


def apply(name, dtype, *operands, result=None):
    tensors = [torch.tensor(operand, dtype=dtype) for operand in operands]
    return OPERATIONS[name](result or dtype, *tensors)


def test_every_operation_has_a_meaning():
    assert OPERATIONS.keys() == OPS.keys()
    assert {*REDUCERS, "bisect"} == REDUCTIONS.keys(), "a binary search has its own interpreter"
    assert SCANNERS.keys() == SCANS.keys()


@pytest.mark.parametrize(
    ("name", "dtype", "operands", "expected"),
    [
        ("add", u8, ([250], [10]), [4]),
        ("neg", u8, ([1, 0],), [255, 0]),
        ("minimum", f32, ([nan, 1.0], [1.0, 2.0]), [nan, 1.0]),
        ("maximum", f32, ([1.0, 1.0], [nan, 2.0]), [nan, 2.0]),
        ("shift_left", i32, ([1, 1, 1], [31, 32, -1]), [-(2**31), 0, 0]),
        ("shift_right", i32, ([-8, -8, 8, -8], [1, 40, -1, -1]), [-4, -1, 0, -1]),
        ("floordiv", i32, ([7, -7, 7, -7], [2, 2, -2, -2]), [3, -4, -4, 3]),
        ("truncdiv", i32, ([7, -7, 7, -7], [2, 2, -2, -2]), [3, -3, -3, 3]),
        ("remainder", i32, ([7, -7, 7, -7], [3, 3, -3, -3]), [1, 2, -2, -1]),
        ("fmod", i32, ([7, -7, 7, -7], [3, 3, -3, -3]), [1, -1, 1, -1]),
        ("remainder", f32, ([5.5, -5.5], [2.0, 2.0]), [1.5, 0.5]),
        ("fmod", f32, ([5.5, -5.5], [2.0, 2.0]), [1.5, -1.5]),
        ("floordiv", f32, ([5.5, -5.5], [2.0, 2.0]), [2.0, -3.0]),
        ("sign", f32, ([-3.0, 0.0, nan],), [-1.0, 0.0, 0.0]),
        ("relu", f32, ([-1.0, 2.0, nan],), [0.0, 2.0, nan]),
        ("round", f32, ([0.5, 1.5, 2.5, -0.5],), [0.0, 2.0, 2.0, -0.0]),
        ("copysign", f32, ([1.0, 2.0], [-0.0, 3.0]), [-1.0, 2.0]),
        ("pow", i64, ([2, 3], [10, 2]), [1024, 9]),
        ("square", i32, ([-3],), [9]),
        ("reciprocal", f32, ([4.0, 0.0],), [0.25, inf]),
        ("rsqrt", f32, ([4.0],), [0.5]),
        ("atan2", f32, ([0.0], [-1.0]), [math.pi]),
        ("hypot", f32, ([3.0], [4.0]), [5.0]),
        ("bitwise_not", u8, ([5],), [250]),
        ("bitwise_xor", u8, ([5], [3]), [6]),
    ],
)
def test_operations(name, dtype, operands, expected):
    expected = torch.tensor(expected, dtype=dtype)
    torch.testing.assert_close(apply(name, dtype, *operands), expected, equal_nan=True)


@pytest.mark.parametrize(
    ("source", "target", "given", "expected"),
    [
        (f32, i32, [2.9, -2.9, 0.0], [2, -2, 0]),
        (f32, b8, [0.0, -0.0, 0.5, nan], [False, False, True, True]),
        (i64, u8, [256, -1, 7], [0, 255, 7]),
        (b8, f32, [True, False], [1.0, 0.0]),
    ],
)
def test_conversions(source, target, given, expected):
    found = apply("convert", source, given, result=target)
    assert found.tolist() == expected
    assert found.dtype is target


def test_bitcast():
    assert apply("bitcast", f32, [1.0, -0.0], result=i32).tolist() == [0x3F800000, -(2**31)]


def test_fma_rounds_once():
    a, b = 1 + 2**-12, 1 - 2**-12
    assert apply("fma", f32, [a], [b], [-1.0]).item() == -(2.0**-24)
    assert apply("fma", f64, [3.0], [5.0], [-1.0]).item() == 14.0


@pytest.mark.parametrize("length", range(1, 10))
def test_binary_search_finds_every_position(length):
    """Also the end, if no element is large enough."""
    boundaries, probes = torch.arange(length) * 2, torch.arange(-1, 2 * length + 1)
    axis, point = Axis("r0", length), Axis("i0", len(probes))
    reached = Op("ge", (Load("x", (Index.of(axis),), i64), Load("p", (Index.of(point),), i64)), b8)
    nest = Reduction("found", (point,), (axis,), "bisect", reached)
    found = run_nest(nest, {"x": boundaries, "p": probes})
    assert found.tolist() == torch.searchsorted(boundaries, probes).tolist()


# ---- random numbers --------------------------------------------------------------------------


def test_philox_known_answers():
    """The published test vectors of Philox4x32-10 for an all-zero counter and key."""
    bits = apply("philox_bits", i64, [0], [0])
    assert bits.item() == 0x6627E8D5


TRITON = """
import torch, triton, triton.language as tl
@triton.jit
def kernel(u, n, seed, n_elements: tl.constexpr):
    at = tl.arange(0, n_elements)
    tl.store(u + at, tl.rand(seed, at))
    tl.store(n + at, tl.randn(seed, at))
u, n = torch.empty(64), torch.empty(64)
kernel[(1,)](u, n, {seed}, 64)
print(torch.stack([u, n]).view(torch.int32).tolist())
"""


def test_philox_equals_triton(tmp_path):
    pytest.importorskip("triton")
    seed = 0x123456789ABCDE
    script = tmp_path / "random_numbers.py"
    script.write_text(TRITON.format(seed=seed))
    environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=environment, check=True
    )
    uniform, normal = torch.tensor(json.loads(run.stdout), dtype=i32).view(f32)
    offsets = torch.arange(64)
    seeds = torch.tensor(seed)
    assert torch.equal(OPERATIONS["philox_uniform"](f32, seeds, offsets), uniform)
    found = OPERATIONS["philox_normal"](f32, seeds, offsets)
    torch.testing.assert_close(found, normal, rtol=1e-6, atol=1e-6)


def test_random_numbers_are_well_distributed():
    offsets = torch.arange(200_000) + (5 << 32)
    uniform = OPERATIONS["philox_uniform"](f32, torch.tensor(7), offsets)
    normal = OPERATIONS["philox_normal"](f32, torch.tensor(7), offsets)
    assert 0 <= uniform.min() and uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.005
    assert abs(normal.mean()) < 0.01
    assert abs(normal.std() - 1) < 0.01


# ---- loads -----------------------------------------------------------------------------------

x = torch.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize(
    ("index", "axes", "expected"),
    [
        ((I, J), (i, j), x),
        ((I, J), (j, i), x.t()),
        ((I, J * -1 + 5), (i, j), x.flip(1)),
        ((ZERO, J), (i, j), x[:1].expand(4, 6)),
        ((I, Index.constant_of(2)), (i, j), x[:, 2:3].expand(4, 6)),
        ((I, I), (i,), x.diagonal()),
        ((I, I + 2), (i,), x.diagonal(2)),
        ((K // 6, K % 6), (k,), x.reshape(24)),
        ((I, Index.of(Axis("i1", 3)) * 2 + 1), (i, Axis("i1", 3)), x[:, 1::2]),
    ],
)
@pytest.mark.parametrize("strides", [(6, 1), (1, 4)])
def test_loads(index, axes, expected, strides):
    stored = torch.empty_strided((4, 6), strides).copy_(x)
    assert torch.equal(values(Load("x", index, f32), axes, x=stored), expected)


def test_a_contiguous_load_is_a_view():
    found = evaluate(Load("x", (I, J), f32), (i, j), {"x": x})
    assert found.data_ptr() == x.data_ptr()
    broadcast = evaluate(Load("x", (ZERO, J), f32), (i, j), {"x": x})
    assert broadcast.shape == (1, 6)


def test_gather():
    ids = torch.tensor([3, 0, 0, 2])
    row = Index.of(Gathered(Load("ids", (I,), i64), 4))
    assert torch.equal(values(Load("x", (row, J), f32), (i, j), x=x, ids=ids), x[ids])


def test_out_of_range_raises():
    row = Index.of(Gathered(Load("ids", (I,), i64), 4))
    with pytest.raises(IndexError, match="out of range in a dimension of size 4"):
        values(Load("x", (row, J), f32), (i, j), x=x, ids=torch.tensor([0, 1, 2, 4]))
    with pytest.raises(IndexError, match="out of range"):
        values(Load("x", (I, J - 1), f32), (i, j), x=x)


def test_masked_load_may_leave_the_buffer():
    """A pad by one on the left: `0, x[0], x[1], ...`."""
    inside = Op("ge", (IndexValue(J, i64), Const(1, i64)), b8)
    padded = Masked(inside, Load("x", (I, J - 1), f32), Const(-1.0, f32))
    expected = torch.cat([torch.full((4, 1), -1.0), x[:, :5]], 1)
    assert torch.equal(values(padded, (i, j), x=x), expected)


def test_masked_load_of_an_empty_buffer():
    never = Const(False, b8)
    masked = Masked(never, Load("x", (I,), f32), Const(2.0, f32))
    assert values(masked, (i,), x=torch.empty(0)).tolist() == [2.0] * 4


def test_masked_division_by_zero():
    divisor = Load("d", (I,), i64)
    safe = Op("ne", (divisor, Const(0, i64)), b8)
    body = Masked(safe, Op("floordiv", (Const(6, i64), divisor), i64), Const(-1, i64))
    assert values(body, (i,), d=torch.tensor([1, 0, 4, -4])).tolist() == [6, -1, 1, -2]


def test_numbers():
    assert values(IndexValue(I * 2 + 1, f32), (i,)).tolist() == [1.0, 3.0, 5.0, 7.0]
    assert values(SizeValue(12, f64), (i,)).dtype is f64
    assert values(Const(2**31, i64), (i,)).tolist() == [2**31] * 4
    assert values(Const(inf, torch.bfloat16), ()).item() == inf


def test_shared_subtrees_are_computed_once():
    deep = Load("x", (I, J), f32)
    for _ in range(64):
        deep = Op("mul", (deep, deep), f32)
    assert torch.equal(values(deep, (i, j), x=torch.ones(4, 6)), torch.ones(4, 6))


# ---- reductions ------------------------------------------------------------------------------


def reduce(kind, tensor, body=None):
    dtype = tensor.dtype
    rows, columns = (Axis(n, s) for n, s in zip(("i0", "r0"), tensor.shape, strict=True))
    body = body or Load("x", (Index.of(rows), Index.of(columns)), dtype)
    return run_nest(Reduction("out", (rows,), (columns,), kind, body), {"x": tensor})


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("sum", x.sum(1)),
        ("prod", x.prod(1)),
        ("max", x.amax(1)),
        ("min", x.amin(1)),
        ("argmax", x.argmax(1)),
        ("argmin", x.argmin(1)),
    ],
)
def test_reductions(kind, expected):
    found = reduce(kind, x)
    assert torch.equal(found, expected)
    assert found.dtype is expected.dtype


def test_any_and_all():
    flags = torch.tensor([[True, False], [False, False], [True, True]])
    assert reduce("any", flags).tolist() == [True, False, True]
    assert reduce("all", flags).tolist() == [False, False, True]
    assert reduce("argmax", flags).tolist() == [0, 0, 0]


def test_ties_and_nan():
    rows = torch.tensor([[1.0, 3.0, 3.0], [nan, 5.0, nan]])
    assert reduce("argmax", rows).tolist() == [1, 0]
    assert reduce("argmin", rows).tolist() == [0, 0]
    assert reduce("max", rows).isnan().tolist() == [False, True]


@pytest.mark.parametrize(
    ("kind", "dtype", "neutral"),
    [
        ("sum", f32, 0.0), ("prod", f32, 1.0), ("max", f32, -inf), ("min", f32, inf),
        ("max", i32, -(2**31)), ("min", u8, 255), ("any", b8, False), ("all", b8, True),
        ("argmax", f32, 0),
    ],
)  # fmt: skip
def test_empty_reductions(kind, dtype, neutral):
    assert reduce(kind, torch.empty(2, 0, dtype=dtype)).tolist() == [neutral] * 2


def test_body_that_does_not_depend_on_the_reduced_axis():
    assert reduce("sum", x, Load("x", (I, ZERO), f32)).tolist() == (x[:, 0] * 6).tolist()
    nest = Reduction("out", (), (i, r), "sum", Load("x", (I, R), f32))
    assert run_nest(nest, {"x": x}).item() == x.sum().item()


def test_sum_accumulates_in_its_dtype():
    """Eager sums uint8 into int64; a body of uint8 wraps."""
    assert reduce("sum", torch.full((1, 300), 1, dtype=u8)).tolist() == [44]


# ---- programs --------------------------------------------------------------------------------


def buffer(name, kind, size, dtype=f32, stride=None, offset=0):
    stride = stride or Layout.contiguous(size).stride
    return Buffer(name, BufferKind(kind), dtype, "cpu", Layout(size, stride, offset))


def test_symbols_strides_and_extern_calls():
    """`y = (x + s0).t()` stored in column-major order, then a real torch op on a view of it."""
    n = sympy.Symbol("s0", integer=True, positive=True)
    rows = Axis("i0", n)
    body = Op("add", (Load("x", (Index.of(rows), J), f32), SizeValue(n, f32)), f32)
    buffers = [
        buffer("x", "input", (n, 6)),
        buffer("buf0", "computed", (n, 6), stride=(1, n)),
        buffer("buf1", "extern", (6, 6)),
        buffer("buf2", "extern", (6,), i64),
    ]
    transposed = BufferView("buf0", Layout((6, n), (n, 1)))
    steps = (
        Pointwise("buf0", (rows, j), body),
        ExternCall(
            ("buf1",), "aten.mm.default", (transposed, BufferView("buf0", buffers[1].layout))
        ),
        ExternCall(
            (None, "buf2"), "aten.max.dim", (BufferView("buf1", buffers[2].layout), 0),
            (("keepdim", False),),
        ),
    )  # fmt: skip
    outputs = (
        BufferView("buf0", buffers[1].layout),
        BufferView("buf1", buffers[2].layout),
        BufferView("buf2", buffers[3].layout),
        n * 2, None, 3,
    )  # fmt: skip
    program = LoopProgram("p", ("x",), {b.name: b for b in buffers}, steps, outputs)
    y, square, position, twice, nothing, three = program.run(x)
    assert torch.equal(y, x + 4)
    assert y.stride() == (1, 4)
    torch.testing.assert_close(square, (x + 4).t() @ (x + 4))
    assert torch.equal(position, square.max(0).indices)
    assert (twice, nothing, three) == (8, None, 3)
    assert program.run(x[:2])[3] == 4


def test_inputs_with_other_strides_and_offsets():
    b = buffer("x", "input", (4, 3))
    view = BufferView("x", Layout((3,), (1,), 3))
    program = LoopProgram("p", ("x",), {"x": b}, (), (view,))
    assert torch.equal(program.run(x[:, :3].contiguous())[0], x[1, :3])
    assert torch.equal(program.run(x[:, 2:5])[0], x[1, 2:5])
    shifted = torch.arange(20.0)[5:17].reshape(4, 3)
    assert torch.equal(program.run(shifted)[0], shifted[1])


def test_sum_stored_in_half_precision():
    out = buffer("buf0", "computed", (4,), torch.bfloat16)
    nest = Reduction("buf0", (i,), (r,), "sum", Load("x", (I, R), f32))
    program = LoopProgram(
        "p", ("x",), {"x": buffer("x", "input", (4, 6)), "buf0": out}, (nest,),
        (BufferView("buf0", out.layout),),
    )  # fmt: skip
    assert torch.equal(program.run(x)[0], x.sum(1).bfloat16())


def test_views_in_arguments_and_wrong_counts():
    cat = ExternCall(
        ("buf0",), "aten.cat.default",
        ((BufferView("x", Layout((4, 6), (6, 1))), BufferView("x", Layout((4, 2), (6, 1), 4))), 1),
    )  # fmt: skip
    out = buffer("buf0", "extern", (4, 8))
    buffers = {"x": buffer("x", "input", (4, 6)), "buf0": out}
    program = LoopProgram("p", ("x",), buffers, (cat,), (BufferView("buf0", out.layout),))
    assert torch.equal(program.run(x)[0], torch.cat([x, x[:, 4:]], 1))
    with pytest.raises(BadArguments, match=r"expected .* got 2"):
        program.run(x, x)


def test_no_gradient_is_recorded():
    b = buffer("x", "input", (4, 6))
    program = LoopProgram("p", ("x",), {"x": b}, (), (BufferView("x", b.layout),))
    assert not program.run(x.clone().requires_grad_())[0].requires_grad
