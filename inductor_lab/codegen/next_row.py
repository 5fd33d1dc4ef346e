"""What is read soon is fetched: the next row while this one is computed, and what a sum adds next.

    for (int64_t j0_wide = 0; j0_wide < 4096; j0_wide += 64) {
        lab_fetch(in0 + 4096 * (i0 + 1) + j0_wide, 64);
        for (j0 = j0_wide; j0 < j0_wide + 64; j0++) sum += lab_exp(in0[4096 * i0 + j0] - acc0);
    }

The first loop over a row waits for memory.  A later one finds the row in the cache, and where it
computes much, memory would be idle meanwhile.

    for (int64_t j0_wide = 0; j0_wide < 16000000; j0_wide += 64) {
        lab_fetch(in0 + j0_wide + 2048, 64);
        for (j0 = j0_wide; j0 < j0_wide + 64; j0++) sum += in0[j0];
    }

A sum adds faster than memory answers.  CPUs fetch ahead by themselves, but stop where a page of
4 KiB ends.  Inductor has no counterpart.
"""

from __future__ import annotations

from itertools import takewhile

from inductor_lab.codegen.cpp_halves import side_by_side
from inductor_lab.codegen.cpu_plan import point_loops
from inductor_lab.codegen.parameters import tree_loads
from inductor_lab.codegen.tidy import has_expensive
from inductor_lab.codegen.tree import Loop, Stmt
from inductor_lab.ir.expr import Load
from inductor_lab.ir.index import Index

AHEAD = 8 * 1024
"""Bytes between what is added and what is fetched: two pages."""


def first_read(tree: tuple[Stmt, ...], loop: Loop) -> list[Load]:
    """What a loop reads side by side, and none before it at the same point has read."""
    points = point_loops(tree)
    seen = _read_before(loop, points[-1].body if points else tree)
    loads = {(load.buffer, load.index[0]): load for load in tree_loads((loop,))}
    return [
        load
        for place, load in loads.items()
        if place not in seen and side_by_side(place[1], loop.axis)
    ]


def next_row(tree: tuple[Stmt, ...], loop: Loop) -> list[Load]:
    """What a loop reads that one before it has read, at the next point; nothing if it is cheap."""
    points = point_loops(tree)
    if not points or not has_expensive(loop.body):
        return []
    point = points[-1]
    seen = _read_before(loop, point.body)
    following = {point.axis: Index.of(point.axis) + Index.constant_of(1)}
    found: dict[tuple[str, Index], Load] = {}
    for load in tree_loads((loop,)):
        index = load.index[0]
        moves = point.axis in index.axes() and side_by_side(index, loop.axis)
        if moves and (load.buffer, index) in seen:
            after = (index.substitute(following),)
            found[load.buffer, index] = Load(load.buffer, after, load.dtype, load.origins)
    return list(found.values())


def _read_before(loop: Loop, body: tuple[Stmt, ...]) -> set[tuple[str, Index]]:
    """What a body reads before the loop, and where."""
    earlier = tuple(takewhile(lambda stmt: stmt is not loop, body))
    return {(load.buffer, load.index[0]) for load in tree_loads(earlier)}
