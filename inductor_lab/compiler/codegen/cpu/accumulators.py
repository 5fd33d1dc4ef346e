"""Use enough independent accumulators in a sum to hide the latency of an addition.

    for j0 in 0 .. 4100:                 lanes_acc0 = 64 zeros
        acc0 += x[j0]             →      for j0_wide in 0 .. 4096 by 64:
                                             for j0 in j0_wide .. j0_wide + 64:
                                                 lanes_acc0[j0 - j0_wide] += x[j0]
                                         for lane in 0 .. 64: acc0 += lanes_acc0[lane]
                                         for j0 in 4096 .. 4100: acc0 += x[j0]

With one vector register, a core adds once every four cycles; with eight registers, twice per cycle.
Loops that compute a lot before they add also gain: a mean of binary cross entropies takes 540
instead of 1,070 µs (512 x 1024, one core with AVX-512, GCC 12, November 2026).
A loop that sums short rows has one accumulator per element of a row, so that lanes are added once
after the loop, and not in each row:

    for j0 in 0 .. 33:                   lanes_acc0 = 19 zeros
        block_acc0 = 0                   for j0 in 0 .. 33:
        for j1 in 0 .. 19:        →          for j1 in 0 .. 19:
            block_acc0 += x[j0, j1]              lanes_acc0[j1] += x[j0, j1]
        acc0 += block_acc0               for lane in 0 .. 19: acc0 += lanes_acc0[lane]

Inductor leaves this to the C++ compiler, which uses one register per accumulator.
"""

from __future__ import annotations

from dataclasses import replace

from inductor_lab.compiler.codegen.cpu.access import LINE
from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import each_loop, fed_by, has_expensive
from inductor_lab.compiler.codegen.cpu.plan import Simd
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Bound,
    ElementAlias,
    Init,
    LastFullBlock,
    Let,
    Local,
    Loop,
    LoopKind,
    Stmt,
    Store,
    Tree,
)
from inductor_lab.compiler.codegen.tree.visit import is_innermost, loads_in, temps_read, walk
from inductor_lab.compiler.ir.expr import Load, Temp
from inductor_lab.compiler.ir.index import Axis, Index

WIDE = 64
"""Number of independent accumulators: four registers of 16 floats hide the latency of an add."""
SHORTEST_WIDE = 1024
"""Smallest trip count for which this is faster (chosen, not measured)."""
ENOUGH_REGISTERS = 4
"""Registers of one loop that hide the latency of an add: a variance in double of float32 has two
for its sum and two for its squares, and takes 103 instead of 116 us with these (64 x 4096, one core
with AVX2, GCC 12, November 2026)."""
SHORTEST_LANES = 4
"""Smallest row length for which vector lanes run along the row."""
MOST_ROWS = 1024
"""Maximum number of rows that are summed lane by lane: each element goes through as many additions.
"""


def widen_sums(tree: Tree, facts: Facts) -> Tree:
    """Accumulate sums in several vector registers."""
    if facts.plan.simd is Simd.COLUMNS:
        return tree

    def change(loop: Loop) -> Tree | None:
        if loop.kind is not LoopKind.REDUCE:
            return None
        if not is_innermost(loop):
            return _of_short_rows(loop)
        width = wide_sums(loop)
        return _widened(loop, width) if width else None

    return each_loop(tree, change)


def wide_sums(loop: Loop) -> int:
    """The best number of accumulators for an innermost loop; 0: one register."""
    size, stmts, fed = loop.axis.size, list(walk(loop.body)), fed_by(loop)
    plain = all(isinstance(stmt, Let | Accumulate) or is_plain_store(stmt) for stmt in stmts)
    summed = 1 <= len(fed) <= 2 and all(map(sums_floats, fed))
    is_long = not isinstance(size, int) or size >= SHORTEST_WIDE
    if not (plain and summed and is_long) or _registers(loop) >= ENOUGH_REGISTERS:
        return 0
    return WIDE // len(fed)


