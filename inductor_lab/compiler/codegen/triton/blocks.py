"""Splits a loop tree into blocks.  A Triton program computes one block.

    for i0 < 8192: for i1 < 768:          xindex: XBLOCK points of the flattened outer loops
      t = ...                        →
      for j0 < 512: acc += ...            rindex: a row of 512 in one block, or RBLOCK at a time

Inductor: `codegen/triton.py`, `IterationRangesRoot`; `runtime/triton_heuristics.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from inductor_lab.compiler.codegen.kernel import Parameter
from inductor_lab.compiler.codegen.tree.loop_tree import Init, Local, Stmt, Store
from inductor_lab.compiler.codegen.tree.visit import walk
from inductor_lab.compiler.codegen.triton.block_loops import (
    flat_indices,
    inner_loops,
    outer_loops,
    reread_buffers,
    strides_favour_points,
    unit_axis,
)
from inductor_lab.compiler.codegen.triton.shared_rows import split_row
from inductor_lab.compiler.ir.gpu_sizes import LONGEST_HELD, ROW_ELEMENTS
from inductor_lab.compiler.ir.index import (
    Axis,
    Size,
    add_sizes,
    exact_ratio,
    hint,
    is_int,
    mul_sizes,
    product,
)
from inductor_lab.compiler.ir.ops import ATOMICS
from inductor_lab.compiler.ir.program import Buffer, Scatter
from inductor_lab.compiler.schedule.facts import real_axes
from inductor_lab.compiler.schedule.schedule import Group

POINTWISE = ((1 << 20, 1024, 4), (1 << 17, 512, 4), (1 << 14, 256, 4), (0, 128, 4))
"""(minimum number of points, XBLOCK, warps).  First fill the GPU, then give each thread more work.

