"""Mixed-order reduction: one kernel processes rows and sums across them, and reads inputs once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from inductor_lab.compiler.base.options import FusionOptions
from inductor_lab.compiler.ir.gpu_sizes import LONGEST_HELD
from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.ir.program import Reduction
from inductor_lab.compiler.schedule.schedule import Group, Schedule
from tests.schedule.programs import Scheduled, planned
from tests.schedule.test_fuse import load, op, pointwise, program, scheduled

Shape = tuple[int, ...]


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    return F.layer_norm(x, (x.shape[-1],), weight, bias)


def rms_norm(x: Any, weight: Any) -> Any:
    return F.rms_norm(x, (x.shape[-1],), weight)


def gelu(x: Any, bias: Any) -> Any:
    return F.gelu(x + bias)


def backward(function: Callable[..., Any], *shapes: Shape, dtype: Any = torch.float32) -> Schedule:
    """The schedule of the gradients, after comparing them with eager mode."""
    torch.manual_seed(0)
    given = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]
    made = Scheduled(FusionOptions())
    result = made(function, *given)
    along = torch.randn_like(result)
    expected = torch.autograd.grad(function(*given), given, along)
    for mine, theirs in zip(torch.autograd.grad(result, given, along), expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
    return made.schedules["backward"]


CASES: dict[str, tuple[Any, ...]] = {
    "layer norm": (layer_norm, (256, 96), (96,), (96,)),
    "as long as wide": (layer_norm, (256, 256), (256,), (256,)),
    "a batch": (layer_norm, (4, 128, 96), (96,), (96,)),
    "parts of several batches": (layer_norm, (96, 32, 96), (96,), (96,)),
    "parts that begin in a batch and end in the next": (layer_norm, (40, 24, 96), (96,), (96,)),
    "rms norm": (rms_norm, (256, 96), (96,)),
    "a stored result": (gelu, (4, 64, 96), (96,)),
}


@pytest.mark.parametrize("name", CASES)
def test_sums_across_rows_join_the_kernel_of_the_rows(name: str) -> None:
    first, *sums = backward(*CASES[name]).groups
    assert first.in_parts is not None
    crossing = [nest for nest in first.nests if first.sums_across_points(nest)]
    assert len(crossing) == len(CASES[name]) - 2
    rows = 1
    for axis in first.axes:
        rows *= axis.size
    assert rows == first.in_parts.part.size * _product(first.in_parts.steps)
    assert first.in_parts.places.keys() == set(first.axes)
    assert all(group.cost.bytes_read < first.cost.bytes_read / 2 for group in sums)


def _product(axes: tuple[Axis, ...]) -> int:
    count = 1
    for axis in axes:
        count *= axis.size
    return count


def test_the_text_says_how_the_points_are_visited() -> None:
    text = str(backward(layer_norm, (256, 96), (96,), (96,)))
    assert "(i0<256 by part<64, step0<4)" in text


ALONE: dict[str, tuple[Any, ...]] = {
    "rows that do not fit": (layer_norm, (256, LONGEST_HELD + 1), *[(LONGEST_HELD + 1,)] * 2),
    "no whole parts": (layer_norm, (257, 96), (96,), (96,)),
    "few rows": (layer_norm, (16, 96), (96,), (96,)),
}


@pytest.mark.parametrize("name", ALONE)
def test_other_sums_stay_separate_kernels(name: str) -> None:
    groups = backward(*ALONE[name]).groups
    assert all(group.in_parts is None for group in groups)


# ---- hand-written programs: x is 64 x 128 ------------------------------------------------------

P0, C0, STEP, I0, R0 = (Axis("p0", 16), Axis("c0", 128), Axis("s0", 4), Axis("i0", 64),
                        Axis("r0", 128))  # fmt: skip


def column_sum(buffer: str, kind: str = "sum", *, source: str = "x") -> Reduction:
    place = Index.of(P0) * STEP.size + Index.of(STEP)
    return Reduction(buffer, (P0, C0), (STEP,), kind, load(source, place, C0))


def one_in_parts(schedule: Schedule) -> Group:
    (group,) = [group for group in schedule.groups if group.in_parts is not None]
    return group


ROWS = Reduction("rows", (I0,), (R0,), "sum", load("x", I0, R0))


def test_a_row_reduction_and_a_sum_across_rows_read_x_once() -> None:
    schedule = scheduled(program(ROWS, column_sum("columns"), outputs=("rows", "columns")))
    group = one_in_parts(schedule)
    assert len(schedule.groups) == 1
    assert group.cost.bytes_read == 64 * 128 * 4
    assert schedule.decisions.about("rows", "columns").fused


def test_two_sums_across_rows_share_the_parts() -> None:
    steps = ROWS, column_sum("one"), column_sum("two", source="y")
    first = Reduction("rows", (I0,), (R0,), "sum", op("add", load("x", I0, R0), load("y", I0, R0)))
    made = program(first, *steps[1:], outputs=("rows", "one", "two"),
                   inputs={"x": (64, 128), "y": (64, 128)})  # fmt: skip
    group = one_in_parts(scheduled(made))
    assert sum(group.sums_across_points(nest) for nest in group.nests) == 2


def test_sums_with_different_parts_are_separate_kernels() -> None:
    eight = Axis("s0", 8)
    place = Index.of(Axis("p0", 8)) * 8 + Index.of(eight)
    other = Reduction("other", (Axis("p0", 8), C0), (eight,), "sum", load("x", place, C0))
    made = program(ROWS, column_sum("columns"), other, outputs=("rows", "columns", "other"))
    assert len(scheduled(made).groups) == 2


def test_kernels_with_different_parts_are_not_fused() -> None:
    """Each kernel sums across its rows, and both share an input."""
    half = Axis("s0", 8)
    place = Index.of(Axis("p0", 8)) * 8 + Index.of(half)
    steps = [
        Reduction(f"rows_{n}", (I0,), (R0,), "sum", op("add", load("x", I0, R0), load(n, I0, R0)))
        for n in "yz"
    ]
    steps.append(column_sum("by_16", source="y"))
    steps.append(Reduction("by_8", (Axis("p0", 8), C0), (half,), "sum", load("z", place, C0)))
    made = program(*steps, outputs=tuple(step.buffer for step in steps),
                   inputs=dict.fromkeys("yzx", (64, 128)))  # fmt: skip
    schedule = scheduled(made)
    assert {group.in_parts.part.size for group in schedule.groups if group.in_parts} == {16, 8}
    assert len(schedule.groups) == 2


def test_sums_of_a_tensor_and_of_its_reshaped_view_use_the_same_parts() -> None:
    def function(x: Any, weight: Any) -> Any:
        y = F.layer_norm(x, (96,), weight)
        return y, y.view(-1, 96).sum(0)

    schedule = planned(function, torch.randn(8, 64, 96), torch.randn(96))
    group = one_in_parts(schedule)
    assert [axis.size for axis in group.axes] == [8, 64]
    assert group.in_parts is not None and group.in_parts.part.size == 64


def test_a_reader_of_the_sum_is_a_later_kernel() -> None:
    own = Axis("i1", 128)
    whole = Reduction("whole", (own,), (P0,), "sum", load("columns", P0, own))
    shifted = pointwise("out", op("sub", load("x", I0, own), load("whole", own)), I0, own)
    made = program(column_sum("columns"), whole, shifted, outputs=("out",))
    schedule = scheduled(made)
    assert all(group.in_parts is None for group in schedule.groups)


@pytest.mark.parametrize("kind", ["max", "min", "prod"])
def test_other_kinds_of_reductions_are_separate_kernels(kind: str) -> None:
    made = program(ROWS, column_sum("columns", kind), outputs=("rows", "columns"))
    assert len(scheduled(made).groups) == 2


def test_a_sum_over_part_of_a_tensor_does_not_visit_all_points() -> None:
    half = Axis("p0", 8)
    place = Index.of(half) * STEP.size + Index.of(STEP)
    upper = Reduction("upper", (half, C0), (STEP,), "sum", load("x", place, C0))
    schedule = scheduled(program(ROWS, upper, outputs=("rows", "upper")))
    assert all(group.in_parts is None for group in schedule.groups)


def test_parts_that_the_user_writes() -> None:
    def both(x: Any) -> Any:
        return torch.softmax(x, -1), x.view(32, 8, 96).sum(1)

    (group,) = planned(both, torch.randn(256, 96)).groups
    assert group.in_parts is not None and group.in_parts.part.size == 32
