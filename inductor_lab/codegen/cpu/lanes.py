"""Loops that only sum have enough independent accumulators to hide the latency of an addition.

    for j0 in 0 .. 4100:                 lanes_acc0 = 64 zeros
        acc0 += x[j0]             →      for j0_wide in 0 .. 4096 by 64:
                                             for j0 in j0_wide .. j0_wide + 64:
                                                 lanes_acc0[j0 - j0_wide] += x[j0]
                                         for lane in 0 .. 64: acc0 += lanes_acc0[lane]
                                         for j0 in 4096 .. 4100: acc0 += x[j0]

One vector register adds once in four cycles; eight of them, each cycle twice.  Loops that compute a
lot before they add gain as well: a mean of binary cross entropies takes 540 instead of 1,070 µs
(512 x 1024, one core with AVX-512, GCC 12, November 2026).
Inductor leaves it to the C++ compiler, which keeps one register for each accumulator.
"""

from __future__ import annotations

from dataclasses import replace

from inductor_lab.codegen.cpu.facts import Facts
from inductor_lab.codegen.cpu.loops import each_loop, fed_by
from inductor_lab.codegen.cpu.plan import Simd
from inductor_lab.codegen.tree import (
    Accumulate,
    Bound,
    Held,
    Let,
    Local,
    Loop,
    LoopKind,
    Stmt,
    Store,
    Tree,
    Whole,
)
from inductor_lab.codegen.visit import is_innermost, walk
from inductor_lab.ir.expr import Load
from inductor_lab.ir.index import Axis, Index

WIDE = 64
"""Independent accumulators of a loop that only sums: four registers of 16 floats hide the
latency of an add."""
SHORTEST_WIDE = 1024
"""Trip count from which on this pays (chosen, not measured)."""


def wide_lanes(tree: Tree, facts: Facts) -> Tree:
    """The tree with sums in several registers."""
    if facts.plan.simd is Simd.COLUMNS:
        return tree

    def change(loop: Loop) -> Tree | None:
        if loop.kind is not LoopKind.REDUCE or not is_innermost(loop):
            return None
        width = wide_sums(loop)
        return _widened(loop, width) if width else None

    return each_loop(tree, change)


def wide_sums(loop: Loop) -> int:
    """The number of accumulators that pays for an innermost loop; 0: one register."""
    size, stmts, fed = loop.axis.size, list(walk(loop.body)), fed_by(loop)
    plain = all(isinstance(stmt, Let | Accumulate) or is_plain_store(stmt) for stmt in stmts)
    summed = 1 <= len(fed) <= 2 and all(map(sums_floats, fed))
    is_long = not isinstance(size, int) or size >= SHORTEST_WIDE
    return WIDE // len(fed) if plain and summed and is_long else 0


def _widened(loop: Loop, width: int) -> Tree:
    size, name, fed = loop.axis.size, loop.axis.name, fed_by(loop)
    new: list[Stmt] = []
    if isinstance(size, int) and loop.is_whole:
        tail = Index.constant_of(size // width * width)
    else:
        end = Axis(f"{name}_tail", size)
        new.append(Bound(end, Whole(loop.begin, loop.stop, width)))
        tail = Index.of(end)
    for acc in fed:
        dtype = acc.value.dtype
        new.append(Local(f"lanes_{acc.name}", dtype, (width,), acc.origins, zero=True))
    first = Axis(f"{name}_wide", size)
    place = Index.of(loop.axis) - Index.of(first)
    held = (Held(acc.name, f"lanes_{acc.name}", (place,)) for acc in fed)
    lanes = replace(loop, kind=LoopKind.SERIAL, begin=Index.of(first), end=Index.of(first) + width)
    new.append(Loop(first, LoopKind.REDUCE, (*held, lanes), loop.begin, tail, width))
    lane = Axis("lane", width)
    for acc in fed:
        value = Load(f"lanes_{acc.name}", (Index.of(lane),), acc.value.dtype)
        whole = Accumulate(acc.name, acc.kind, value, None, acc.origins)
        new.append(Loop(lane, LoopKind.REDUCE, (whole,)))
    rest = () if tail == loop.stop else (replace(loop, begin=tail, end=loop.stop),)
    return (*new, *rest)


def sums_floats(acc: Accumulate) -> bool:
    return acc.kind == "sum" and acc.value.dtype.is_floating_point


def is_plain_store(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and stmt.kind == "store"
