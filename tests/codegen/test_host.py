"""The text of host programs, and programs with only library calls, which run without kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import sympy
import torch

import inductor_lab as lab
from inductor_lab.compiler.codegen.host.host_program import host_program, returns_one
from inductor_lab.compiler.codegen.kernel import Code, Kernel, Parameter
from inductor_lab.compiler.ir.expr import Load, Op
from inductor_lab.compiler.ir.index import Axis, Index, Size
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    BufferView,
    ExternCall,
    Input,
    Layout,
    LoopProgram,
    Output,
    Pointwise,
)
from inductor_lab.compiler.schedule.schedule import Cost, Decisions, Group, MemoryPlan, Schedule

F32 = torch.float32
IN, COMPUTED, EXTERN = BufferKind.INPUT, BufferKind.COMPUTED, BufferKind.EXTERN
NOTHING_FREED = MemoryPlan((), {}, frozenset(), {}, 0, 0)


def buffer(
    name: str,
    kind: BufferKind,
    size: tuple[Size, ...],
    stride: tuple[Size, ...] | None = None,
    device: str = "cpu",
) -> Buffer:
    layout = Layout.contiguous(size) if stride is None else Layout(size, stride)
    return Buffer(name, kind, F32, device, layout)


def whole(owner: Buffer) -> BufferView:
    return BufferView(owner.name, owner.layout)


def neg(source: str, result: Buffer) -> Group:
    """A group of one nest, `result = -source`, with equal sizes."""
    axes = tuple(Axis(f"i{d}", size) for d, size in enumerate(result.layout.size))
    load = Load(source, tuple(Index.of(axis) for axis in axes), F32)
    nest = Pointwise(result.name, axes, Op("neg", (load,), F32), frozenset({"neg"}))
    stored = frozenset({result.name})
    return Group("fused_neg", axes, (nest,), stored, {}, Cost(), nest.origins)


def kernel(group: Group, name: str, language: Any = "cpp", symbols: tuple[Any, ...] = ()) -> Kernel:
    (nest,) = group.nests
    (load,) = nest.body.loads()
    parameters = (
        Parameter("in0", "in", load.buffer, F32),
        Parameter("out0", "out", nest.buffer, F32),
        *(Parameter(f"ks{k}", "symbol", symbol=s) for k, s in enumerate(symbols)),
    )
    return Kernel(name, language, "cpu", Code(()), parameters, group, {})


def schedule(
    inputs: tuple[Input, ...],
    buffers: tuple[Buffer, ...],
    steps: tuple[Group | ExternCall, ...],
    outputs: tuple[Output, ...],
    memory: MemoryPlan = NOTHING_FREED,
) -> Schedule:
    program = LoopProgram("forward", inputs, {b.name: b for b in buffers}, (), outputs)
    return Schedule(program, steps, Decisions(()), memory, Cost(), Cost())


def plan(freed: Mapping[int, tuple[str, ...]], reuse: Mapping[str, str] = {}) -> MemoryPlan:
    return MemoryPlan((), reuse, frozenset(), freed, 0, 0)


def body(made: Schedule, *kernels: Kernel) -> str:
    """The text from `def call` on."""
    text = str(host_program(made, kernels))
    return text[text.index("def call") :]


def run(made: Schedule, *inputs: Any) -> tuple[Any, ...]:
    namespace: dict[str, Any] = {}
    exec(str(host_program(made, ())), namespace)
    return namespace["call"](list(inputs))


def test_allocate_call_return() -> None:
    x, y = buffer("x", IN, (4, 5)), buffer("buf0", COMPUTED, (4, 5))
    group = neg("x", y)
    made = schedule(("x",), (x, y), (group,), (whole(y),))
    assert body(made, kernel(group, "cpp_fused_neg_0")) == (
        "def call(args):\n"
        "    x, = args\n"
        "    args.clear()\n"
        "    buf0 = empty_strided_cpu((4, 5), (5, 1), torch.float32)\n"
        "    cpp_fused_neg_0(x.data_ptr(), buf0.data_ptr())\n"
        "    return (buf0,)\n"
    )


def test_lines_have_origins() -> None:
    x, y = buffer("x", IN, (4, 5)), buffer("buf0", COMPUTED, (4, 5))
    group = neg("x", y)
    program = host_program(
        schedule(("x",), (x, y), (group,), (whole(y),)), [kernel(group, "cpp_fused_neg_0")]
    )
    (number,) = program.code.lines_of("neg")
    line = program.code.lines[number - 1]
    assert line.text.strip().startswith("cpp_fused_neg_0(") and line.statement


def test_symbols_are_arguments_or_sizes_of_inputs() -> None:
    s0, s1 = sympy.symbols("s0 s1", integer=True, positive=True)
    x, y = buffer("x", IN, (s0, s1)), buffer("buf0", COMPUTED, (s0, s1))
    group = neg("x", y)
    made = schedule((s0, "x"), (x, y), (group,), (whole(y), s0 * s1))
    assert body(made, kernel(group, "k", symbols=(s0, s1))) == (
        "def call(args):\n"
        "    s0, x = args\n"
        "    args.clear()\n"
        "    s1 = x.size(1)\n"
        "    buf0 = POOL.empty_rounded((s0, s1), (s1, 1), torch.float32, 4*s0*s1)\n"
        "    k(x.data_ptr(), buf0.data_ptr(), s0, s1)\n"
        "    return (buf0, s0*s1)\n"
    )


def test_memory_is_freed_and_reused() -> None:
    """buf0 is dead after the second step, and buf2, computed by the third step, reuses its memory.
    """
    x = buffer("x", IN, (6,))
    b0, b1 = buffer("buf0", COMPUTED, (6,)), buffer("buf1", COMPUTED, (6,))
    b2 = buffer("buf2", COMPUTED, (2, 3))
    groups = (neg("x", b0), neg("buf0", b1), neg("buf1", b2))
    memory = plan({0: ("x",), 2: ("buf1",)}, {"buf2": "buf0"})
    made = schedule(("x",), (x, b0, b1, b2), groups, (whole(b2),), memory)
    kernels = [kernel(group, f"k{n}") for n, group in enumerate(groups)]
    lines = [line.strip() for line in body(made, *kernels).splitlines()]
    assert lines[3:] == [
        "buf0 = empty_strided_cpu((6,), (1,), torch.float32)",
        "k0(x.data_ptr(), buf0.data_ptr())",
        "del x",
        "buf1 = empty_strided_cpu((6,), (1,), torch.float32)",
        "k1(buf0.data_ptr(), buf1.data_ptr())",
        "buf2 = reinterpret(buf0, (2, 3), (3, 1))  # reuse",
        "k2(buf1.data_ptr(), buf2.data_ptr())",
        "del buf1, buf0",
        "return (buf2,)",
    ]


def test_triton_kernels_take_tensors_on_the_right_device() -> None:
    x = buffer("x", IN, (4,), device="cuda:1")
    y = buffer("buf0", COMPUTED, (4,), device="cuda:1")
    group = neg("x", y)
    made = schedule(("x",), (x, y), (group,), (whole(y),))
    assert body(made, kernel(group, "k", "triton")) == (
        "def call(args):\n"
        "    x, = args\n"
        "    args.clear()\n"
        "    with torch.cuda.device(1):\n"
        "        buf0 = empty_strided_cuda((4,), (1,), torch.float32)\n"
        "        k(x, buf0)\n"
        "        return (buf0,)\n"
    )


def test_long_calls_are_wrapped() -> None:
    x, y = buffer("x", IN, (4,)), buffer("buf0", COMPUTED, (4,))
    group = neg("x", y)
    symbols = tuple(sympy.symbols("s0:40"))
    made = schedule((*symbols, "x"), (x, y), (group,), (whole(y),))
    text = body(made, kernel(group, "k", symbols=symbols))
    assert max(len(line) for line in text.splitlines()) <= 100
    compile(text, "host", "exec")


def test_an_output_may_be_a_view_or_none() -> None:
    x = buffer("x", IN, (3, 4))
    column = BufferView("x", Layout((3,), (4,), 2))
    value = torch.rand(3, 4)
    results = run(schedule(("x",), (x,), (), (column, None, 7, whole(x))), value)
    assert torch.equal(results[0], value[:, 2]) and results[1:3] == (None, 7)
    assert results[3] is value


def test_a_view_of_an_input_starts_at_its_first_element() -> None:
    x = buffer("x", IN, (2, 3))
    base = torch.arange(20.0)
    value = base[4:10].view(2, 3)
    (row,) = run(schedule(("x",), (x,), (), (BufferView("x", Layout((3,), (1,), 3)),)), value)
    assert torch.equal(row, value[1])


def test_library_calls_get_views_and_plain_values() -> None:
    x, y = buffer("x", IN, (3, 4)), buffer("buf0", EXTERN, (4, 4))
    transposed = BufferView("x", Layout((4, 3), (1, 4)))
    call = ExternCall(("buf0",), "aten.mm.default", (transposed, whole(x)))
    value = torch.rand(3, 4)
    product = schedule(("x",), (x, y), (call,), (whole(y),))
    assert "torch_mm(" in str(host_program(product, []))  # reads its arguments quicker
    (result,) = run(product, value)
    torch.testing.assert_close(result, value.T @ value)

    y = buffer("buf0", EXTERN, (6, 4))
    call = ExternCall(("buf0",), "aten.cat.default", ((whole(x), whole(x)), 0))
    (result,) = run(schedule(("x",), (x, y), (call,), (whole(y),)), value)
    assert torch.equal(result, torch.cat([value, value]))

    y = buffer("buf0", EXTERN, (2,))
    options = (("dtype", torch.float32), ("device", torch.device("cpu")))
    call = ExternCall(("buf0",), "aten.full.default", ((2,), float("inf")), options)
    (result,) = run(schedule((), (y,), (call,), (whole(y),)))
    assert torch.equal(result, torch.full((2,), float("inf")))


def test_a_call_with_several_results_of_which_one_is_used() -> None:
    x = buffer("x", IN, (5,))
    values, places = buffer("buf0", EXTERN, (5,)), buffer("buf1", EXTERN, (5,))
    places = replace(places, dtype=torch.int64)
    call = ExternCall((None, "buf1"), "aten.sort.default", (whole(x),))
    made = schedule(("x",), (x, values, places), (call,), (whole(places),))
    assert "_, buf1 = aten.sort.default(x)" in body(made)
    (result,) = run(made, value := torch.rand(5))
    assert torch.equal(result, value.argsort())


def test_results_get_the_planned_layout() -> None:
    x, y = buffer("x", IN, (3, 4)), buffer("buf0", EXTERN, (3, 4), (1, 3))
    call = ExternCall(("buf0",), "aten.neg.default", (whole(x),))
    (result,) = run(schedule(("x",), (x, y), (call,), (whole(y),)), value := torch.rand(3, 4))
    assert result.stride() == (1, 3) and torch.equal(result, -value)


def test_sizes_that_are_defined_by_a_result() -> None:
    u0 = sympy.Symbol("u0", integer=True, nonnegative=True)
    x, y = buffer("x", IN, (6,)), buffer("buf0", EXTERN, (u0, 1))
    y = replace(y, dtype=torch.int64)
    call = ExternCall(("buf0",), "aten.nonzero.default", (whole(x),))
    made = schedule(("x",), (x, y), (call,), (whole(y), u0))
    result, count = run(made, torch.tensor([0.0, 1, 0, 2, 3, 0]))
    assert count == 3 and result.tolist() == [[1], [3], [4]]


@pytest.mark.parametrize(
    ("op", "one"),
    [("aten.mm.default", True), ("aten.sort.default", False), ("aten.split.Tensor", False)],
)
def test_whether_an_operator_returns_one_tensor(op: str, one: bool) -> None:
    assert returns_one(op) is one


def test_an_unused_library_result_may_be_none() -> None:
    """For example, cuDNN attention returns None for the statistics if no gradient is needed."""
    library = torch.library.Library("lab_host_tests", "FRAGMENT")
    library.define("with_statistics(Tensor x) -> (Tensor, Tensor)")
    library.impl("with_statistics", lambda x: (x + 1, None), "CPU")
    library.impl("with_statistics", lambda x: (x + 1, x.sum(0)), "Meta")
    compiled = lab.compile(lambda x: torch.ops.lab_host_tests.with_statistics(x)[0] * 2)
    x = torch.randn(3, 4)
    torch.testing.assert_close(compiled(x), (x + 1) * 2)