def _registers(loop: Loop) -> int:
    """Vector registers that hold the accumulators of a loop over full vectors of what it loads."""
    narrowest = min((load.dtype.itemsize for load in loads_in((loop,))), default=8)
    return sum(max(1, acc.value.dtype.itemsize // narrowest) for acc in fed_by(loop))


def _widened(loop: Loop, width: int) -> Tree:
    size, name, fed = loop.axis.size, loop.axis.name, fed_by(loop)
    new: list[Stmt] = [_array(acc, width) for acc in fed]
    if isinstance(size, int) and loop.is_whole:
        tail = Index.constant_of(size // width * width)
    else:
        end = Axis(f"{name}_tail", size)
        new.append(Bound(end, LastFullBlock(loop.begin, loop.stop, width)))
        tail = Index.of(end)
    first = Axis(f"{name}_wide", size)
    place = Index.of(loop.axis) - Index.of(first)
    held = (ElementAlias(acc.name, f"lanes_{acc.name}", (place,)) for acc in fed)
    lanes = replace(loop, kind=LoopKind.SERIAL, begin=Index.of(first), end=Index.of(first) + width)
    new.append(Loop(first, LoopKind.REDUCE, (*held, lanes), loop.begin, tail, width))
    new += (_total(acc, width) for acc in fed)
    rest = () if tail == loop.stop else (replace(loop, begin=tail, end=loop.stop),)
    return (*new, *rest)


def _of_short_rows(loop: Loop) -> Tree | None:
    """Rewrite a loop that sums short rows, each in a separate accumulator (`sums.py`)."""
    inits = [stmt for stmt in loop.body if isinstance(stmt, Init)]
    totals = [stmt for stmt in loop.body if isinstance(stmt, Accumulate)]
    lets = tuple(stmt for stmt in loop.body if isinstance(stmt, Let))
    rows = [stmt for stmt in loop.body if isinstance(stmt, Loop)]
    if len(rows) != 1 or len(inits) + len(totals) + len(lets) + 1 < len(loop.body):
        return None
    (row,) = rows
    if row.kind is not LoopKind.REDUCE or not is_innermost(row) or not row.is_whole:
        return None
    width, fed = row.axis.size, fed_by(row)
    if not isinstance(width, int) or not SHORTEST_LANES <= width <= WIDE:
        return None
    if width % LINE and has_expensive(row.body):  # the end of the row in one register is faster
        return None
    names = {acc.name for acc in fed}
    added = {stmt.value.name for stmt in totals if isinstance(stmt.value, Temp)}
    apart = names == added == {init.name for init in inits} and len(totals) == len(fed)
    apart = apart and not any(temp.name in names for let in lets for temp in temps_read(let))
    few = isinstance(loop.axis.size, int) and loop.axis.size <= MOST_ROWS
    if not (apart and few and all(map(sums_floats, (*fed, *totals)))):
        return None
    held = (ElementAlias(a.name, f"lanes_{t.name}", (Index.of(row.axis),))
            for t in totals for a in fed if t.value == Temp(a.name, a.value.dtype))  # fmt: skip
    lanes = replace(loop, body=(*lets, *held, replace(row, kind=LoopKind.SERIAL)))
    arrays = (_array(total, width) for total in totals)
    return (*arrays, lanes, *(_total(total, width) for total in totals))


def _array(acc: Accumulate, width: int) -> Local:
    return Local(f"lanes_{acc.name}", acc.value.dtype, (width,), acc.origins, zero=True)


def _total(acc: Accumulate, width: int) -> Loop:
    """Add the lanes of an accumulator."""
    lane = Axis("lane", width)
    value = Load(f"lanes_{acc.name}", (Index.of(lane),), acc.value.dtype)
    return Loop(lane, LoopKind.REDUCE, (Accumulate(acc.name, acc.kind, value, None, acc.origins),))


def sums_floats(acc: Accumulate) -> bool:
    return acc.kind == "sum" and acc.value.dtype.is_floating_point


def is_plain_store(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and stmt.kind == "store"
