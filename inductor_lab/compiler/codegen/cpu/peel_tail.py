"""Peel the tail of a row: process the last elements with one masked vector register.

    for j0 in 0 .. 200:                  for j0 in 184 .. 200:
        acc0 += exp(x[j0])        →          acc0 += exp(x[j0]) if j0 >= 192 else 0
                                         for j0 in 0 .. 192:
                                             acc0 += exp(x[j0])

GCC does not vectorize the last iterations of a loop with accumulators, and 15 scalar exponentials
take as long as a hundred vectorized ones: a softmax of rows of 127 takes 187 instead of 248 ns per
row (one core with AVX-512, GCC 12, November 2026).  Scalar comparisons wait for each other: the
maximum of a row of 33 takes 8 instead of 20 ns (a core with AVX2, GCC 12, November 2026).  The
last register overlaps the main loop, so that nothing beyond the row is read; a maximum or minimum
may see an element twice.  The tail comes first: a later loop can then load data that one full
register stored; data from two partial stores would arrive later.

Inductor: `CppVecKernel` with `tail_size`, which loads with a mask.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import each_loop, fed_by, has_expensive
from inductor_lab.compiler.codegen.cpu.plan import Simd
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Let,
    Local,
    Loop,
    LoopKind,
    Stmt,
    Store,
    Tree,
    When,
)
from inductor_lab.compiler.codegen.tree.visit import is_innermost, loads_in, walk
from inductor_lab.compiler.ir.expr import Const, Expr, IndexValue, Op
from inductor_lab.compiler.ir.index import Index
from inductor_lab.compiler.ir.ops import neutral

REGISTER = 64
"""Bytes per vector register: a multiple of the register size of every supported machine."""
FEWEST_LANES, SHORTEST_TAIL, LONGEST_ROW = 8, 4, 512
"""Outside these limits there is little to gain (softmax, 33 to 1,000 elements; measured as above).
"""
ONCE = ("sum", "prod")
"""Kinds of accumulators that must not see an element twice."""


def peel_tails(tree: Tree, facts: Facts) -> Tree:
    """Process the last iterations of reductions with one vector register."""
    if facts.plan.simd is Simd.COLUMNS:
        return tree
    arrays = {stmt.name for stmt in walk(tree) if isinstance(stmt, Local)}
    return each_loop(tree, lambda loop: _with_tail(loop, arrays))


def _with_tail(loop: Loop, arrays: set[str]) -> Tree | None:
    begin, stop = loop.begin.constant, loop.stop.constant
    fixed = not loop.begin.terms and not loop.stop.terms and loop.step == 1
    if not (fixed and isinstance(begin, int) and isinstance(stop, int) and stop > begin):
        return None
    compared = all(acc.kind not in ONCE for acc in fed_by(loop))
    if not (has_expensive(loop.body) or compared) or not _may_repeat(loop, arrays):
        return None
    lanes = _lanes(loop)
    while lanes > stop - begin:
        lanes //= 2
    last = stop - (stop - begin) % lanes
    little = stop - last in (0, lanes // 2) if compared else stop - last < SHORTEST_TAIL
    if little or stop - begin > LONGEST_ROW or lanes < FEWEST_LANES:
        return None
    tail = tuple(_masked_before(stmt, last, loop) for stmt in loop.body)
    over = replace(loop, body=tail, begin=Index.constant_of(stop - lanes))
    return (over, replace(loop, end=Index.constant_of(last))) if last > begin else (over,)


def _may_repeat(loop: Loop, arrays: set[str]) -> bool:
    """Is the result the same, except for sums, if some iterations run twice?

    The loop may write to arrays that it does not read.
    """
    if loop.kind is not LoopKind.REDUCE or not is_innermost(loop):
        return False
    free = arrays.difference(load.buffer for load in loads_in(loop.body))
    return all(
        isinstance(stmt, Let | When)
        or (isinstance(stmt, Accumulate) and stmt.position is None and stmt.found is None)
        or (isinstance(stmt, Store) and stmt.kind == "store" and stmt.buffer in free)
        for stmt in walk(loop.body)
    )


def _lanes(loop: Loop) -> int:
    """Lanes per register for the narrowest dtype that the loop loads or accumulates."""
    dtypes = {load.dtype for load in loads_in(loop.body)} | {a.value.dtype for a in fed_by(loop)}
    return REGISTER // min((d.itemsize for d in dtypes if d is not torch.bool), default=4)


def _masked_before(stmt: Stmt, last: int, loop: Loop) -> Stmt:
    """The statement; a sum or product uses its neutral value for elements before `last`."""
    if not isinstance(stmt, Accumulate) or stmt.kind not in ONCE:
        return stmt
    dtype = stmt.value.dtype
    place = IndexValue(Index.of(loop.axis), torch.int64)
    new = Op("ge", (place, Const(last, torch.int64)), torch.bool)
    nothing: Expr = Const(neutral(stmt.kind, dtype), dtype)
    return replace(stmt, value=Op("where", (new, stmt.value, nothing), dtype))
