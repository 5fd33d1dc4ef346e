"""Build a loop tree from a group: the steps that both code generators share.

    stages_of    assigns each nest to a loop
    loop_space   chooses the loops
    ValueEmitter emits the statements of their bodies
    tidy         inlines single-use temps and renumbers the others

Inductor: `CppScheduling`/`SIMDScheduling.codegen_node` and `codegen/loop_body`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch

from inductor_lab.compiler.codegen.tree.axes import Space, loop_space, split_loop_space
from inductor_lab.compiler.codegen.tree.emit_values import ValueEmitter
from inductor_lab.compiler.codegen.tree.flat_offsets import Access, accesses, stored_at
from inductor_lab.compiler.codegen.tree.inline_temps import tidy
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Init,
    Local,
    Loop,
    LoopKind,
    Stmt,
    Store,
)
from inductor_lab.compiler.codegen.tree.stages import LoopShape, PlacedNest, Stage, stages_of
from inductor_lab.compiler.ir.expr import Expr, Load, Op, Temp
from inductor_lab.compiler.ir.index import Axis, Index, hint, product
from inductor_lab.compiler.ir.ops import POSITIONS
from inductor_lab.compiler.ir.program import Buffer, Reduction, Scan, Scatter
from inductor_lab.compiler.ir.row_major import flat_position
from inductor_lab.compiler.schedule.schedule import Group


def build_tree(group: Group, buffers: Mapping[str, Buffer]) -> tuple[Stmt, ...]:
    """The loop tree of a group: the group's axes are nested loops that contain the stages.

    The group's loops are PARALLEL; the innermost one is VECTOR if it contains no loop.  An inner
    loop is REDUCE if it feeds an accumulator, SCAN if its running value is read, SERIAL otherwise.
    In every body, all loads come before the stores of that body, so a kernel may write in place.
    """
    return tidy(_Builder(group, buffers, cut=False).tree())


def full_tree(group: Group, buffers: Mapping[str, Buffer], *, cut: bool = True) -> tuple[Stmt, ...]:
    """The tree for C++: each operation has its own temp, so that passes can compare values.

    With `cut`, loops are split so that no index divides a loop variable (Triton has a single index
    for all axes, so it does not need this).
    """
    return _Builder(group, buffers, cut=cut).tree()


class _Builder:
    def __init__(self, group: Group, buffers: Mapping[str, Buffer], *, cut: bool) -> None:
        self.group = group
        self.buffers = buffers
        self.cut = cut
        self.stages = stages_of(group)
        self.emitter = ValueEmitter(group, buffers)
        self.rows: dict[Temp, tuple[PlacedNest, tuple[Axis, ...]]] = {}
        self.outer, self.inner = self._spaces()

    def tree(self) -> tuple[Stmt, ...]:
        self.emitter.open()
        steps = self.group.in_parts.steps if self.group.in_parts else ()
        points = self.outer.loops[: len(self.outer.loops) - len(steps)]
        for axis in self.outer.loops:
            self.emitter.open(axis)
        for stage in self.stages:
            self._emit_stage(stage)
        self._wrap(steps, LoopKind.ORDERED)
        self._emit_row_sums()
        loops_inside = any(stage.loops for stage in self.stages)
        kind = LoopKind.PARALLEL if loops_inside else LoopKind.VECTOR
        self._wrap(points[-1:], kind)
        self._wrap(points[:-1], LoopKind.PARALLEL)
        return self.emitter.close()

    # ---- loops -------------------------------------------------------------------------------

    def _spaces(self) -> tuple[Space, dict[LoopShape, tuple[Space, ...]]]:
        """The loops for the group's axes, and the loops for each shape of inner loop.

        Inner loops of one shape are the same in every stage, so that one loop can reuse the values
        of another.
        """
        everything: list[Access] = []
        by_shape: dict[LoopShape, list[Access]] = {}
        levels: dict[LoopShape, tuple[tuple[Axis, ...], ...]] = {}
        in_order: set[LoopShape] = set()
        for placed in self._placed():
            seen = [
                Access(a.buffer, a.flat.substitute(placed.renaming), a.store)
                for a in accesses(self.group, self.buffers, placed.nest)
            ]
            everything.extend(seen)
            by_shape.setdefault(placed.shape, []).extend(seen)
            levels[placed.shape] = placed.levels
            reduces = isinstance(placed.nest, Reduction) and placed.nest.kind in POSITIONS
            if reduces or isinstance(placed.nest, Scatter):
                in_order.add(placed.shape)
        inner = {
            shape: tuple(
                loop_space(axes, by_shape[shape], letter, keep_order=shape in in_order)
                for axes, letter in zip(levels[shape], "jk", strict=False)
            )
            for shape in by_shape
        }
        if self.group.in_parts is not None:
            return Space(self.group.in_parts.axes, self.group.in_parts.places), inner
        scatters = (nest for nest in self.group.nests if isinstance(nest, Scatter))
        may_collide = any(nest.disjoint_axes != nest.axes for nest in scatters)
        if self.cut and not may_collide:
            return split_loop_space(self.group.axes, everything, "i"), inner
        return loop_space(self.group.axes, everything, "i", keep_order=may_collide), inner

    def _placed(self) -> Iterator[PlacedNest]:
        for stage in self.stages:
            yield from stage.scalars
            for together in stage.loops:
                yield from together

    def _mapping(self, placed: PlacedNest) -> dict[Axis, Index]:
        """Each axis of a nest, expressed in terms of the loops."""
        inner: dict[Axis, Index] = {}
        for space in self.inner[placed.shape]:
            inner.update(space.mapping)
        own = {old: new.substitute(inner) for old, new in placed.renaming.items()}
        return {**self.outer.mapping, **own}

    # ---- statements --------------------------------------------------------------------------

    def _emit_stage(self, stage: Stage) -> None:
        for placed in stage.scalars:
            self._emit_loop((placed,), ())
        for together in stage.loops:
            spaces = self.inner[together[0].shape]
            serial = spaces[0].loops if len(spaces) == 2 else ()
            for axis in serial:
                self.emitter.open(axis)
            self._emit_loop(together, spaces[-1].loops)
            self._wrap(serial, LoopKind.SERIAL)

    def _emit_loop(self, nests: tuple[PlacedNest, ...], loops: tuple[Axis, ...]) -> None:
        """Emit the nests of one loop: start accumulators, loop, then store the results."""
        before = self.emitter.scopes[-1].body
        start = len(before)
        for axis in loops:
            self.emitter.open(axis)
        sums: dict[tuple[str, Expr], Accumulate] = {}
        values = [self._value(placed, sums) for placed in nests]
        scans = list(sums.values())
        results: list[tuple[PlacedNest, Temp]] = []
        for placed, value in zip(nests, values, strict=True):
            if self.group.sums_across_points(placed.nest):
                self._add_to_row(placed, loops, value)
            elif isinstance(placed.nest, Reduction):
                results.append((placed, self._reduce(placed, placed.nest, value, sums)))
        for accumulate in list(sums.values())[len(scans) :]:
            self.emitter.emit(accumulate)
        for placed, value in zip(nests, values, strict=True):
            if not isinstance(placed.nest, Reduction):
                self._emit_store(placed, value)
        in_order = any(isinstance(placed.nest, Scatter) for placed in nests)
        plain = LoopKind.ORDERED if in_order else LoopKind.SERIAL
        kind = LoopKind.SCAN if scans else LoopKind.REDUCE if sums else plain
        kind = LoopKind.BISECT if nests[0].searches else kind
        self._wrap(loops, kind)
        before[start:start] = [
            Init(a.name, a.kind, a.value.dtype, a.origins) for a in sums.values()
        ]
        for placed, result in results:
            if len(placed.levels) < 2:
                self.emitter.bind_register(placed.nest.buffer, result)
            self._emit_store(placed, result)

    def _value(self, placed: PlacedNest, sums: dict[tuple[str, Expr], Accumulate]) -> Expr:
        """The value of the body. For a scan: the running value, rounded to the buffer's dtype."""
        nest = placed.nest
        value = self.emitter.value(nest.body.substitute(self._mapping(placed)), nest.origins)
        if not isinstance(nest, Scan):
            return value
        known = (nest.kind, value) in sums
        so_far = self._reduce(placed, nest, value, sums)
        if not known:
            self.emitter.emit(sums[nest.kind, value])
        self.emitter.bind_register(nest.buffer, so_far)
        dtype = self.buffers[nest.buffer].dtype
        if so_far.dtype != dtype:
            rounded = self.emitter.value(Op("convert", (so_far,), dtype, nest.origins))
            assert isinstance(rounded, Temp), "a conversion is computed"
            self.emitter.bind_register(nest.buffer, rounded)
            return rounded
        return so_far

    def _reduce(
        self,
        placed: PlacedNest,
        nest: Reduction | Scan,
        value: Expr,
        sums: dict[tuple[str, Expr], Accumulate],
    ) -> Temp:
        """The accumulator of a reduction; equal reductions of the same values share one."""
        key = (nest.kind, value)
        if key in sums:
            shared = sums[key]
            sums[key] = replace(shared, origins=shared.origins | nest.origins)
        else:
            name = self.emitter.fresh(value.dtype, "acc").name
            position = self._position(placed) if nest.kind in POSITIONS else None
            sums[key] = Accumulate(name, nest.kind, value, position, nest.origins)
        return Temp(sums[key].name, torch.int64 if nest.kind in POSITIONS else value.dtype)

    # ---- reductions over the points ------------------------------------------------------------

    def _add_to_row(self, placed: PlacedNest, loops: tuple[Axis, ...], value: Expr) -> None:
        """Add `value` to the part's running sum for this element of a row."""
        row = Temp(f"row_of_{placed.nest.buffer}", value.dtype)
        self.rows[row] = placed, loops
        self.emitter.emit(Store(row.name, flat_position(loops), value, placed.nest.origins, "add"))

    def _emit_row_sums(self) -> None:
        """Zero the sums before the loop over the steps of a part; store them after the loop."""
        for row, (placed, loops) in self.rows.items():
            size, origins = hint(product(axis.size for axis in loops)), placed.nest.origins
            self.emitter.scopes[-1].body.insert(
                0, Local(row.name, row.dtype, (size,), origins, True)
            )
            for axis in loops:
                self.emitter.open(axis)
            self._emit_store(placed, Load(row.name, (flat_position(loops),), row.dtype, origins))
            self._wrap(loops, LoopKind.SERIAL)

    def _wrap(self, loops: tuple[Axis, ...], kind: LoopKind) -> None:
        for axis in reversed(loops):
            body = self.emitter.close()
            self.emitter.emit(Loop(axis, kind, body))

    def _emit_store(self, placed: PlacedNest, value: Expr) -> None:
        nest = placed.nest
        if nest.buffer in self.group.stored:
            mapping = self._mapping(placed)
            own = tuple(index.substitute(mapping) for index in stored_at(nest))
            flat = self.buffers[nest.buffer].layout.element(own)
            kind = nest.kind if isinstance(nest, Scatter) else "store"
            place = self.emitter.resolved(flat, nest.origins)
            self.emitter.emit(Store(nest.buffer, place, value, nest.origins, kind))

    def _position(self, placed: PlacedNest) -> Index:
        """Row-major position among the reduced axes, or the position along the scanned axis."""
        if isinstance(placed.nest, Scan):
            return Index.of(placed.nest.axis).substitute(self._mapping(placed))
        return flat_position(placed.nest.reduce_axes).substitute(self._mapping(placed))
