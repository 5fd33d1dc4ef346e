"""Decides when several Triton programs share a row, so that values are read once into registers.

    rpart = tl.program_id(0) % 32                       the part of the row
    t0 = tl.load(in0 + (rindex + 131072 * xindex))      read once, used by every later loop
    acc0_part = lab.row_max(t0)
    acc0 = lab.row_max(lab.of_all_parts(acc0_part, exchange + 64 * xindex, rpart, 32, 32, ...))

A program publishes the result of its part, and waits for the results of the other programs of its
row.  These are adjacent in the grid.  A GPU starts programs in order, and a GPU of sufficient size
can always run all programs of a row at the same time (single-pass scans rely on this too).

Merrill and Garland: Single-pass parallel prefix scan with decoupled look-back (2016).
Inductor: `cooperative_reductions`, which starts as many programs as the GPU can run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Init,
    Loop,
    LoopKind,
    Stmt,
    Store,
)
from inductor_lab.compiler.codegen.tree.visit import walk
from inductor_lab.compiler.codegen.triton.block_loops import row_places, strides_favour_points
from inductor_lab.compiler.ir.expr import Load
from inductor_lab.compiler.ir.gpu_sizes import (
    EXCHANGED,
    GPU_PARTS,
    LONGEST_HELD,
    LONGEST_SHARED,
    WINDOW,
)
from inductor_lab.compiler.ir.index import Axis, Index, Size, product

MOST_PARTS = 32
"""The lanes of a warp.  Each lane reads the result of one part."""

PART, PART_OF_WARP = 4096, 2048
"""The elements of a part, unless the row then has too many parts, and the elements per warp (64 in
the registers of each thread).  Parts of 4096 to 32,768 with 1024 to 4096 per warp were measured on
an H100 and an H200 (`python -m benchmarks.gpu`, 2026-11-26); these were the fastest."""

CACHED_ROW, CACHED_PIECES = 64 * 1024, 32 * 1024
"""The largest row, in bytes, that is still in the caches of a GPU at the second read: contiguous,
and in several pieces, which take longer to read."""

ALIGNED = 16
"""In bytes.  Unaligned rows are read element by element, with one register for each address."""

MOST_KEPT = 4
"""The maximum number of buffers with values that stay in registers from one loop to the next."""


ENOUGH_MULTIPROCESSORS = 2 * MOST_PARTS
"""With this many multiprocessors, the programs of a row can run in each of two streams, whatever
their size.  With fewer, programs of two rows could wait for programs that cannot start."""

SHARED_MEMORY = 232_448
"""The maximum shared memory of a program on an H100, in bytes."""


def can_share_rows(device: str) -> bool:
    """Can programs share rows on this device?  Yes if the target GPU is not in this machine."""
    about = _properties(device)
    if about is None:
        return device.startswith("cuda")
    return bool(about.multi_processor_count >= ENOUGH_MULTIPROCESSORS)


def shared_memory(device: str) -> int:
    """Return the maximum shared memory of a program in bytes (for an absent GPU: of an H100)."""
    about = _properties(device)
    return SHARED_MEMORY if about is None else int(about.shared_memory_per_block_optin)


def _properties(device: str) -> Any:
    """Return torch's properties of a GPU, or None for a CPU or a GPU that is not present."""
    index = torch.device(device).index or 0
    here = device.startswith("cuda") and index < torch.cuda.device_count()
    return torch.cuda.get_device_properties(index) if here else None


def split_row(
    outer: tuple[Axis, ...],
    body: tuple[Stmt, ...],
    extents: list[Size],
    reread: Mapping[str, torch.dtype],
) -> tuple[int, int] | None:
    """Return the elements of a part and the warps of its program, or None if rows are not shared.

    Programs share rows that are long and reduced to float32, if several loops read the rows of the
    buffers `reread`.
    """
    sizes = [*extents, product(axis.size for axis in outer)]
    if len(extents) != 1 or not all(isinstance(size, int) for size in sizes):
        return None
    length, rows = sizes
    assert isinstance(length, int) and isinstance(rows, int), "sizes are static"
    nbytes = [length * dtype.itemsize for dtype in reread.values()]
    shared = (
        0 < len(reread) <= MOST_KEPT
        and LONGEST_HELD < length <= LONGEST_SHARED
        and (rows < GPU_PARTS or max(nbytes) > _cached(body, reread))
        and not any(n % ALIGNED for n in nbytes)
        and _only_reduces(body)
        and _most_places(body) < WINDOW
        and _reads_only_own_writes(body)
        and not strides_favour_points(body, outer)
    )
    if not shared:
        return None
    part = PART
    while length > part * MOST_PARTS:
        part *= 2
    return part, part // PART_OF_WARP


def _cached(body: tuple[Stmt, ...], reread: Mapping[str, torch.dtype]) -> int:
    """Return the largest row, in bytes, that is better read a second time than shared.

    Several buffers need more registers than one.
    """
    in_one = all(place.index.is_affine for place in row_places(body))
    return CACHED_ROW if in_one or len(reread) > 1 else CACHED_PIECES


def _most_places(body: tuple[Stmt, ...]) -> int:
    """Return the largest number of places of the row that one element reads in one buffer."""
    loads = (p for p in row_places(body) if p.in_row and isinstance(p.access, Load))
    places = {(place.buffer, place.index) for place in loads}
    return max(Counter(buffer for buffer, _ in places).values(), default=0)


def _only_reduces(body: tuple[Stmt, ...]) -> bool:
    for stmt in walk(body):
        match stmt:
            case Init(kind=kind, dtype=dtype, start=start):
                if kind not in EXCHANGED or dtype != torch.float32 or start:
                    return False
            case Accumulate(position=Index()):
                return False
            case Loop(kind=kind) if kind in (LoopKind.SCAN, LoopKind.ORDERED, LoopKind.BISECT):
                return False
            case Store(kind=kind) if kind != "store":
                return False
    return True


def _reads_only_own_writes(body: tuple[Stmt, ...]) -> bool:
    """In the buffers that a program writes, does it read only elements that it wrote itself?

    Buffers that reuse the storage of an input need no check.  `schedule/memory.py` only lets an
    element be overwritten after all reductions have read it, and programs wait for the reductions.
    A value for the complete row is written by one program.
    """
    places = list(row_places(body))
    written = {place.buffer: place for place in places if isinstance(place.access, Store)}
    return all(
        place == own or (own.in_row and place.index == own.index)
        for place in places
        if (own := written.get(place.buffer)) is not None
    )
