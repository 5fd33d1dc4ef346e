"""Flat offsets: where a nest reads and writes, once layouts and inlined producers are gone.

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
    """One place in a body where the axes matter.

    `buffer` is None for a position used as a number; `flat` is in the axes of the nest.
    """

    buffer: str | None
    flat: Index
    store: bool = False


def accesses(group: Group, buffers: Mapping[str, Buffer], nest: Nest) -> list[Access]:
    """What one nest of the group reads, writes and counts, through all inlined producers."""
    found: dict[Access, None] = {}
    if nest.buffer in group.stored:
        flat = buffers[nest.buffer].layout.element(stored_at(nest))
        found[Access(nest.buffer, flat, store=True)] = None
    asked = demand(nest, recomputable(group))
    for body in (*nest.roots, *filter(None, asked.values())):
        counted = (part.index for part in body.walk() if isinstance(part, IndexValue))
        found.update((Access(None, index), None) for index in counted)
    for (buffer, index), made in asked.items():
        if made is None and buffer in buffers and not is_register(group, buffer):
            found[Access(buffer, buffers[buffer].layout.element(index))] = None
    return list(found)


def stored_at(nest: Nest) -> tuple[Index, ...]:
    """Where a nest stores: at its axes, unless it is a scatter."""
    if isinstance(nest, Scatter):
        return nest.index
    return tuple(Index.of(axis) for axis in nest.axes)


def recomputable(group: Group) -> dict[str, Pointwise]:
    """Producers that are expressions at any index: the inlined and the stored pointwise ones."""
    own = {nest.buffer: nest for nest in group.nests if isinstance(nest, Pointwise)}
    return {**own, **group.inlined}


def is_register(group: Group, buffer: str) -> bool:
    """Is it a reduction of the group with one value per point, read as a scalar by others?"""
    return any(
        nest.buffer == buffer and not isinstance(nest, Pointwise) and not inner_axes(group, nest)
        for nest in group.nests
    )


def inner_axes(group: Group, nest: Nest) -> tuple[Axis, ...]:
    """The axes of a nest's result that are not the group's: its own loop per point."""
    return tuple(a for a in nest.axes if a not in group.visited and a.size != 1)