The sizes in this file were chosen together, not measured one by one.  After a change, run `python
-m benchmarks.gpu` (benchmarks/RESULTS.md has the results on an H200)."""

MOST_POINTS = 256
"""XBLOCK for very short columns."""

ROLLED_ROW = 2048
"""RBLOCK for a long contiguous row."""

ROLLED_REREAD = ((24 * 1024, 8192), (12 * 1024, 4096), (0, ROLLED_ROW))
"""(minimum number of bytes of a row that several loops read, RBLOCK).  Fewer large programs run at
the same time, so that their rows are still in the caches at the next read."""

ROLLED_LONE_ROW = 8192
FEW_ROWS = 512
"""Fewer rows than this leave most of the GPU idle, so each row is read in larger blocks."""

COLUMNS = ((48 << 10, 64, 8, 32), (1 << 12, 64, 32, 32), (0, 16, 128, 128))
"""(minimum number of points, XBLOCK, RBLOCK, longest row in one block) if memory is contiguous
across rows.  Many small programs then read faster than a few large ones."""

ELEMENTS_PER_WARP = 256
"""Eight elements per thread: two 16-byte accesses of float32."""

MOST_WARPS, MOST_WARPS_REREAD = 16, 32
"""The maximum number of warps of a program, and of a program whose loops read a row repeatedly."""

TILE = 32
"""The side of a tile.  Along both axes, it is a full 128-byte line of float32."""

LARGE_TILE, LARGE_TILE_WARPS = 64, 8
MANY_TILES = 1024
"""If there are at least this many large tiles, large tiles are used.  One replaces four."""

WIDE_TILE, MOST_IDLE = 1024, 0.125
"""The elements of a tile without transposed accesses, which covers as much of a row as possible,
and the maximum fraction of its lanes that can be beyond the end of the row."""

MOST_TILES = 65_535
"""The maximum size of the second dimension of a grid."""

INT32_REACH = 1 << 31


class Cover(Enum):
    """How blocks cover a row."""

    WHOLE = "one block"
    ROLLED = "a loop over blocks"
    TILED = "the second dimension of the grid"
    SHARED = "adjacent programs, one block each"


@dataclass(frozen=True, slots=True)
class Row:
    """The second block dimension: all inner loops with the same extent, or an outer loop of a tile.

    `prefix` starts its names (`rindex`, `rmask`).  `block_name` is the constant (`RBLOCK`).
    """

    prefix: str
    extent: Size
    block: int
    cover: Cover

    @property
    def block_name(self) -> str:
        return f"{self.prefix.upper()}BLOCK"

    @property
    def axis(self) -> Axis:
        """One axis for all loops with this extent."""
        return Axis(f"{self.prefix}index", self.extent)

    @property
    def parts(self) -> int:
        """The number of blocks of a shared row."""
        assert isinstance(self.extent, int), "only rows of static length are shared"
        return -(-self.extent // self.block)

    @property
    def masked(self) -> bool:
        """Can a block reach beyond the end?"""
        return is_int(self.extent, 0) or exact_ratio(self.extent, self.block) is None


@dataclass(frozen=True)
class Blocks:
    """The outer loops, flattened to `xnumel` points with XBLOCK points per program, and the rows.

    `tiled` is the outer loop that is the second dimension of a tile.  It is not among the points.
    """

    outer: tuple[Axis, ...]
    body: tuple[Stmt, ...]
    xblock: int
    rows: Mapping[Size, Row]
    warps: int
    tiled: Axis | None = None

    @property
    def xnumel(self) -> Size:
        return product(axis.size for axis in self.outer)

    @property
    def masked(self) -> bool:
        return exact_ratio(self.xnumel, self.xblock) is None

    @property
    def elements(self) -> int:
        """The elements of the largest block of a program."""
        return self.xblock * max((row.block for row in self.rows.values()), default=1)

    @property
    def constants(self) -> dict[str, int]:
        """The compile-time constants of the kernel."""
        rows = {row.block_name: row.block for row in self.rows.values()}
        return {"XBLOCK": self.xblock, **rows}

    @property
    def shared(self) -> Row | None:
        """The row that several programs share, or None."""
        return next((row for row in self.rows.values() if row.cover is Cover.SHARED), None)

    @property
    def words(self) -> int:
        """The number of results that the programs of a shared row exchange.

        There is one for each part of each reduction.
        """
        kept = sum(isinstance(stmt, Init) for stmt in walk(self.body))
        return kept * self.shared.parts if self.shared is not None else 0

    @property
    def xaxis(self) -> Axis:
        """One axis for all outer loops."""
        return Axis("xindex", self.xnumel)


MOST_ELEMENTS_PER_THREAD = 64
"""The limit for candidate blocks.  A thread does not have registers for more elements."""


def alternatives(blocks: Blocks) -> list[Blocks]:
    """Return other block sizes for the same loops, as candidates for tuning.

    Blocks have half, two and four times the size, and half and twice the number of warps.
    """
    found = [blocks]
    for step in (-1, 0, 1, 2) if blocks.shared is None else ():
        cut = _scaled(blocks, step)
        most = 32 * MOST_ELEMENTS_PER_THREAD
        for warps in (cut.warps // 2, cut.warps, cut.warps * 2):
            other = replace(cut, warps=warps)
            fits = 1 <= warps <= MOST_WARPS_REREAD and cut.elements <= warps * most
            if fits and other not in found:
                found.append(other)
    return found[1:]


def _scaled(blocks: Blocks, step: int) -> Blocks:
    """Scale blocks by `2**step`, up to the extent of the loops.

    If there are rolled rows, RBLOCK is scaled, otherwise XBLOCK.
    """

    def scaled(block: int, whole: Size) -> int:
        larger = block << step if step > 0 else block >> -step
        return min(max(larger, 1), power_of_2(max(hint(whole, 1 << 20), 1)))

    rolled = {size: row for size, row in blocks.rows.items() if row.cover is Cover.ROLLED}
    if not rolled:
        return replace(blocks, xblock=scaled(blocks.xblock, blocks.xnumel))
    longer = {size: replace(row, block=scaled(row.block, size)) for size, row in rolled.items()}
    return replace(blocks, rows={**blocks.rows, **longer})


def with_atomics(group: Group, buffers: Mapping[str, Buffer]) -> Group:
    """Make the points of a scatter parallel if there is an atomic operation for it.

    If several plain stores write to the same place on a GPU, any of them can win, as in eager mode.
    """
    nest = group.nests[0]
    if not isinstance(nest, Scatter):
        return group
    atomic = nest.kind == "store" or buffers[nest.buffer].dtype in ATOMICS[nest.kind]
    return replace(group, axes=real_axes(nest.axes)) if atomic else group


def blocks_of(tree: tuple[Stmt, ...], *, tiles: bool = True, shared: bool = False) -> Blocks:
    """Split a loop tree into outer loops and a body, and choose the block sizes.

    Without `tiles`, the grid has one dimension.  With `shared`, programs can share a row.
    """
    outer, body = outer_loops(tree)
    xnumel = product(axis.size for axis in outer)
    extents = list(dict.fromkeys(product(a.size for a in axes) for axes, _ in inner_loops(body)))
    reread = reread_buffers(body) if extents else {}
    if shared and (cut := split_row(outer, body, extents, reread)):
        part, warps = cut
        return Blocks(outer, body, 1, {extents[0]: Row("r", extents[0], part, Cover.SHARED)}, warps)
    if extents:
        nbytes = sum(dtype.itemsize for dtype in reread.values())
        return _blocks_of_rows(outer, body, extents, nbytes)
    tile = _tile(outer, body) if tiles else None
    if tile is not None:
        return tile
    points = hint(xnumel, 1 << 20)
    xblock, warps = next((x, w) for least, x, w in POINTWISE if points >= least)
    xblock = min(xblock, power_of_2(max(points, 1)))
    return Blocks(outer, body, xblock, {}, max(1, min(warps, xblock // 32)))


def _tile(outer: tuple[Axis, ...], body: tuple[Stmt, ...]) -> Blocks | None:
    """Return a tile of two loops if buffers are contiguous along different loops.

    The loop along which the stores are contiguous becomes the row.  The other loop becomes the last
    of the points, so that every access is contiguous within the tile.  A value that depends only on
    the other loop (the bias of a channel) is read once for a long piece of the row.
    """
    places = [s.index for s in walk(body) if isinstance(s, Store)]
    if not all(index.is_affine for index in places):
        return None
    stores = {unit_axis(index, outer): None for index in places}
    read = [(unit_axis(index, outer), index) for index in flat_indices(body)]
    across = [a for a, _ in read if a and a not in stores and hint(a.size, TILE) >= TILE]
    row = next((a for a in stores if a is not None), None)
    if row is None or not across or not isinstance(row.size, int):
        return None
    if not TILE <= row.size <= TILE * MOST_TILES:
        return None
    transposed = [a for a, index in read if a in across and row in index.axes()]
    last = (transposed or across)[0]
    points = (*(axis for axis in outer if axis not in (row, last)), last)
    if transposed:
        side, warps = _side_of_tile(hint(last.size), hint(product(axis.size for axis in outer)))
        sides = side, min(side, power_of_2(row.size))
    else:
        piece = _piece_of_row(row.size)
        sides, warps = (WIDE_TILE // piece, piece), WIDE_TILE // ELEMENTS_PER_WARP
    rows = {row.size: Row("y", row.size, sides[1], Cover.TILED)}
    return Blocks(points, body, sides[0], rows, warps, row)


def _piece_of_row(length: int) -> int:
    """Return the longest piece with few idle lanes."""
    pieces = (WIDE_TILE >> step for step in range((WIDE_TILE // TILE).bit_length()))
    return next((n for n in pieces if -length % n <= MOST_IDLE * length), TILE)


def _side_of_tile(length: int, points: int) -> tuple[int, int]:
    """Return the side of a tile along a loop of `length`, and its number of warps."""
    if length >= LARGE_TILE and points >= MANY_TILES * LARGE_TILE**2:
        return LARGE_TILE, LARGE_TILE_WARPS
    return TILE, TILE * TILE // ELEMENTS_PER_WARP


def _blocks_of_rows(
    outer: tuple[Axis, ...], body: tuple[Stmt, ...], extents: list[Size], reread: int
) -> Blocks:
    """Return blocks of rows; several loops read `reread` bytes of each element."""
    xblock, sizes = _row_blocks(body, outer, extents, reread)
    letters = ["r"] if len(extents) == 1 else [f"r{k}_" for k in range(len(extents))]
    rows = {
        extent: Row(letter, extent, block, cover)
        for letter, extent, (block, cover) in zip(letters, extents, sizes, strict=True)
    }
    elements = xblock * max(row.block for row in rows.values())
    rolled = any(row.cover is Cover.ROLLED for row in rows.values())
    most = MOST_WARPS_REREAD if rolled and reread else MOST_WARPS
    warps = max(1, min(most, elements // ELEMENTS_PER_WARP))
    return Blocks(outer, body, xblock, rows, warps)


def _row_blocks(
    body: tuple[Stmt, ...], outer: tuple[Axis, ...], extents: list[Size], reread: int
) -> tuple[int, list[tuple[int, Cover]]]:
    """Return XBLOCK, and for each extent its block size and how blocks cover it."""
    points = hint(product(axis.size for axis in outer), 1 << 12)
    longest = max(power_of_2(max(_length(extent), 1)) for extent in extents)
    kept = any(isinstance(stmt, Local) for stmt in walk(body))  # in registers of one block
    if outer and not kept and strides_favour_points(body, outer):
        xblock, rolled, most = next(sizes for least, *sizes in COLUMNS if points >= least)
        xblock = max(xblock, ROW_ELEMENTS // max(longest, ROW_ELEMENTS // MOST_POINTS))
    else:
        most = LONGEST_HELD  # longer rows are read RBLOCK elements at a time
        xblock = max(1, ROW_ELEMENTS // longest)
        rolled = ROLLED_ROW if points >= FEW_ROWS else ROLLED_LONE_ROW
        if nbytes := max(map(_length, extents)) * reread:
            rolled = next(block for least, block in ROLLED_REREAD if nbytes >= least)
    sizes = []
    for extent in extents:
        block = power_of_2(max(_length(extent), 1))
        if isinstance(extent, int) and block <= most:
            sizes.append((block, Cover.WHOLE))
        else:
            sizes.append((min(block, rolled), Cover.ROLLED))
    return min(xblock, power_of_2(max(points, 1))), sizes


def _length(extent: Size) -> int:
    """Return the number of elements of a row; a row of symbolic length is assumed to be long."""
    return extent if isinstance(extent, int) else ROLLED_ROW


def power_of_2(number: int) -> int:
    """Return the smallest power of two that is at least `number`."""
    return 1 << (number - 1).bit_length()


def reach(
    parameters: Iterable[Parameter], buffers: Mapping[str, Buffer], blocks: Blocks
) -> tuple[Size, ...]:
    """Return the extents that indices must be able to represent: points, and buffer offsets."""
    found: dict[Size, None] = {blocks.xnumel: None}
    found.update((mul_sizes(blocks.xnumel, extent), None) for extent in blocks.rows)
    for parameter in parameters:
        if parameter.buffer is not None:
            layout = buffers[parameter.buffer].layout
            last = layout.offset
            for size, stride in zip(layout.size, layout.stride, strict=True):
                last = add_sizes(last, mul_sizes(size, stride))
            found[last] = None
    return tuple(found)


def index_type(reached: tuple[Size, ...]) -> str:
    """Return `"int32"` if it is sufficient, `"int64"`, or `"INDEX"` if it depends on the launch."""
    if any(isinstance(size, int) and size >= INT32_REACH for size in reached):
        return "int64"
    return "int32" if all(isinstance(size, int) for size in reached) else "INDEX"


def launch_checks(index: str, reached: Sequence[Size], asserts: bool) -> dict[str, Any]:
    """Return the entries of `Kernel.launch` for the checks at launch."""
    checks: dict[str, Any] = {"reach": reached} if index == "INDEX" else {}
    return {**checks, "asserts": True} if asserts else checks
