"""How a loop tree is cut into blocks: what one Triton program computes, and the table of sizes.

    for i0 < 8192: for i1 < 768:          xindex: XBLOCK points of the flattened outer loops
      t = ...                        →
      for j0 < 512: acc += ...            rindex: a row of 512 in one block, or RBLOCK at a time

Inductor: `codegen/triton.py`, `IterationRangesRoot`; `runtime/triton_heuristics.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inductor_lab.codegen.tidy import expressions, places, walk
from inductor_lab.codegen.tree import Accumulate, Let, Loop, LoopKind, Stmt, When
from inductor_lab.ir.index import Axis, Index, Quotient, Size, exact_ratio, hint, is_int, product

LONGEST_PERSISTENT = 4096
"""Rows up to this length are held in one block; longer ones are read RBLOCK elements at a time."""

POINTWISE = ((1 << 20, 1024, 4), (1 << 17, 512, 4), (1 << 14, 256, 4), (0, 128, 4))
"""(at least this many points, XBLOCK, warps): fill the machine first, then give threads more."""

ROW_ELEMENTS = 1024
"""Elements of a program whose rows are contiguous in memory; short rows share a program."""

MOST_POINTS = 256
"""XBLOCK of very short columns."""

ROLLED_ROW = 2048
"""RBLOCK of a long contiguous row."""

COLUMNS = ((1 << 12, 64, 32), (0, 16, 128))
"""(at least this many points, XBLOCK, RBLOCK) where neighbours in memory are different rows."""

ELEMENTS_PER_WARP = 256
"""Eight elements a thread: two 16-byte accesses of float32."""

MOST_WARPS = 16


@dataclass(frozen=True, slots=True)
class Row:
    """The block dimension of all inner loops with one extent.

    `prefix` starts its names (`rindex`, `rmask`); `block_name` is the constant (`RBLOCK`).
    """

    prefix: str
    extent: Size
    block: int
    persistent: bool

    @property
    def block_name(self) -> str:
        return f"{self.prefix.upper()}BLOCK"

    @property
    def axis(self) -> Axis:
        """All loops of this extent as one."""
        return Axis(f"{self.prefix}index", self.extent)

    @property
    def masked(self) -> bool:
        """Can a block reach beyond the end?"""
        return is_int(self.extent, 0) or exact_ratio(self.extent, self.block) is None


@dataclass(frozen=True)
class Blocks:
    """The outer loops flattened to `xnumel` points, XBLOCK a program, and the rows inside."""

    outer: tuple[Axis, ...]
    body: tuple[Stmt, ...]
    xblock: int
    rows: Mapping[Size, Row]
    warps: int

    @property
    def xnumel(self) -> Size:
        return product(axis.size for axis in self.outer)

    @property
    def masked(self) -> bool:
        return exact_ratio(self.xnumel, self.xblock) is None

    @property
    def constants(self) -> dict[str, int]:
        """The compile-time constants of the kernel."""
        rows = {row.block_name: row.block for row in self.rows.values()}
        return {"XBLOCK": self.xblock, **rows}

    @property
    def xaxis(self) -> Axis:
        """The outer loops as one."""
        return Axis("xindex", self.xnumel)


def blocks_of(tree: tuple[Stmt, ...]) -> Blocks:
    """Cut a loop tree into outer loops and a body, and choose the block sizes."""
    outer, body = _outer(tree)
    xnumel = product(axis.size for axis in outer)
    extents = list(dict.fromkeys(product(a.size for a in axes) for axes, _ in inner_loops(body)))
    if not extents:
        points = hint(xnumel, 1 << 20)
        xblock, warps = next((x, w) for least, x, w in POINTWISE if points >= least)
        xblock = min(xblock, power_of_2(max(points, 1)))
        return Blocks(outer, body, xblock, {}, max(1, min(warps, xblock // 32)))
    xblock, sizes = _row_blocks(body, outer, xnumel, extents)
    letters = ["r"] if len(extents) == 1 else [f"r{k}_" for k in range(len(extents))]
    rows = {
        extent: Row(letter, extent, block, persistent)
        for letter, extent, (block, persistent) in zip(letters, extents, sizes, strict=True)
    }
    elements = xblock * max(row.block for row in rows.values())
    warps = max(1, min(MOST_WARPS, elements // ELEMENTS_PER_WARP))
    return Blocks(outer, body, xblock, rows, warps)


def _outer(tree: tuple[Stmt, ...]) -> tuple[tuple[Axis, ...], tuple[Stmt, ...]]:
    """The independent loops around everything; what is computed between them joins the body."""
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
    """A nest of loops as one: its axes and the statements of one point; None if it is no such nest.

    Values computed between the loops move inside; accumulators started there make it impossible.
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
    """The loops that become block dimensions."""
    for stmt in body:
        if isinstance(stmt, Loop):
            flat = flattened(stmt)
            if flat is not None:
                yield flat
            else:
                yield from inner_loops(stmt.body)


def _row_blocks(
    body: tuple[Stmt, ...], outer: tuple[Axis, ...], xnumel: Size, extents: list[Size]
) -> tuple[int, list[tuple[int, bool]]]:
    """XBLOCK, and for each extent its block and whether it is held whole."""
    points = hint(xnumel, 1 << 12)
    longest = max(power_of_2(hint(extent, ROLLED_ROW)) for extent in extents)
    if outer and _strides_favour_points(body, outer):
        xblock, most = next((x, r) for least, x, r in COLUMNS if points >= least)
        xblock = max(xblock, ROW_ELEMENTS // max(longest, ROW_ELEMENTS // MOST_POINTS))
    else:
        most = LONGEST_PERSISTENT
        xblock = max(1, ROW_ELEMENTS // longest)
    sizes = []
    for extent in extents:
        persistent = isinstance(extent, int) and power_of_2(max(extent, 1)) <= most
        whole = power_of_2(max(hint(extent, ROLLED_ROW), 1))
        sizes.append((whole if persistent else min(whole, most, ROLLED_ROW), persistent))
    return min(xblock, power_of_2(max(points, 1))), sizes


def _strides_favour_points(body: tuple[Stmt, ...], outer: tuple[Axis, ...]) -> bool:
    """Are neighbouring points neighbours in memory, more often than neighbouring row elements?"""
    votes = 0
    last = outer[-1]
    for axes, inner in inner_loops(body):
        for stmt in walk(inner):
            for index in _flat_indices(stmt):
                along_row = is_int(index.coefficient(axes[-1]), 1)
                across = is_int(index.coefficient(last), 1)
                used = set(index.axes())
                if used & set(axes) and used & set(outer):
                    votes += across - along_row
    return votes > 0


def _flat_indices(stmt: Stmt) -> Iterator[Index]:
    if not isinstance(stmt, Accumulate):
        yield from places(stmt)
    for value in expressions(stmt):
        for load in value.loads():
            yield from load.index


def power_of_2(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << (number - 1).bit_length()


def quotients_may_be_negative(dividend: Index) -> bool:
    """Can this dividend be below 0, so that C's division would differ from ours?"""
    span = dividend.bounds()
    if span is None:
        return not _only_positive(dividend)
    low = span[0]
    return low < 0 if isinstance(low, int) else not low.is_nonnegative


def _only_positive(index: Index) -> bool:
    """Is it a sum of nonnegative multiples of axes, quotients and remainders?"""
    factors = [c for _, c in index.terms] + [index.constant]
    signs = all(c >= 0 if isinstance(c, int) else bool(c.is_nonnegative) for c in factors)
    return signs and all(
        _only_positive(atom.dividend) for atom, _ in index.terms if isinstance(atom, Quotient)
    )
