"""Compute a long sum of floats as a sum of blocks, so that it is as accurate as in eager mode.

    for j0 in 0 .. 10**6:                for j0_block in 0 .. 10**6 by 4096:
        acc0 += x[j0]             →          j0_end = min(j0_block + 4096, 10**6)
                                             block_acc0 = 0
                                             for j0 in j0_block .. j0_end: block_acc0 += x[j0]
                                             acc0 += block_acc0

The error of a sum grows with the number of additions that one element goes through.

Inductor: `cascade_sum` and Welford's method in its C++ headers.
"""

from __future__ import annotations

from inductor_lab.compiler.codegen.cpu.access import LINE
from inductor_lab.compiler.codegen.cpu.accumulators import sums_floats, wide_sums
from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import fed_by
from inductor_lab.compiler.codegen.cpu.plan import BLOCK, COLUMN_BLOCK, Simd
from inductor_lab.compiler.codegen.cpu.strip_mine import strip_mined
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Init,
    Loop,
    LoopKind,
    Stmt,
    Tree,
)
from inductor_lab.compiler.codegen.tree.visit import (
    is_innermost,
    old_if_same,
    rename_accumulators,
    with_body,
)
from inductor_lab.compiler.ir.expr import Temp


def sums(tree: Tree, facts: Facts) -> Tree:
    """Compute long sums of floats in blocks."""
    change = _in_columns if facts.plan.simd is Simd.COLUMNS else _in_rows

    def inside(body: Tree, nested: bool) -> Tree:
        """`nested`: inside another loop that accumulates."""
        new: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Loop) and stmt.kind is LoopKind.REDUCE:
                loop = with_body(stmt, inside(stmt.body, True))
                new += change(loop, nested)
            elif isinstance(stmt, Loop):
                new.append(with_body(stmt, inside(stmt.body, nested)))
            else:
                new.append(stmt)
        return old_if_same(tuple(new), body)

    return inside(tree, False)


def _in_rows(loop: Loop, nested: bool) -> Tree:
    """Sum an innermost loop in blocks.

    Each lane adds only its own elements, so a block may be long.  A short loop inside another
    accumulating loop gets a separate accumulator.
    """
    added, size = _sums_in(loop), loop.axis.size
    block = BLOCK * max(1, wide_sums(loop) // LINE)
    short = isinstance(size, int) and size <= 2 * block
    if not is_innermost(loop) or not added or (short and not nested):
        return (loop,)
    return accumulate_separately(added, loop) if short else _in_blocks(added, loop, block)


def _in_columns(loop: Loop, nested: bool) -> Tree:
    added, size = _sums_in(loop), loop.axis.size
    short = isinstance(size, int) and size <= 2 * COLUMN_BLOCK
    return (loop,) if not added or short else _in_blocks(added, loop, COLUMN_BLOCK)


def _sums_in(loop: Loop) -> list[Accumulate]:
    return [acc for acc in fed_by(loop) if sums_floats(acc)]


def _in_blocks(added: list[Accumulate], loop: Loop, block: int) -> Tree:
    return (strip_mined(loop, block, lambda stretch: accumulate_separately(added, stretch)),)


def accumulate_separately(added: list[Accumulate], loop: Loop, prefix: str = "block") -> Tree:
    """Sum one block in a separate accumulator, which is then added to the total."""
    names = {acc.name: f"{prefix}_{acc.name}" for acc in added}
    return (
        *(Init(names[a.name], a.kind, a.value.dtype, a.origins) for a in added),
        with_body(loop, rename_accumulators(loop.body, names)),
        *(
            Accumulate(a.name, a.kind, Temp(names[a.name], a.value.dtype), None, a.origins)
            for a in added
        ),
    )
