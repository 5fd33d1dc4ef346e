"""Plan how a loop tree runs on a CPU: which loops are SIMD, which are threaded, width of strips.

Inductor: `CppKernelProxy.codegen_functions` (tiling) and `WorkSharing` in `codegen/cpp.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
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
"""With fewer operations, starting a second thread takes longer than it saves.  Like the other
thresholds in this file, it depends on the machine.  After a change, run `python -m benchmarks.cpu`
(benchmarks/RESULTS.md names the machine of the current figures)."""

ROWS_FOR_THREADS = 16
"""With fewer independent points, the loops inside a point are threaded instead."""

CHUNKS = 32
"""Number of parts of a threaded reduction: fixed, so that sums do not depend on the thread
count."""

BLOCK = 4096
"""Floats per block of a long sum; the sum of blocks stays accurate."""

COLUMN_BLOCK = 512
"""The same for columns, where each sum runs element by element and not in vector lanes."""

SEARCH = 16
"""Assumed number of iterations of a binary search."""

STRIP = 512
"""Columns that are reduced together, row by row."""

SHORT_ROW = 31
"""Longest row that is transposed: from 32 elements on, lanes along the row are as fast (softmax and
layer norm, 3 to 100 elements; one core with AVX-512, GCC 12, November 2026)."""

SUMMED_ROW = 16
"""The same for one reduction that only sums elements of at least four bytes (sums and RMS norms, 8
to 31 elements; cores with AVX2 and AVX-512, GCC 12 and 13, November 2026)."""

RAGGED_ROW, REDUCED_ROW = 63, 127
"""The same for rows with exponentials: RAGGED_ROW if they do not fill cache lines, REDUCED_ROW if
only reductions of them are stored (softmax and log-softmax, 31 to 200 elements; measured as above).
RAGGED_ROW also applies to float16 and bfloat16, whose lanes are slow to start (norms, 16 to 100
elements; with AVX2)."""

MANY_POINTS = 64
"""With at least this many points that read the same rows, several points share a transposed
copy."""

SHORTEST_ROW = 3
"""Shortest row that is transposed if nothing is reduced."""

SHORT_STRIP = 64
"""Number of short rows per strip; it is LINE for few rows, and for long rows that are scanned."""

SCATTER_STRIP = 64
"""The same for scatters: every thread visits all rows."""

TILE = (64, 128)
"""Sizes of a tile: along the axis where the transposed load is contiguous, then innermost."""
SHORTEST_SIDE = 16
"""Smallest trip count of both loops for which tiles are faster."""


class Simd(Enum):
    """The loop along which vector lanes run."""

    POINTS = "points"
    INNER = "inner"
    COLUMNS = "columns"


@dataclass(frozen=True, slots=True)
class CpuPlan:
    """How a loop tree runs.

    simd           the loop along which vector lanes run
    threads        number of outermost point loops that are threaded together (0: none)
    inner_threads  the loops inside a point are threaded
    condition      the work, if it is symbolic: threads are used if it is at least GRAIN
    strip          width of the strips of the last point axis, for COLUMNS
    work           number of operations
    in_team        the code runs inside a parallel region, and all its threads reach it; one thread
                   runs a tree without points
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
        """The longest row that is transposed, if strips are used."""
        return REDUCED_ROW if self.strip <= SHORT_STRIP else SHORT_ROW


@dataclass(frozen=True, slots=True)
class Means:
    """The transformations that the enabled passes provide.

    columns  reduce a strip of columns row by row; transposed_rows: of short rows too
    threads  share loops over points among threads; inner_threads: loops inside a point
    tiles    tile transposed reads
    """

    columns: bool = True
    transposed_rows: bool = True
    threads: bool = True
    inner_threads: bool = True
    tiles: bool = True


ALL_MEANS = Means()


def plan_of(tree: Tree, means: Means = ALL_MEANS) -> CpuPlan:
    """The plan for a tree, if the passes provide these means."""
    plan = _plan(tree, means)
    return plan if means.threads else replace(plan, threads=0)


def _plan(tree: Tree, means: Means) -> CpuPlan:
    points = point_loops(tree)
    inner = any(isinstance(s, Loop) for s in (points[-1].body if points else tree))
    ordered = any(isinstance(s, Loop) and s.kind is LoopKind.ORDERED for s in walk(tree))
    simd, strip = _lanes_of_loops(tree, points, ordered, means) if inner else (Simd.POINTS, STRIP)
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
    if inner and count < ROWS_FOR_THREADS and means.inner_threads:
        return CpuPlan(simd, 0, True, condition, work=work)
    return CpuPlan(simd, _levels(points, simd), False, condition, strip, work)


