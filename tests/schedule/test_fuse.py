"""Which nests become one kernel: hand-written loop programs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.options import FusionOptions
from inductor_lab.compiler.ir.expr import Const, Expr, IndexValue, Load, Masked, Op
from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    BufferView,
    ExternCall,
    Layout,
    LoopProgram,
    Pointwise,
    Reduction,
    Step,
)
from inductor_lab.compiler.schedule.fusion.cluster import Cluster
from inductor_lab.compiler.schedule.fusion.fuse import live_steps
from inductor_lab.compiler.schedule.fusion.walk import Walk
from inductor_lab.compiler.schedule.passes import schedule_program
from inductor_lab.compiler.schedule.schedule import Schedule
from inductor_lab.compiler.schedule.verify import verify_schedule

F32 = torch.float32
I0, I1, R0 = Axis("i0", 64), Axis("i1", 128), Axis("r0", 128)


def load(buffer: str, *axes: Axis | Index) -> Load:
    index = tuple(axis if isinstance(axis, Index) else Index.of(axis) for axis in axes)
    return Load(buffer, index, F32)


def op(name: str, *args: Expr) -> Op:
    return Op(name, args, F32)


def pointwise(buffer: str, body: Expr, *axes: Axis) -> Pointwise:
    return Pointwise(buffer, axes or (I0, I1), body, frozenset({f"{buffer}_op"}))


def row_sum(buffer: str, body: Expr) -> Reduction:
    return Reduction(buffer, (I0,), (R0,), "sum", body)


def program(
    *steps: Step, outputs: tuple[str, ...], inputs: dict[str, tuple[int, ...]] | None = None
) -> LoopProgram:
    """A float32 CPU program; by default its input is `x`, 64 x 128."""
    buffers: dict[str, Buffer] = {}

    def add(name: str, kind: BufferKind, *size: int) -> None:
        buffers[name] = Buffer(name, kind, F32, "cpu", Layout.contiguous(size))

    inputs = inputs or {"x": (64, 128)}
    for name, size in inputs.items():
        add(name, BufferKind.INPUT, *size)
    for step in steps:
        if isinstance(step, ExternCall):
            add(step.outputs[0], BufferKind.EXTERN, 64, 64)
        else:
            add(step.buffer, BufferKind.COMPUTED, *(axis.size for axis in step.axes))
    views = tuple(BufferView(name, buffers[name].layout) for name in outputs)
    return LoopProgram("test", tuple(inputs), buffers, steps, views)


def scheduled(loops: LoopProgram, **fusion: object) -> Schedule:
    """The schedule, after verifying it and comparing its results with the program."""
    schedule = schedule_program(loops, FusionOptions(**fusion))
    verify_schedule(schedule)
    torch.manual_seed(0)
    sizes = [loops.buffers[name].layout.size for name in loops.inputs]
    inputs = [torch.rand(size) + 0.5 for size in sizes]
    for result, expected in zip(schedule.run(*inputs), loops.run(*inputs), strict=True):
        torch.testing.assert_close(result, expected)
    return schedule


def members(schedule: Schedule) -> list[tuple[set[str], set[str]]]:
    """For each group: the buffers that it computes in full, and those that it inlines."""
    return [({nest.buffer for nest in g.nests}, set(g.inlined)) for g in schedule.groups]


def test_a_chain_is_one_kernel():
    loops = program(
        pointwise("buf0", op("add", load("x", I0, I1), Const(1.0, F32))),
        pointwise("buf1", op("mul", load("buf0", I0, I1), Const(2.0, F32))),
        pointwise("buf2", op("sin", load("buf1", I0, I1))),
        outputs=("buf2",),
    )
    schedule = scheduled(loops)
    assert members(schedule) == [({"buf2"}, {"buf0", "buf1"})]
    assert schedule.groups[0].axes == (I0, I1)
    kernels = "kernels 3 unfused -> 1 fused"
    assert repr(schedule) == f"Schedule({kernels}, memory passes 6 -> 2, 66.7% saved)"


def test_a_producer_is_evaluated_at_every_index_of_its_consumer():
    """Transposed, shifted, and under a mask."""
    j0, j1 = Axis("i0", 128), Axis("i1", 64)
    shifted = Index.of(j0) - 1
    inside = Op("ge", (IndexValue(shifted, torch.int64), Const(0, torch.int64)), torch.bool)
    loops = program(
        pointwise("buf0", op("exp", load("x", I0, I1))),
        pointwise("buf1", Masked(inside, load("buf0", j1, shifted), Const(0.0, F32)), j0, j1),
        outputs=("buf1",),
    )
    assert members(scheduled(loops)) == [({"buf1"}, {"buf0"})]


def test_rows_that_are_reduced_and_then_divided_are_one_kernel():
    loops = program(
        pointwise("buf0", op("exp", load("x", I0, I1))),
        row_sum("buf1", load("buf0", I0, R0)),
        pointwise("buf2", op("truediv", load("buf0", I0, I1), load("buf1", I0))),
        outputs=("buf2",),
    )
    schedule = scheduled(loops)
    assert members(schedule) == [({"buf1", "buf2"}, {"buf0"})]
    assert schedule.groups[0].axes == (I0,)
    assert schedule.groups[0].stored == {"buf2"}


def test_a_reduction_that_is_also_an_output_is_stored():
    loops = program(
        row_sum("buf0", load("x", I0, R0)),
        pointwise("buf1", op("sub", load("x", I0, I1), load("buf0", I0))),
        outputs=("buf0", "buf1"),
    )
    schedule = scheduled(loops)
    assert members(schedule) == [({"buf0", "buf1"}, set())]
    assert schedule.groups[0].stored == {"buf0", "buf1"}


def test_a_reduction_of_other_rows_is_a_separate_kernel():
    """buf1[i0] needs the sum of row i0 + 1, which another point computes."""
    loops = program(
        Reduction("buf0", (Axis("i0", 65),), (R0,), "sum", load("x", Axis("i0", 65), R0)),
        pointwise("buf1", op("sub", load("x", I0, I1), load("buf0", Index.of(I0) + 1))),
        inputs={"x": (65, 128)},
        outputs=("buf1",),
    )
    schedule = scheduled(loops)
    assert len(schedule.groups) == 2
    reason = dict((v.rule, v.reason) for v in schedule.decisions.about("buf0", "buf1").verdicts)
    assert "i0<65" in reason["same_iteration_space"]


def test_the_reason_names_axes_that_do_not_correspond():
    """Row sums and column sums of a square: 4 points each, but not of the same axis."""
    c = lab.inspect(lambda x: (x.sum(0), x.sum(1)), torch.randn(4, 4))
    decision = c.graphs[0].forward.schedule.decisions.about("buf0", "buf1")
    reason = dict((v.rule, v.reason) for v in decision.verdicts)["same_iteration_space"]
    assert reason == (
        "the kernels of buf0 and buf1 both iterate over i0<4, "
        "but no axis of buf1 corresponds to i0<4 of buf0"
    )


def test_axes_get_the_names_of_the_consumer():
    """The row axis is i0 in buf0 and i1 in buf1, whose columns come first."""
    columns, rows = Axis("i0", 128), Axis("i1", 64)
    loops = program(
        row_sum("buf0", load("x", I0, R0)),
        pointwise("buf1", op("mul", load("x", rows, columns), load("buf0", rows)), columns, rows),
        outputs=("buf1",),
    )
    schedule = scheduled(loops, off=("memory_walk",))
    assert len(schedule.groups) == 1
    group = schedule.groups[0]
    assert group.axes == (rows,)
    assert group.nests[0].axes == (rows,)


def test_an_inner_axis_is_renamed_if_its_name_clashes():
    """The axes of both nests are i0, i1, but the rows of one are the columns of the other."""
    square = Axis("i0", 64), Axis("i1", 64)
    first, second = square
    reduced = Axis("r0", 64)
    loops = program(
        Reduction("buf0", (first,), (reduced,), "sum", load("x", first, reduced)),
        pointwise("buf1", op("exp", load("buf0", second)), *square),
        pointwise("buf2", op("mul", load("x", *square), load("buf0", first)), *square),
        inputs={"x": (64, 64)},
        outputs=("buf1", "buf2"),
    )
    schedule = scheduled(loops, force=(("buf0", "buf1"), ("buf1", "buf2")))
    verify_schedule(schedule)


def test_a_step_between_two_nests_prevents_fusion():
    """A matmul reads buf0, and buf2 reads both its result and buf0."""
    square = Axis("i0", 64), Axis("i1", 64)
    view = BufferView("buf0", Layout.contiguous((64, 64)))
    loops = program(
        pointwise("buf0", op("exp", load("x", *square)), *square),
        ExternCall(("buf1",), "aten.mm.default", (view, view)),
        pointwise("buf2", op("add", load("buf0", *square), load("buf1", *square)), *square),
        inputs={"x": (64, 64)},
        outputs=("buf2",),
    )
    schedule = scheduled(loops)
    assert [type(step).__name__ for step in schedule.steps] == ["Group", "ExternCall", "Group"]
    reason = {v.rule: v.reason for v in schedule.decisions.about("buf0", "buf2").verdicts}
    assert reason["no_step_between"] == "aten.mm.default has to run between buf0 and buf2"
    assert reason["cheap_copy"] == "computing buf0 takes 10 flops per element"


def test_a_cycle_through_another_kernel_is_detected():
    """buf0 and buf3 must not be fused: buf1 needs buf0, and buf3 is fused with buf4, which needs
    buf1 through a matmul."""
    square = Axis("i0", 64), Axis("i1", 64)
    view = BufferView("buf1", Layout.contiguous((64, 64)))
    loops = program(
        pointwise("buf0", op("exp", load("x", *square)), *square),
        pointwise("buf1", op("sin", load("buf0", *square)), *square),
        ExternCall(("buf2",), "aten.mm.default", (view, view)),
        pointwise("buf3", op("cos", load("x", *square)), *square),
        pointwise("buf4", op("add", load("buf2", *square), load("buf0", *square)), *square),
        inputs={"x": (64, 64)},
        outputs=("buf3", "buf4"),
    )
    scheduled(loops, force=(("buf3", "buf4"), ("buf0", "buf3")))


def test_siblings_share_a_kernel():
    loops = program(
        pointwise("buf0", op("sin", load("x", I0, I1))),
        pointwise("buf1", op("cos", load("x", I0, I1))),
        row_sum("buf2", load("x", I0, R0)),
        outputs=("buf0", "buf1", "buf2"),
    )
    schedule = scheduled(loops)
    assert members(schedule) == [({"buf0", "buf1", "buf2"}, set())]
    assert schedule.groups[0].cost.passes == 4
    assert schedule.decisions.about("buf0", "buf1").relation == "horizontal"


def test_a_cheap_producer_is_copied_and_an_expensive_one_stored():
    """The two readers cannot be fused: a matmul is between them."""
    square = Axis("i0", 64), Axis("i1", 64)

    def loops(name: str) -> LoopProgram:
        view = BufferView("buf1", Layout.contiguous((64, 64)))
        return program(
            pointwise("buf0", op(name, load("x", *square)), *square),
            pointwise("buf1", op("sqrt", load("buf0", *square)), *square),
            ExternCall(("buf2",), "aten.mm.default", (view, view)),
            pointwise("buf3", op("add", load("buf2", *square), load("buf0", *square)), *square),
            inputs={"x": (64, 64)},
            outputs=("buf3",),
        )

    assert members(scheduled(loops("abs"))) == [
        ({"buf1"}, {"buf0"}),
        ({"buf3"}, {"buf0"}),
    ]
    assert members(scheduled(loops("exp"))) == [({"buf0", "buf1"}, set()), ({"buf3"}, set())]


def test_a_copied_and_stored_value_is_not_stored_after_fusion():
    """`isnan(y)` is stored for one reader and copied into the other; after these are fused, nothing
    reads the stored value."""

    def logs(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.xlogy(x, y), torch.special.xlog1py(x, y)

    x, y = torch.arange(-2.0, 34.0)[:, None], torch.linspace(-2.0, 3.0, 36)[None]
    compiled = lab.inspect(logs, x, y)
    assert len(compiled.graphs[0].forward.schedule.groups) == 1
    for got, want in zip(compiled.result, logs(x, y), strict=True):
        torch.testing.assert_close(got, want, equal_nan=True)


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last], ids=str)
def test_a_value_per_channel_is_computed_once_per_channel(memory: torch.memory_format):
    """If the channels are the inner loop, inlining would compute it for every pixel."""

    def scaled(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return x * (w * (v + 1e-5).rsqrt())[:, None, None]

    x = torch.randn(2, 64, 56, 56).contiguous(memory_format=memory)
    w, v = torch.randn(64), torch.rand(64)
    compiled = lab.inspect(scaled, x, w, v)
    kernels = compiled.graphs[0].forward.kernels
    last = memory is torch.channels_last
    assert [str(kernel).count("rsqrt<") for kernel in kernels] == ([1, 0] if last else [1])
    torch.testing.assert_close(compiled.result, scaled(x, w, v))


def test_a_single_operation_per_channel_is_not_stored():
    x, b = torch.randn(512, 512), torch.randn(512)
    compiled = lab.inspect(lambda x, b: x + b * 2, x, b)
    assert len(compiled.graphs[0].forward.kernels) == 1


def test_a_full_reduction_fuses_with_scalars_but_not_with_a_large_consumer():
    tensor = Axis("i0", 1 << 20)
    reduced = Axis("r0", 1 << 20)
    loops = program(
        Reduction("buf0", (), (reduced,), "sum", load("x", reduced)),
        Pointwise("buf1", (), op("sqrt", load("buf0"))),
        pointwise("buf2", op("mul", load("x", tensor), load("buf1")), tensor),
        inputs={"x": (1 << 20,)},
        outputs=("buf2",),
    )
    schedule = scheduled(loops)
    assert members(schedule) == [({"buf0"}, set()), ({"buf2"}, {"buf1"})]
    reason = {v.rule: v.reason for v in schedule.decisions.about("buf0", "buf1").verdicts}
    assert reason["parallelism"] == (
        "only 1 independent point would process 1,048,576 elements of buf2"
    )


def test_dead_nests_are_dropped():
    loops = program(
        pointwise("buf0", op("sin", load("x", I0, I1))),
        pointwise("buf1", op("cos", load("x", I0, I1))),
        outputs=("buf1",),
    )
    schedule = scheduled(loops)
    assert members(schedule) == [({"buf1"}, set())]
    assert schedule.before.kernels == 1


@pytest.mark.parametrize("length", [30, 300])
def test_long_chains_that_branch_take_linear_time(length: int):
    """Each link reads the previous one at two places: without sharing, this takes 2**length
    evaluations.  A kernel that grows too large is split."""
    line = Axis("i0", 256)
    steps = []
    for count in range(length):
        before = f"buf{count - 1}" if count else "x"
        here, there = load(before, line), load(before, Index.of(line) * -1 + 255)
        mean = op("mul", op("add", here, there), Const(0.5, F32))
        steps.append(pointwise(f"buf{count}", mean, line))
    loops = program(*steps, inputs={"x": (256,)}, outputs=(f"buf{length - 1}",))
    schedule = scheduled(loops)
    assert len(schedule.groups) == (1 if length == 30 else 5)


def test_one_refused_copy_is_enough_to_stop_copying():
    """An expensive row with four readers of different shapes: one refused copy shows that not all
    can recompute it; then each reader, except the one that stores it, is evaluated separately."""
    tried: list[int] = []

    class Counting(Walk):
        def on_demand(self, alone: Cluster, number: int, *more: Any) -> Any:
            tried.append(number)
            return super().on_demand(alone, number, *more)

    lines = [Axis("i0", 64 * count) for count in range(1, 5)]
    row = pointwise("buf0", op("exp", op("exp", load("x", I0))), I0)
    readers = [
        pointwise(f"buf{n + 1}", load("buf0", Index.of(line) // (n + 1)), line)
        for n, line in enumerate(lines)
    ]
    names = tuple(reader.buffer for reader in readers)
    loops = program(row, *readers, inputs={"x": (64,)}, outputs=names)
    walk = Counting(loops, live_steps(loops), FusionOptions())
    walk.run()
    assert [d.fused for d in walk.decisions if d.producer == "buf0"] == [True, False, False, False]
    assert len(tried) == 4


def test_group_names_follow_the_operations():
    loops = program(
        Pointwise("buf0", (I0, I1), op("sin", load("x", I0, I1)), frozenset({"sin_3"})),
        Pointwise(
            "buf1",
            (I0, I1),
            op("add", load("buf0", I0, I1), load("x", I0, I1)),
            frozenset({"add_12", "pow_1"}),
        ),
        outputs=("buf1",),
    )
    group = scheduled(loops).groups[0]
    assert group.name == "fused_add_pow_sin_0"
    assert group.origins == {"sin_3", "add_12", "pow_1"}
