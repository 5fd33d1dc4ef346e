"""Assign each nest of a group to a loop of the kernel.

A reduction's result exists only after its loop, so its readers come one stage later:

    stage 0   max of the row          for j: m = max(m, x[j])
    stage 1   sum of exponentials     for j: s += exp(x[j] - m)
    stage 2   the stored result       for j: out[j] = exp(x[j] - m) / s

Nests of one stage with the same extents share a loop; nests without extents need no loop.  Scans,
and the nests that read them element by element, come last and have separate loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from inductor_lab.compiler.codegen.tree.flat_offsets import inner_axes, recomputable
from inductor_lab.compiler.ir.index import Axis, Index, Size
from inductor_lab.compiler.ir.program import Nest, Reduction, Scan
from inductor_lab.compiler.schedule.demand import demand
from inductor_lab.compiler.schedule.fusion.scans import mirrored
from inductor_lab.compiler.schedule.schedule import Group

LoopShape: TypeAlias = tuple[tuple[Size, ...], ...]


@dataclass(frozen=True, slots=True)
class PlacedNest:
    """A nest with renamed inner axes, so that nests of equal extents use the same axes.

    `serial` are inner axes of the result, `reduced` are the reduced axes.
    """

    nest: Nest
    serial: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    renaming: Mapping[Axis, Index]

    @property
    def searches(self) -> bool:
        """Is it a binary search?  No other nest can share its loop."""
        return isinstance(self.nest, Reduction) and self.nest.kind == "bisect"

    @property
    def extents(self) -> tuple[Size, ...]:
        return tuple(axis.size for axis in (*self.serial, *self.reduced))

    @property
    def levels(self) -> tuple[tuple[Axis, ...], ...]:
        """The inner axes: one set of loops, or two if the nest reduces to a vector per point."""
        return tuple(axes for axes in (self.serial, self.reduced) if axes)

    @property
    def shape(self) -> LoopShape:
        """Nests share a loop only if their shapes are equal."""
        return tuple(tuple(axis.size for axis in axes) for axes in self.levels)


@dataclass(frozen=True, slots=True)
class Stage:
    """`scalars` run once per point, without a loop; `loops` has a tuple of nests per loop."""

    scalars: tuple[PlacedNest, ...]
    loops: tuple[tuple[PlacedNest, ...], ...]


def stages_of(group: Group) -> tuple[Stage, ...]:
    """The nests of a group, grouped by stage, and within a stage by loop."""
    level: dict[str, int] = {}
    reads = _reads_within(group)
    by_level: dict[int, list[PlacedNest]] = {}
    in_scans: list[PlacedNest] = []
    for nest in group.nests:
        along = scan_places(group, nest)
        if along:
            in_scans.append(_in_step(_place(group, nest), along))
            continue
        after = (level[r] + (r not in recomputable(group)) for r in reads[nest.buffer])
        level[nest.buffer] = max(after, default=0)
        by_level.setdefault(level[nest.buffer], []).append(_place(group, nest))
    last = [_stage(in_scans)] if in_scans else []
    return (*(_stage(by_level[number]) for number in sorted(by_level)), *last)


def _stage(placed: list[PlacedNest]) -> Stage:
    scalars = [p for p in placed if not p.extents]
    loops: dict[tuple[LoopShape, str], list[PlacedNest]] = {}
    for p in placed:
        if p.extents:
            loops.setdefault((p.shape, p.nest.buffer if p.searches else ""), []).append(p)
    return Stage(tuple(scalars), tuple(map(tuple, loops.values())))


def _place(group: Group, nest: Nest) -> PlacedNest:
    own = inner_axes(group, nest)
    away = tuple(a for a in nest.reduce_axes if a not in group.visited and a.size != 1)
    new = tuple(Axis(f"inner{k}", a.size) for k, a in enumerate((*own, *away)))
    renaming = {old: Index.of(axis) for old, axis in zip((*own, *away), new, strict=True)}
    return PlacedNest(nest, new[: len(own)], new[len(own) :], renaming)


def scan_places(group: Group, nest: Nest) -> frozenset[Index]:
    """The positions of a nest along the scans of its group: its own axis if it is a scan, and the
    positions at which it reads other scans.  Empty if it neither is nor reads a scan."""
    scans = {n.buffer: n for n in group.nests if isinstance(n, Scan)}
    if not scans:
        return frozenset()
    own = frozenset([Index.of(nest.axis)] if isinstance(nest, Scan) else [])
    demanded = [key for key in demand(nest, recomputable(group)) if key[0] in scans]
    return own.union(at[scans[name].axes.index(scans[name].axis)] for name, at in demanded)


def _in_step(placed: PlacedNest, along: frozenset[Index]) -> PlacedNest:
    """The nest, placed in the loop of the scans that it reads; reversed if it reads them so."""
    (place,), (old,), (axis,) = along, placed.renaming, placed.serial
    moved = Index.of(axis) if place.as_axis() is not None else mirrored(axis)
    return replace(placed, renaming={old: moved})


def _reads_within(group: Group) -> dict[str, set[str]]:
    """For each nest: the group's nests that it reads, directly or through inlined producers."""
    own = {nest.buffer for nest in group.nests}
    demanded = {nest.buffer: demand(nest, group.inlined) for nest in group.nests}
    return {name: {buffer for buffer, _ in places} & own for name, places in demanded.items()}
