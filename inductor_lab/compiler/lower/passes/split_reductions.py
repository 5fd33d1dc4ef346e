"""Reductions in two steps, so that enough parts run in parallel.

    buf0 = sum over r0<16777216 of x[r0]

    buf0_parts[p0] = sum over r0<32768 of x[32768*p0 + r0]        p0<512
    buf0 = sum over p0<512 of buf0_parts[p0]

The parts are fixed, so the result is the same in every run.  A position (argmax) needs the value
and the position of each part: the result is the first position of those with the best value.

A GPU needs this if there are few long rows; on a CPU the code generator splits such a loop itself
(`codegen/cpu/thread_parts.py`).  Both need it if sums across rows are fused with a kernel that
visits the rows (`schedule/fusion/mixed_order_reduction.py`).

Inductor: `ir.py`, `Reduction.num_splits` and `create_multilayer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any

import torch

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.expr import Const, Expr, IndexValue, Load, Masked, Op, size_value
from inductor_lab.compiler.ir.gpu_sizes import GPU_PARTS, LONGEST_HELD
from inductor_lab.compiler.ir.index import Axis, Index, Size, mul_sizes, product
from inductor_lab.compiler.ir.ops import neutral
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    ExternCall,
    Layout,
    LoopProgram,
    Nest,
    Pointwise,
    Reduction,
    read_by,
)
from inductor_lab.compiler.ir.row_major import coordinates_at
from inductor_lab.compiler.lower.passes.facts import ProgramFacts
from inductor_lab.compiler.lower.passes.gpu_rows import (
    ENOUGH_PROGRAMS,
    favours_columns,
    kept_rows,
    numel,
    volume,
)
from inductor_lab.compiler.torch_door.torch_api import SYMPY_FUNCTIONS

PROGRAMS = 512
"""The number of programs that a split aims at: several for each multiprocessor, but few enough for
a second kernel with one program."""

FEWEST_PARTS = 4

PART = 8192
"""The smallest part in elements: below that the second launch costs more than the split saves."""

ALIGNED = ((PART, 1024), (128, 16), (0, 1))
"""(minimum length of a part, its start is a multiple of this): complete blocks, or complete cache
lines."""

NEIGHBOURS = 64
"""Columns that one program reduces together if columns are adjacent in memory: two cache lines of
float32."""

ENOUGH_OF_COLUMNS, PROGRAMS_OF_COLUMNS = 256, 1024
"""The same limits for programs that reduce columns: eight of them run on one multiprocessor."""

SHORTEST_ROW, FEWEST_ROWS = 64, 4
"""The smallest row, and the smallest number of rows of a part, if sums across rows are fused with
another visit of the rows (`schedule/fusion/mixed_order_reduction.py`)."""

ELEMENTS_AT_ONCE = 1 << 20
"""Elements of all rows that the programs of a GPU hold at the same time; with more there would be
more partial sums to add."""

CPU_PARTS = 64
"""Parts for the threads of a CPU; the number is fixed, so that a sum does not depend on the number
of threads."""


@dataclass(frozen=True, slots=True)
class Cut:
    """`axes`, flattened, in `parts` parts of `length`; `exact` if they cover the axes without a
    remainder."""

    axes: tuple[Axis, ...]
    parts: int
    length: Size
    exact: bool

    @property
    def inside(self) -> Axis:
        """The axis of one part."""
        return Axis(self.axes[0].name, self.length)

    @property
    def position(self) -> Index:
        """The position of an element of a part along the axes."""
        return Index.of(Axis("p0", self.parts)) * self.length + Index.of(self.inside)


def split_reductions(program: LoopProgram, facts: ProgramFacts) -> LoopProgram:
    """The program with split reductions.

    A reduction is split if it is a sum across rows that another nest visits.  It is also split if
    it will be a Triton kernel, is long enough, and a GPU does not keep its rows.
    """
    options, splitter = facts.options, _Splitter(program.buffers)
    with_rows = _column_sums_of_visited_rows(program)
    kept = {nest.buffer for pair in kept_rows(program, options) for nest in pair}
    for step in program.steps:
        cut = None
        if isinstance(step, Reduction):
            triton = in_triton(program.buffers[step.buffer].device, options)
            cut = _cut_of_rows(step, triton) if step.buffer in with_rows else None
            if cut is None and triton and step.buffer not in kept:
                cut = cut_of(step, program.buffers)
        if cut is None:
            splitter.steps.append(step)
        else:
            assert isinstance(step, Reduction), "only reductions are split"
            splitter.split(step, cut)
    if splitter.steps == list(program.steps):
        return program
    return replace(program, buffers=splitter.buffers, steps=tuple(splitter.steps))


def in_triton(device: str, options: Options) -> bool:
    """Will the computation on this device be a Triton kernel?"""
    return options.target is not None or options.language == "triton" or device != "cpu"


def _cut_of_rows(nest: Reduction, triton: bool) -> Cut | None:
    """How to split a sum across rows so that a kernel that visits the rows can compute it."""
    row = numel(axis.size for axis in nest.axes)
    rows = numel(axis.size for axis in nest.reduce_axes)
    if not SHORTEST_ROW <= row <= LONGEST_HELD:
        return None
    wanted = min(ELEMENTS_AT_ONCE // row if triton else CPU_PARTS, rows // FEWEST_ROWS)
    enough = GPU_PARTS if triton else CPU_PARTS // 2
    if wanted < enough or not all(isinstance(axis.size, int) for axis in nest.reduce_axes):
        return None
    cut = _cut(nest.reduce_axes, wanted, enough)
    return cut if cut.exact else None


def cut_of(nest: Reduction, buffers: Mapping[str, Buffer]) -> Cut | None:
    """How to split a reduction; None if it has enough rows or is short."""
    if nest.kind == "bisect":
        return None
    columns = favours_columns(nest, buffers)
    lanes = NEIGHBOURS if columns else 1
    points = numel(axis.size for axis in nest.axes)
    length = numel(axis.size for axis in nest.reduce_axes)
    programs = max(points // lanes, 1)
    enough, aim = ENOUGH_PROGRAMS, PROGRAMS
    if columns:
        enough, aim = ENOUGH_OF_COLUMNS, PROGRAMS_OF_COLUMNS
    if programs >= enough:
        return None
    wanted = min(aim // programs, length * min(points, lanes) // PART)
    # positions are row-major, so for argmax and argmin a part must be a range of the first axis
    axes = nest.reduce_axes[:1] if nest.kind in ("argmax", "argmin") else nest.reduce_axes
    sizes = {axis: numel((axis.size,)) for axis in axes}
    first = accumulate(sizes.values(), mul)
    enough_axes = next((n for n, size in enumerate(first, 1) if size >= wanted), len(axes))
    cut = next(((a,) for a in axes if sizes[a] >= wanted), axes[:enough_axes])
    wanted = min(wanted, prod(sizes[axis] for axis in cut))
    return _cut(cut, wanted, wanted // 2 + 1) if wanted >= FEWEST_PARTS else None


def _cut(axes: tuple[Axis, ...], wanted: int, least: int) -> Cut:
    """About `wanted` parts; if possible a number (at least `least`) that divides the axes."""
    size = product(axis.size for axis in axes)
    if not isinstance(size, int):
        length = SYMPY_FUNCTIONS["torch.FloorDiv"](size + wanted - 1, wanted)
        return Cut(axes, wanted, length, exact=False)
    step = next(step for least, step in ALIGNED if size >= wanted * least)
    even = (p for p in range(wanted, least - 1, -1) if size % (p * step) == 0)
    parts = next(even, None)
    if parts is not None:
        return Cut(axes, parts, size // parts, exact=True)
    length = -(-size // (wanted * step)) * step
    return Cut(axes, -(-size // length), length, exact=False)


def _column_sums_of_visited_rows(program: LoopProgram) -> set[str]:
    """Sums over the rows that another nest also visits, if that nest does not depend on any of the
    sums.

    The nest is a stored pointwise nest that reads all row buffers of these sums, directly or
    through other pointwise nests; or a reduction of rows that reads at least half of them.
    """
    sources: dict[str, frozenset[str]] = {}
    waits: dict[str, frozenset[str]] = {}
    by_rows: list[tuple[int, frozenset[str], frozenset[str], float]] = []
    by_columns: dict[int, dict[str, frozenset[str]]] = {}
    calls = [step for step in program.steps if isinstance(step, ExternCall)]
    stored = program.output_buffers.union(*map(read_by, calls))
    elements = {name: numel(buffer.layout.size) for name, buffer in program.buffers.items()}
    for nest in program.nests:
        direct = read_by(nest)
        read = frozenset[str]().union(*(sources.get(b, {b}) for b in direct))
        waits[nest.buffer] = direct.union(*(waits.get(b, frozenset()) for b in direct))
        size = volume(nest)
        rows = frozenset(b for b in read if elements[b] >= size)
        if isinstance(nest, Pointwise):
            sources[nest.buffer] = read
        if isinstance(nest, Reduction) and favours_columns(nest, program.buffers):
            if nest.kind == "sum":
                by_columns.setdefault(size, {})[nest.buffer] = rows
        elif isinstance(nest, Reduction) or nest.buffer in stored:
            share = 0.5 if isinstance(nest, Reduction) else 1
            by_rows.append((size, rows, waits[nest.buffer], share))
    found: set[str] = set()
    for size, rows, needed, share in by_rows:
        sums = {name: own for name, own in by_columns.get(size, {}).items() if own & rows}
        read = frozenset[str]().union(*sums.values())
        if sums and needed.isdisjoint(sums) and len(read & rows) >= share * len(read):
            found |= sums.keys()
    return found


class _Splitter:
    """The steps and buffers of the new program; equal steps are created once."""

    def __init__(self, buffers: Mapping[str, Buffer]) -> None:
        self.buffers = dict(buffers)
        self.steps: list[Any] = []
        self.made: dict[tuple[Any, ...], str] = {}

    def split(self, nest: Reduction, cut: Cut) -> None:
        if nest.kind in ("argmax", "argmin"):
            self.split_position(nest, cut)
            return
        parts = self.partial(nest, nest.kind, cut, "parts")
        total = replace(nest, reduce_axes=(_part(cut),), body=self.load(parts, nest, cut))
        if self.buffers[nest.buffer].dtype == total.body.dtype:
            self.made[total.kind, total.axes, total.reduce_axes, total.body] = nest.buffer
        self.steps.append(total)

    def split_position(self, nest: Reduction, cut: Cut) -> None:
        """The first position among those of the parts with the best value."""
        kind = nest.kind.removeprefix("arg")
        values = self.partial(nest, kind, cut, "best")
        places = self.partial(nest, nest.kind, cut, "at")
        value = self.load(values, nest, cut)
        best = self.reduction(nest, kind, (_part(cut),), value, nest.axes, "top")
        own = tuple(map(Index.of, nest.axes))
        top = Load(best, own, value.dtype, nest.origins)
        same: Expr = Op("eq", (value, top), torch.bool, nest.origins)
        if value.dtype.is_floating_point:
            nan = Op("isnan", (value,), torch.bool, nest.origins)
            same = Op("logical_or", (same, nan), torch.bool, nest.origins)
        below = mul_sizes(cut.length, product(a.size for a in nest.reduce_axes[1:]))
        start = IndexValue(Index.of(_part(cut)) * below, torch.int64)
        place = Op("add", (self.load(places, nest, cut), start), torch.int64, nest.origins)
        nowhere = Const(torch.iinfo(torch.int64).max, torch.int64)
        first = Op("where", (same, place, nowhere), torch.int64, nest.origins)
        self.steps.append(replace(nest, kind="min", reduce_axes=(_part(cut),), body=first))

    def partial(self, nest: Reduction, kind: str, cut: Cut, what: str) -> str:
        """The buffer with the result of each part."""
        place = cut.position
        body = nest.body.substitute(coordinates_at(place, cut.axes))
        if not cut.exact:
            size = product(axis.size for axis in cut.axes)
            test = (IndexValue(place, torch.int64), size_value(size))
            mask = Op("lt", test, torch.bool, nest.origins)
            body = Masked(mask, body, Const(neutral(kind, body.dtype), body.dtype), nest.origins)
        kept = (axis for axis in nest.reduce_axes if axis not in cut.axes[1:])
        reduced = tuple(cut.inside if axis == cut.axes[0] else axis for axis in kept)
        return self.reduction(nest, kind, reduced, body, (_part(cut), *nest.axes), what)

    def reduction(
        self,
        nest: Reduction,
        kind: str,
        reduce_axes: tuple[Axis, ...],
        body: Expr,
        axes: tuple[Axis, ...],
        what: str,
    ) -> str:
        key = (kind, axes, reduce_axes, body)
        if key not in self.made:
            old = self.buffers[nest.buffer]
            name = self.made[key] = f"{nest.buffer}_{what}"
            dtype = torch.int64 if kind.startswith("arg") else body.dtype
            layout = Layout.contiguous(tuple(axis.size for axis in axes))
            kept = (BufferKind.COMPUTED, dtype, old.device, layout, nest.origins)
            self.buffers[name] = Buffer(name, *kept)
            self.steps.append(Reduction(name, axes, reduce_axes, kind, body, nest.origins))
        return self.made[key]

    def load(self, parts: str, nest: Nest, cut: Cut) -> Load:
        """The result of one part."""
        place = tuple(map(Index.of, (_part(cut), *nest.axes)))
        return Load(parts, place, self.buffers[parts].dtype, nest.origins)


def _part(cut: Cut) -> Axis:
    return Axis("p0", cut.parts)
