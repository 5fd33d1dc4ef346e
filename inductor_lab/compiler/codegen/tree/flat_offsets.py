"""Flat offsets: where a nest reads and writes, after layouts and inlining have been applied.

Inductor: `Layout.make_indexer` and the `MemoryDep`s of `dependencies.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inductor_lab.compiler.ir.expr import IndexValue
from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.ir.program import Buffer, Nest, Pointwise, Scatter
from inductor_lab.compiler.schedule.demand import demand
from inductor_lab.compiler.schedule.schedule import Group


@dataclass(frozen=True, slots=True)
class Access:
    """One use of the axes in a body: a load, a store, or an index used as a number.

    `buffer` is None for an index used as a number. `flat` is expressed in the axes of the nest.
    """

    buffer: str | None
    flat: Index
    store: bool = False


def accesses(group: Group, buffers: Mapping[str, Buffer], nest: Nest) -> list[Access]:
    """The loads, the stores and the indices used as numbers of a nest and its inlined producers."""
    found: dict[Access, None] = {}
    if nest.buffer in group.stored:
        flat = buffers[nest.buffer].layout.element(stored_at(nest))
        found[Access(nest.buffer, flat, store=True)] = None
    demanded = demand(nest, recomputable(group))
    for body in (*nest.roots, *filter(None, demanded.values())):
        counted = (part.index for part in body.walk() if isinstance(part, IndexValue))
        found.update((Access(None, index), None) for index in counted)
    for (buffer, index), made in demanded.items():
        if made is None and buffer in buffers and not is_register(group, buffer):
            found[Access(buffer, buffers[buffer].layout.element(index))] = None
    return list(found)


def stored_at(nest: Nest) -> tuple[Index, ...]:
    """The index at which a nest stores: its axes, unless it is a scatter."""
    if isinstance(nest, Scatter):
        return nest.index
    return tuple(Index.of(axis) for axis in nest.axes)


def recomputable(group: Group) -> dict[str, Pointwise]:
    """Producers that can be computed at any index: inlined nests and pointwise nests."""
    own = {nest.buffer: nest for nest in group.nests if isinstance(nest, Pointwise)}
    return {**own, **group.inlined}


def is_register(group: Group, buffer: str) -> bool:
    """Is it a nest of the group with one value per point, which other nests read as a scalar?"""
    return any(
        nest.buffer == buffer and not isinstance(nest, Pointwise) and not inner_axes(group, nest)
        for nest in group.nests
    )


def inner_axes(group: Group, nest: Nest) -> tuple[Axis, ...]:
    """The axes of a nest's result that are not axes of the group: its inner loop per point."""
    return tuple(a for a in nest.axes if a not in group.visited and a.size != 1)
