"""How a loop tree runs on a CPU: which loop is SIMD, which is threaded, where strips are cut.

Inductor: `CppKernelProxy.codegen_functions` (tiling) and `WorkSharing` in `codegen/cpp.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from math import prod

from inductor_lab.compiler.codegen.cpu.access import LINE
from inductor_lab.compiler.codegen.cpu.loops import (
    each_loop,
    fed_by,
    has_expensive,
    innermost_loops,
    point_loops,
)
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Local,
    Loop,
    LoopKind,
    Store,
    Tree,
    When,
)
from inductor_lab.compiler.codegen.tree.visit import (
    expressions,
    is_innermost,
    loads_in,
    nodes_in,
    walk,
)
from inductor_lab.compiler.ir.expr import Op
from inductor_lab.compiler.ir.index import Axis, Index, Size, hint, is_int
from inductor_lab.compiler.ir.ops import OPS
from inductor_lab.compiler.ir.rules import HALF

GRAIN = 32768
"""Elementary operations below which starting a second thread takes longer than it saves.  Like the
other sizes in this file it depends on the machine.  After a change, run `python -m benchmarks.cpu`
again (benchmarks/RESULTS.md names the machine of the current figures)."""

ROWS_FOR_THREADS = 16
"""Fewer independent points than this, and the loops inside a point are threaded instead."""

CHUNKS = 32
"""Parts of a threaded reduction: fixed, so that a sum does not depend on the number of threads."""

BLOCK = 4096
"""Floats that are summed straight; a longer sum is a sum of such blocks, so it stays accurate."""

COLUMN_BLOCK = 512
"""The same for columns, where a sum goes element by element and not in vector lanes."""

SEARCH = 16
"""Iterations that a binary search is taken to make."""

STRIP = 512
"""Columns that are reduced together, row by row."""

SHORT_ROW = 31
"""Elements up to which a row is a column of a transposed strip: from 32 on a row's own lanes are as
fast (softmax and layer norm, 3 to 100 elements; one core with AVX-512, GCC 12, November 2026)."""

SUMMED_ROW = 16
"""The same where nothing but sums is made, once, of numbers of four bytes or more (sums and RMS
norms, 8 to 31 elements; cores with AVX2 and AVX-512, GCC 12 and 13, November 2026)."""

RAGGED_ROW, REDUCED_ROW = 63, 127
"""The same of rows with exponentials: that do not fill lines, or of which only sums and the like
are kept (softmax and its logarithm, 31 to 200 elements; measured there).  The first holds for all
rows of float16 and bfloat16, whose lanes are slow to start (norms, 16 to 100 elements; with AVX2).
"""

MANY_POINTS = 64
"""Points from which on rows that are the same for all of them are kept transposed for several."""

SHORTEST_ROW = 3
"""Elements from which on they are where nothing is reduced."""

SHORT_STRIP = 64
"""Short rows that are reduced together; of few, and of long ones that are scanned, it is a line."""

SCATTER_STRIP = 64
"""The same where rows are written at computed places: every thread visits all of them."""

TILE = (64, 128)
"""Sides of a tile: along the axis where the transposed load is contiguous, then innermost."""
SHORTEST_SIDE = 16
"""Trip count of either loop below which tiles gain nothing."""


class Simd(Enum):
    """Which loop the vector lanes run along."""

    POINTS = "points"
    INNER = "inner"
    COLUMNS = "columns"


@dataclass(frozen=True, slots=True)
class CpuPlan:
    """`threads` is the number of leading point loops that are threaded together (0: none).

    `inner_threads`: the loops inside a point are threaded.  `condition` is the work in elements
    where it depends on symbols: threads only if it is at least GRAIN.  `strip` is the width of the
    strips of the last point axis, for COLUMNS.  `work` counts operations.  With `in_team` the code
    runs inside a parallel region, all threads of which come by; a tree without points is for one of
    them.
    """

    simd: Simd
    threads: int
    inner_threads: bool
    condition: Size | None
    strip: int = STRIP
    work: Size = 0
    in_team: bool = False

    @property
    def longest_row(self) -> int:
        """Elements up to which a row is transposed where strips are of columns."""
        return REDUCED_ROW if self.strip <= SHORT_STRIP else SHORT_ROW


def plan_of(tree: Tree, off: Set[str] = frozenset()) -> CpuPlan:
    """The plan for a tree, without the passes that are off."""
    points = point_loops(tree)
    inner = any(isinstance(s, Loop) for s in (points[-1].body if points else tree))
    ordered = any(isinstance(s, Loop) and s.kind is LoopKind.ORDERED for s in walk(tree))
    simd, strip = _lanes_of_loops(tree, points, ordered, off) if inner else (Simd.POINTS, STRIP)
    work = _work(tree)
    condition = None if isinstance(work, int) else work
    if isinstance(work, int) and work < GRAIN:
        return CpuPlan(simd, 0, False, None, strip, work)
    if ordered:
        return CpuPlan(simd, _levels(points, simd), False, condition, SCATTER_STRIP)
    sizes = [hint(loop.axis.size, 1024) for loop in points]
    if simd is Simd.COLUMNS and strip == STRIP:
        sizes[-1] = -(-sizes[-1] // STRIP)
    count = prod(sizes)
    if inner and count < ROWS_FOR_THREADS and "parts" not in off:
        return CpuPlan(simd, 0, True, condition, work=work)
    return CpuPlan(simd, _levels(points, simd), False, condition, strip, work)


def with_rows(tree: Tree, off: Set[str]) -> Tree:
    """The tree with an innermost loop over points as a loop over the elements of a row, if there
    are many rows, too short for lanes, and what is computed takes longer than to transpose them."""

    def change(loop: Loop) -> Tree | None:
        *before, last = loop.body
        if not isinstance(last, Loop) or last.kind is not LoopKind.VECTOR:
            return None
        size, many = hint(last.axis.size, 1024), hint(loop.axis.size, 1024) > LINE
        if not many or not SHORTEST_ROW <= size <= SHORT_ROW or not _takes_long(loop, size):
            return (loop,)
        return (replace(loop, body=(*before, replace(last, kind=LoopKind.SERIAL))),)

    return tree if off & {"columns", "turned"} else each_loop(tree, change)


def _takes_long(loop: Loop, size: int) -> bool:
    """Does GCC make slow code of halves in short rows, or are there two exponentials or more?
    Rows of 4 are written out, and in rows of 8, 16 and 24 other numbers fill vectors.  Windows,
    which read under masks, share columns instead."""
    if any(isinstance(stmt, When) for stmt in walk(loop.body)):
        return False
    if any(load.dtype in HALF for load in loads_in((loop,))):
        return size > 4
    heavy = (OPS[node.name].flops // 10 for node in nodes_in((loop,)) if isinstance(node, Op))
    return size % 8 > 0 and size != 4 and sum(heavy) > 1


def _lanes_of_loops(
    tree: Tree, points: list[Loop], ordered: bool, off: Set[str]
) -> tuple[Simd, int]:
    """Which loops lanes run along where points have loops of their own, and the width of strips."""
    kept = any(isinstance(s, Local) for s in walk(tree))  # sums for a row: they lie along it
    if kept or "columns" in off:
        return Simd.INNER, STRIP
    simd = _reduction_simd(points, ordered)
    few = 0 if ordered or simd is Simd.COLUMNS else _side_by_side(points)
    return (Simd.COLUMNS, few) if few else (simd, STRIP)


def _levels(points: list[Loop], simd: Simd) -> int:
    """How many outermost loops to thread together, so that there are iterations enough."""
    last = len(points) - (simd is not Simd.INNER and len(points) > 1)
    if not points:
        return 0
    count, levels = hint(points[0].axis.size, 1024), 1
    while count < 4 * ROWS_FOR_THREADS and levels < last and len(points[levels - 1].body) == 1:
        count *= hint(points[levels].axis.size, 1024)
        levels += 1
    return levels


def _reduction_simd(points: list[Loop], ordered: bool) -> Simd:
    """Along the axis where fewer accesses go from one cache line to the next: the innermost loop's
    or the last point's; then along the one where more are contiguous.  What does not move along an
    axis costs nothing there: `weight[j]` in a sum of columns is one number for all of them.

    Of a scatter the places that are the same in all columns do not count: they are read once a row.
    """
    if not points:
        return Simd.INNER
    if any(isinstance(s, Loop) and s.kind is LoopKind.BISECT for s in points[-1].body):
        return Simd.INNER
    column = points[-1].axis
    rows = {loop.axis for loop in innermost_loops(points[-1].body)}
    fewer_lines = more_contiguous = 0
    for index in _flat_indices(points[-1].body):
        if ordered and column not in index.axes():
            continue
        fewer_lines += any(map(partial(_far_apart, index), rows)) - _far_apart(index, column)
        more_contiguous += is_int(index.coefficient(column), 1)
        more_contiguous -= any(is_int(index.coefficient(row), 1) for row in rows)
    enough = hint(column.size, 1024) >= 8
    by_column = (fewer_lines, more_contiguous) > (0, 0)
    return Simd.COLUMNS if by_column and enough else Simd.INNER


def _side_by_side(points: list[Loop]) -> int:
    """How many rows go side by side, since lanes along a row are of no use: it has few elements, or
    each depends on the one before.  0 where they are of use, or there are too few rows."""
    rows = hint(points[-1].axis.size, 1024) if points else 0
    if rows <= LINE:
        return 0
    loops = [stmt for stmt in points[-1].body if isinstance(stmt, Loop)]
    kinds = {loop.kind for loop in loops} - {LoopKind.SERIAL}
    fed = [(loop.kind, acc.kind) for loop in loops for acc in fed_by(loop)]
    if not loops or kinds - {LoopKind.REDUCE, LoopKind.SCAN} or (LoopKind.SCAN, "sum") in fed:
        return 0
    again = _are_read_again(points)
    if all(is_innermost(s) and _is_short(s, loops, again) for s in loops):
        return SHORT_STRIP if rows > SHORT_STRIP else LINE
    return LINE if kinds == {LoopKind.SCAN} else 0


def _are_read_again(points: list[Loop]) -> bool:
    """Are the rows that go side by side the same at each of many points, as of pairs?"""
    if len(points) < 2:
        return False
    outer, last = points[-2:]
    if len(outer.body) > 1 or hint(outer.axis.size, 1024) < MANY_POINTS:
        return False
    rows = {loop.axis for loop in innermost_loops(last.body)}
    axes = (set(load.index[0].axes()) for load in loads_in(last.body))
    several = [found for found in axes if last.axis in found and rows & found]
    return bool(several) and not any(outer.axis in found for found in several)


def _is_short(row: Loop, loops: list[Loop], again: bool) -> bool:
    """Has it too few elements for lanes of its own?  `loops` are all over the row, which is read
    `again` at other points."""
    size, inside = hint(row.axis.size, 1024), tuple(loops)
    stored = {stmt.value.dtype for stmt in walk(inside) if isinstance(stmt, Store)}
    dtypes = stored.union(load.dtype for load in loads_in(inside))
    heavy, ragged = has_expensive(inside), size % LINE > 0
    longest = SHORT_ROW
    if again or (heavy and not stored):
        longest = REDUCED_ROW
    elif (heavy and ragged) or (dtypes.intersection(HALF) and (stored or ragged)):
        longest = RAGGED_ROW
    elif not heavy and _sums_once(loops) and all(dtype.itemsize >= 4 for dtype in dtypes):
        longest = SUMMED_ROW
    return size <= longest


def _sums_once(loops: list[Loop]) -> bool:
    """Is one of them a reduction, and it has nothing but sums?"""
    fed = [acc.kind for loop in loops for acc in fed_by(loop)]
    reduced = [loop for loop in loops if loop.kind is LoopKind.REDUCE]
    return len(reduced) == 1 and set(fed) == {"sum"}


def _far_apart(index: Index, axis: Axis) -> bool:
    """Are neighbours along the axis in different cache lines?"""
    return hint(index.coefficient(axis)) >= LINE


def tiled_axes(points: list[Loop]) -> tuple[Axis, ...]:
    """The two axes to cut in tiles: one along which a load is contiguous, and the innermost one.

    Without tiles a transposed load takes one element of a cache line and comes back for the next
    when the line is gone.  Empty where nothing is transposed.
    """
    if len(points) < 2:
        return ()
    last = points[-1].axis
    for outer, loop in enumerate(points[:-1]):
        perfect = all(len(p.body) == 1 for p in points[outer:-1])
        large = min(hint(loop.axis.size, 1024), hint(last.size, 1024)) >= SHORTEST_SIDE
        if perfect and large:
            for load in loads_in((points[-1],)):
                index = load.index[0]
                strided = hint(index.coefficient(last)) > 1
                if strided and is_int(index.coefficient(loop.axis), 1):
                    return loop.axis, last
    return ()


def _flat_indices(body: Tree) -> Iterator[Index]:
    """Where the loops of a point read and write; what is done once a point does not matter."""
    loops = tuple(s for s in body if isinstance(s, Loop))
    for load in loads_in(loops):
        yield load.index[0]
    for stmt in walk(loops):
        if isinstance(stmt, Store):
            yield stmt.index


def _work(body: Tree) -> Size:
    """Operations of a tree; expensive ones count by their flops, symbolic extents stay symbolic."""
    total: Size = 0
    for stmt in body:
        if isinstance(stmt, Loop):
            inside = _work(stmt.body)
            total = total + inside * (SEARCH if stmt.kind is LoopKind.BISECT else stmt.axis.size)
        elif isinstance(stmt, Accumulate | Store):
            total = total + 1
        for value in expressions(stmt):
            heavy = (OPS[n.name].flops for n in value.walk() if isinstance(n, Op))
            total = total + sum(flops // 10 for flops in heavy)
    return total