def loop_over_short_rows(tree: Tree, means: Means) -> Tree:
    """Convert an innermost loop over points to a loop over the elements of a row.

    This applies if there are many rows, the rows are too short for lanes, and the computation takes
    longer than transposing them.
    """

    def change(loop: Loop) -> Tree | None:
        *before, last = loop.body
        if not isinstance(last, Loop) or last.kind is not LoopKind.VECTOR:
            return None
        size, many = hint(last.axis.size, 1024), hint(loop.axis.size, 1024) > LINE
        if not many or not SHORTEST_ROW <= size <= SHORT_ROW or not _takes_long(loop, size):
            return (loop,)
        return (replace(loop, body=(*before, replace(last, kind=LoopKind.SERIAL))),)

    return each_loop(tree, change) if means.columns and means.transposed_rows else tree


def _takes_long(loop: Loop, size: int) -> bool:
    """Is it worth to transpose the rows: is there float16, or are there at least two exponentials?

    GCC generates slow code for float16 in short rows.  Rows of 4 are unrolled, and rows of 8, 16
    and 24 elements of other dtypes fill vectors.  Windows, with masked reads, share columns
    instead.
    """
    if any(isinstance(stmt, When) for stmt in walk(loop.body)):
        return False
    if any(load.dtype in HALF for load in loads_in((loop,))):
        return size > 4
    heavy = (OPS[node.name].flops // 10 for node in nodes_in((loop,)) if isinstance(node, Op))
    return size % 8 > 0 and size != 4 and sum(heavy) > 1


def _lanes_of_loops(
    tree: Tree, points: list[Loop], ordered: bool, means: Means
) -> tuple[Simd, int]:
    """The loops along which lanes run, and the width of strips, if points contain loops."""
    kept = any(isinstance(s, Local) for s in walk(tree))  # sums per row element, stored along rows
    if kept or not means.columns:
        return Simd.INNER, STRIP
    simd = _reduction_simd(points, ordered)
    few = 0 if ordered or simd is Simd.COLUMNS else _side_by_side(points)
    return (Simd.COLUMNS, few) if few else (simd, STRIP)


def _levels(points: list[Loop], simd: Simd) -> int:
    """The number of outermost loops to thread together, so that there are enough iterations."""
    last = len(points) - (simd is not Simd.INNER and len(points) > 1)
    if not points:
        return 0
    count, levels = hint(points[0].axis.size, 1024), 1
    while count < 4 * ROWS_FOR_THREADS and levels < last and len(points[levels - 1].body) == 1:
        count *= hint(points[levels].axis.size, 1024)
        levels += 1
    return levels


def _reduction_simd(points: list[Loop], ordered: bool) -> Simd:
    """Choose between lanes along the innermost loop (INNER) and along the last point axis
    (COLUMNS).

    Take the axis with fewer accesses that jump to another cache line; if equal, the axis with more
    contiguous accesses.  An access that does not depend on the axis costs nothing: `weight[j]` in a
    sum of columns is the same for all columns.  For a scatter, indices that are the same in all
    columns do not count: they are read once per row.
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
    """The number of rows to process together, if lanes along a row do not help.

    They do not help if a row has few elements, or if each element depends on the previous one (a
    scan).  0 if they help, or if there are too few rows.
    """
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
    """Do many outer points read the same rows, as in a computation over pairs?"""
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
    """Is the row too short for lanes along it?

    `loops` are all loops over the row; `again`: many points read the same rows.
    """
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
    """Is there exactly one accumulator, a sum?  A variance has two, which are joined across lanes
    after each row."""
    return [acc.kind for loop in loops for acc in fed_by(loop)] == ["sum"]


def _far_apart(index: Index, axis: Axis) -> bool:
    """Are adjacent elements along the axis in different cache lines?"""
    return hint(index.coefficient(axis)) >= LINE


def tiled_axes(points: list[Loop]) -> tuple[Axis, ...]:
    """The two axes to tile: one along which a load is contiguous, and the innermost axis.

    Without tiles, a transposed load uses one element of a cache line, and the line has been evicted
    when the next element is needed.  Empty if there is no transposed load.
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
    """The indices of loads and stores in the loops of a point, without accesses once per point."""
    loops = tuple(s for s in body if isinstance(s, Loop))
    for load in loads_in(loops):
        yield load.index[0]
    for stmt in walk(loops):
        if isinstance(stmt, Store):
            yield stmt.index


def _work(body: Tree) -> Size:
    """The number of operations; expensive ones count by flops, symbolic sizes stay symbolic."""
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
