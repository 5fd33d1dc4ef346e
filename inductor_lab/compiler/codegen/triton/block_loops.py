"""The loop structure that determines blocks: outer loops, inner loops, and memory accesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Let,
    Loop,
    LoopKind,
    Stmt,
    Store,
    When,
)
from inductor_lab.compiler.codegen.tree.visit import expressions, loads_in, places, walk
from inductor_lab.compiler.ir.expr import Load
from inductor_lab.compiler.ir.index import Axis, Index, hint, is_int, product
from inductor_lab.compiler.ir.row_major import coordinates_at


def outer_loops(tree: tuple[Stmt, ...]) -> tuple[tuple[Axis, ...], tuple[Stmt, ...]]:
    """Return the parallel outermost loops and the body.

    Values that are computed between these loops move into the body.
    """
    axes: list[Axis] = []
    before: list[Stmt] = []
    while True:
        *first, last = tree
        parallel = isinstance(last, Loop) and last.kind in (LoopKind.PARALLEL, LoopKind.VECTOR)
        if not parallel or not all(isinstance(s, Let | When) for s in first):
            return tuple(axes), (*before, *tree)
        assert isinstance(last, Loop)
        before.extend(first)
        axes.append(last.axis)
        tree = last.body


def flattened(loop: Loop) -> tuple[tuple[Axis, ...], tuple[Stmt, ...]] | None:
    """Flatten nested loops to one: return its axes and the statements of one point, or None.

    Values that are computed between the loops move inside.  Loops with accumulators that start
    between them cannot be flattened.
    """
    inside = [s for s in loop.body if isinstance(s, Loop)]
    if not inside:
        return (loop.axis,), loop.body
    *first, last = loop.body
    if (
        len(inside) > 1
        or last is not inside[0]
        or not all(isinstance(s, Let | When) for s in first)
    ):
        return None
    below = flattened(inside[0])
    if below is None:
        return None
    axes, body = below
    return (loop.axis, *axes), (*first, *body)


def inner_loops(body: tuple[Stmt, ...]) -> Iterator[tuple[tuple[Axis, ...], tuple[Stmt, ...]]]:
    """Yield the loops that become block dimensions."""
    for stmt in body:
        if isinstance(stmt, Loop) and stmt.kind is not LoopKind.BISECT:
            flat = flattened(stmt) if stmt.kind is not LoopKind.ORDERED else None
            if flat is not None:
                yield flat
            else:
                yield from inner_loops(stmt.body)


def flat_indices(body: tuple[Stmt, ...]) -> Iterator[Index]:
    """Yield the index of each load and store."""
    for stmt in walk(body):
        if not isinstance(stmt, Accumulate):
            yield from places(stmt)
        for value in expressions(stmt):
            for load in value.loads():
                yield from load.index


@dataclass(frozen=True)
class Place:
    """A load or store in a row.

    The loops over the row are flattened to one axis, `rindex`, so that accesses in different loops
    can be compared.  `loop` is the number of the statement.  `in_row` means that the statement is
    a loop and the index varies along it.
    """

    access: Load | Store
    index: Index
    loop: int
    in_row: bool

    @property
    def buffer(self) -> str:
        return self.access.buffer


def row_places(body: tuple[Stmt, ...]) -> Iterator[Place]:
    """Yield the loads and stores of a body."""
    for number, stmt in enumerate(body):
        flat = flattened(stmt) if isinstance(stmt, Loop) else None
        axes, inside = flat or ((), (stmt,))
        one = coordinates_at(Index.of(Axis("rindex", product(axis.size for axis in axes))), axes)
        found: list[tuple[Load | Store, Index]] = [(x, x.index[0]) for x in loads_in(inside)]
        found += [(store, store.index) for store in walk(inside) if isinstance(store, Store)]
        for access, index in found:
            yield Place(access, index.substitute(one), number, bool(set(axes) & {*index.axes()}))


def reread_buffers(body: tuple[Stmt, ...]) -> dict[str, torch.dtype]:
    """Return the buffers whose row elements are read by more than one loop, with their dtypes."""
    places = (place for place in row_places(body) if place.in_row)
    loads = {(p.buffer, p.access.dtype, p.loop) for p in places if isinstance(p.access, Load)}
    loops = Counter((name, dtype) for name, dtype, _ in loads)
    return {name: dtype for (name, dtype), count in loops.items() if count > 1}


def unit_axis(index: Index, axes: tuple[Axis, ...]) -> Axis | None:
    """Return the axis of `axes` with stride 1."""
    return next((axis for axis in axes if is_int(index.coefficient(axis), 1)), None)


def strides_favour_points(body: tuple[Stmt, ...], outer: tuple[Axis, ...]) -> bool:
    """Are more accesses contiguous along the points than along the row?"""
    votes = 0
    for axes, inner in inner_loops(body):
        for index in flat_indices(inner):
            used = set(index.axes())
            if used & set(axes) and used & set(outer):
                point, element = unit_axis(index, outer[-1:]), unit_axis(index, axes[-1:])
                reached = hint(product(axis.size for axis in used), 1 << 10)
                votes += reached * ((point is not None) - (element is not None))
    return votes > 0
