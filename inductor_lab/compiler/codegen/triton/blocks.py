"""How a loop tree is cut into blocks: what one Triton program computes, and the table of sizes.

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
    read_again,
    strides_favour_points,
    unit_axis,
)
from inductor_lab.compiler.codegen.triton.shared_rows import cut_of_row
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
"""(at least this many points, XBLOCK, warps): fill the machine first, then give threads more.

The sizes of this file are chosen, not measured one by one: change one, and run `python -m
benchmarks.gpu` (benchmarks/RESULTS.md has what they give together on an H200)."""

MOST_POINTS = 256
"""XBLOCK of very short columns."""

ROLLED_ROW = 2048
"""RBLOCK of a long contiguous row."""

ROLLED_AGAIN = ((24 * 1024, 8192), (12 * 1024, 4096), (0, ROLLED_ROW))
"""(at least so many bytes of a row that several loops read, RBLOCK): of large programs few run at a
time, so that their rows are still in the caches when they are read again."""

ROLLED_LONE_ROW = 8192
FEW_ROWS = 512
"""Where fewer rows than this leave most of the GPU idle, each of them is read in larger blocks."""

COLUMNS = ((48 << 10, 64, 8, 32), (1 << 12, 64, 32, 32), (0, 16, 128, 128))
"""(at least this many points, XBLOCK, RBLOCK, the longest that is held whole) where neighbours in
memory are different rows: many small programs read faster than few large ones."""

ELEMENTS_PER_WARP = 256
"""Eight elements a thread: two 16-byte accesses of float32."""

MOST_WARPS, MOST_WARPS_AGAIN = 16, 32
"""Of a program; of one whose loops read a row again."""

TILE = 32
"""Both sides of a tile: a full line of 128 bytes of float32 along either axis."""

LARGE_TILE, LARGE_TILE_WARPS = 64, 8
MANY_TILES = 1024
"""Where there are so many large tiles, each of them takes the place of four."""

WIDE_TILE, MOST_IDLE = 1024, 0.125
"""Elements of a tile that has no transposed access, as long a piece of a row as may be; the part of
its lanes that may be beyond the end of the row."""

MOST_TILES = 65_535
"""Length of the second dimension of a grid."""

INT32_REACH = 1 << 31


class Cover(Enum):
    """How blocks cover a row."""

    WHOLE = "one block holds it"
    ROLLED = "a program loops over blocks of it"
    TILED = "the second dimension of the grid"
    SHARED = "neighbours in the grid hold a part each"


@dataclass(frozen=True, slots=True)
class Row:
    """The second block dimension: all inner loops with one extent, or one outer loop of a tile.

    `prefix` starts its names (`rindex`, `rmask`); `block_name` is the constant (`RBLOCK`).
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
        """All loops of this extent as one."""
        return Axis(f"{self.prefix}index", self.extent)

    @property
    def parts(self) -> int:
        """Blocks that make a row, of one that programs share."""
        assert isinstance(self.extent, int), "rows of unknown length are not shared"
        return -(-self.extent // self.block)

    @property
    def masked(self) -> bool:
        """Can a block reach beyond the end?"""
        return is_int(self.extent, 0) or exact_ratio(self.extent, self.block) is None


@dataclass(frozen=True)
class Blocks:
    """The outer loops flattened to `xnumel` points, XBLOCK a program, and the rows inside.

    `tiled` is the outer loop that is a row of its own and not among the points.
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
        """Of the largest block that a program has at a time."""
        return self.xblock * max((row.block for row in self.rows.values()), default=1)

    @property
    def constants(self) -> dict[str, int]:
        """The compile-time constants of the kernel."""
        rows = {row.block_name: row.block for row in self.rows.values()}
        return {"XBLOCK": self.xblock, **rows}

    @property
    def shared(self) -> Row | None:
        """The row that programs share, if they do."""
        return next((row for row in self.rows.values() if row.cover is Cover.SHARED), None)

    @property
    def words(self) -> int:
        """What the programs of a shared row exchange: the result of each part of each reduction."""
        kept = sum(isinstance(stmt, Init) for stmt in walk(self.body))
        return kept * self.shared.parts if self.shared is not None else 0

    @property
    def xaxis(self) -> Axis:
        """The outer loops as one."""
        return Axis("xindex", self.xnumel)


MOST_ELEMENTS_PER_THREAD = 64
"""Of a block that a measurement tries: registers for more are not there."""


def others(blocks: Blocks) -> list[Blocks]:
    """What else the same loops may be cut into, for a measurement to choose from: blocks of half,
    twice and four times the size, with half and twice the warps."""
    found = [blocks]
    for step in (-1, 0, 1, 2) if blocks.shared is None else ():
        cut = _scaled(blocks, step)
        most = 32 * MOST_ELEMENTS_PER_THREAD
        for warps in (cut.warps // 2, cut.warps, cut.warps * 2):
            other = replace(cut, warps=warps)
            fits = 1 <= warps <= MOST_WARPS_AGAIN and cut.elements <= warps * most
            if fits and other not in found:
                found.append(other)
    return found[1:]


def _scaled(blocks: Blocks, step: int) -> Blocks:
    """Blocks `2**step` times as large, as far as there is so much: longer pieces of rows that are
    read in pieces, else more points."""

    def scaled(block: int, whole: Size) -> int:
        larger = block << step if step > 0 else block >> -step
        return min(max(larger, 1), power_of_2(max(hint(whole, 1 << 20), 1)))

    rolled = {size: row for size, row in blocks.rows.items() if row.cover is Cover.ROLLED}
    if not rolled:
        return replace(blocks, xblock=scaled(blocks.xblock, blocks.xnumel))
    longer = {size: replace(row, block=scaled(row.block, size)) for size, row in rolled.items()}
    return replace(blocks, rows={**blocks.rows, **longer})


def with_atomics(group: Group, buffers: Mapping[str, Buffer]) -> Group:
    """Points of a scatter that may meet are independent where the machine has an atomic for them.

    Of several plain stores to one place any may win on a GPU, as in eager.
    """
    nest = group.nests[0]
    if not isinstance(nest, Scatter):
        return group
    atomic = nest.kind == "store" or buffers[nest.buffer].dtype in ATOMICS[nest.kind]
    return replace(group, axes=real_axes(nest.axes)) if atomic else group


def blocks_of(tree: tuple[Stmt, ...], *, tiles: bool = True, shared: bool = False) -> Blocks:
    """Cut a loop tree into outer loops and a body, and choose the block sizes.

    Without `tiles`, the grid has one dimension.  Where `shared`, programs may share a row.
    """
    outer, body = outer_loops(tree)
    xnumel = product(axis.size for axis in outer)
    extents = list(dict.fromkeys(product(a.size for a in axes) for axes, _ in inner_loops(body)))
    again = read_again(body) if extents else {}
    if shared and (cut := cut_of_row(outer, body, extents, again)):
        part, warps = cut
        return Blocks(outer, body, 1, {extents[0]: Row("r", extents[0], part, Cover.SHARED)}, warps)
    if extents:
        nbytes = sum(dtype.itemsize for dtype in again.values())
        return _blocks_of_rows(outer, body, extents, nbytes)
    tile = _tile(outer, body) if tiles else None
    if tile is not None:
        return tile
    points = hint(xnumel, 1 << 20)
    xblock, warps = next((x, w) for least, x, w in POINTWISE if points >= least)
    xblock = min(xblock, power_of_2(max(points, 1)))
    return Blocks(outer, body, xblock, {}, max(1, min(warps, xblock // 32)))


def _tile(outer: tuple[Axis, ...], body: tuple[Stmt, ...]) -> Blocks | None:
    """A tile of two loops, where buffers differ in the loop along which they are contiguous.

    The loop along which the stores are contiguous becomes the row, the other one the last of the
    points, so that every access has neighbours in memory within the tile.  What is read along the
    other one alone (a bias of each channel) is read once for a long piece of the row.
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
    """The longest piece with few idle lanes."""
    pieces = (WIDE_TILE >> step for step in range((WIDE_TILE // TILE).bit_length()))
    return next((n for n in pieces if -length % n <= MOST_IDLE * length), TILE)


def _side_of_tile(length: int, points: int) -> tuple[int, int]:
    """The side of a tile along a loop of `length`, and the warps that compute one."""
    if length >= LARGE_TILE and points >= MANY_TILES * LARGE_TILE**2:
        return LARGE_TILE, LARGE_TILE_WARPS
    return TILE, TILE * TILE // ELEMENTS_PER_WARP


def _blocks_of_rows(
    outer: tuple[Axis, ...], body: tuple[Stmt, ...], extents: list[Size], again: int
) -> Blocks:
    """Blocks of rows; several loops read `again` bytes of each element."""
    xblock, sizes = _row_blocks(body, outer, extents, again)
    letters = ["r"] if len(extents) == 1 else [f"r{k}_" for k in range(len(extents))]
    rows = {
        extent: Row(letter, extent, block, cover)
        for letter, extent, (block, cover) in zip(letters, extents, sizes, strict=True)
    }
    elements = xblock * max(row.block for row in rows.values())
    rolled = any(row.cover is Cover.ROLLED for row in rows.values())
    most = MOST_WARPS_AGAIN if rolled and again else MOST_WARPS
    warps = max(1, min(most, elements // ELEMENTS_PER_WARP))
    return Blocks(outer, body, xblock, rows, warps)


def _row_blocks(
    body: tuple[Stmt, ...], outer: tuple[Axis, ...], extents: list[Size], again: int
) -> tuple[int, list[tuple[int, Cover]]]:
    """XBLOCK, and for each extent its block and whether it is held whole."""
    points = hint(product(axis.size for axis in outer), 1 << 12)
    longest = max(power_of_2(max(_length(extent), 1)) for extent in extents)
    kept = any(isinstance(stmt, Local) for stmt in walk(body))  # in registers: one block holds it
    if outer and not kept and strides_favour_points(body, outer):
        xblock, rolled, most = next(sizes for least, *sizes in COLUMNS if points >= least)
        xblock = max(xblock, ROW_ELEMENTS // max(longest, ROW_ELEMENTS // MOST_POINTS))
    else:
        most = LONGEST_HELD  # longer ones are read RBLOCK elements at a time
        xblock = max(1, ROW_ELEMENTS // longest)
        rolled = ROLLED_ROW if points >= FEW_ROWS else ROLLED_LONE_ROW
        if nbytes := max(map(_length, extents)) * again:
            rolled = next(block for least, block in ROLLED_AGAIN if nbytes >= least)
    sizes = []
    for extent in extents:
        block = power_of_2(max(_length(extent), 1))
        if isinstance(extent, int) and block <= most:
            sizes.append((block, Cover.WHOLE))
        else:
            sizes.append((min(block, rolled), Cover.ROLLED))
    return min(xblock, power_of_2(max(points, 1))), sizes


def _length(extent: Size) -> int:
    """The elements of a row; a row of unknown length is taken to be long."""
    return extent if isinstance(extent, int) else ROLLED_ROW


def power_of_2(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << (number - 1).bit_length()


def reach(
    parameters: Iterable[Parameter], buffers: Mapping[str, Buffer], blocks: Blocks
) -> tuple[Size, ...]:
    """The extents that its indices must be able to hold: points, and offsets in each buffer."""
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
    """`"int32"` where it is enough, `"int64"`, or `"INDEX"` if only a launch can tell."""
    if any(isinstance(size, int) and size >= INT32_REACH for size in reached):
        return "int64"
    return "int32" if all(isinstance(size, int) for size in reached) else "INDEX"


def needs_of_launch(counted_in: str, reached: Sequence[Size], asserts: bool) -> dict[str, Any]:
    """Entries of `Kernel.launch` for what a launch has to check."""
    needs: dict[str, Any] = {"reach": reached} if counted_in == "INDEX" else {}
    return {**needs, "asserts": True} if asserts else needs
