"""Rows that several Triton programs share, so that each value is read once and stays in registers.

    rpart = tl.program_id(0) % 32                       which part of the row
    t0 = tl.load(in0 + (rindex + 131072 * xindex))      read once: every later loop has it
    acc0_part = lab.row_max(t0)
    acc0 = lab.row_max(lab.of_all_parts(acc0_part, exchange + 64 * xindex, rpart, 32, 32, ...))

A program puts the result of its part where the others of its row see it, and waits for theirs.
They wait only for neighbours in the grid: a GPU starts programs in the order of their numbers, and
one of some size always has room for those of a row (single-pass scans rely on the same).

Merrill and Garland: Single-pass parallel prefix scan with decoupled look-back (2016).
Inductor: `cooperative_reductions`, which keeps as many programs as the GPU holds.
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
"""Lanes of a warp: each of them sees the result of one part."""

PART, PART_OF_WARP = 4096, 2048
"""Elements of a part, if a row has not too many else, and of them that a warp holds: 64 in the
registers of each thread.  Parts of 4096 to 32,768 with 1024 to 4096 per warp were measured on an
H100 and an H200 (`python -m benchmarks.gpu`, 2026-11-26); these were the fastest."""

CACHED_ROW, CACHED_PIECES = 64 * 1024, 32 * 1024
"""Bytes of a row that is still in the caches of a GPU when it is read again: in one piece; and in
several, where a second reading takes longer."""

ALIGNED = 16
"""Bytes: rows that begin elsewhere are read element by element, with a register for each place."""

MOST_KEPT = 4
"""Buffers of which something stays in registers from one loop to the next."""


ENOUGH_MULTIPROCESSORS = 2 * MOST_PARTS
"""With so many there is room for the programs of a row in each of two streams, however large these
are: with less, programs of two rows might wait for others that have no room."""

SHARED_MEMORY = 232_448
"""Bytes that a program of an H100 may have for itself."""


def may_share(device: str) -> bool:
    """Do programs share rows there?  Those compiled for a GPU that is not here do."""
    about = _properties(device)
    if about is None:
        return device.startswith("cuda")
    return bool(about.multi_processor_count >= ENOUGH_MULTIPROCESSORS)


def shared_memory(device: str) -> int:
    """Bytes of shared memory that a program may have; of a GPU that is not here those of an H100.
    """
    about = _properties(device)
    return SHARED_MEMORY if about is None else int(about.shared_memory_per_block_optin)


def _properties(device: str) -> Any:
    """What torch knows of a GPU; None of one that is not here, and of a CPU."""
    index = torch.device(device).index or 0
    here = device.startswith("cuda") and index < torch.cuda.device_count()
    return torch.cuda.get_device_properties(index) if here else None


def cut_of_row(
    outer: tuple[Axis, ...],
    body: tuple[Stmt, ...],
    extents: list[Size],
    again: Mapping[str, torch.dtype],
) -> tuple[int, int] | None:
    """Elements of a part, and warps of its program; None if no programs share the rows of this
    body.

    They do if the rows are long, reduced to float32, and several loops read those of the buffers
    `again`.
    """
    sizes = [*extents, product(axis.size for axis in outer)]
    if len(extents) != 1 or not all(isinstance(size, int) for size in sizes):
        return None
    length, rows = sizes
    assert isinstance(length, int) and isinstance(rows, int), "they were found to be numbers"
    nbytes = [length * dtype.itemsize for dtype in again.values()]
    shared = (
        0 < len(again) <= MOST_KEPT
        and LONGEST_HELD < length <= LONGEST_SHARED
        and (rows < GPU_PARTS or max(nbytes) > _cached(body, again))
        and not any(n % ALIGNED for n in nbytes)
        and _only_reduces(body)
        and _most_places(body) < WINDOW
        and _reads_its_own(body)
        and not strides_favour_points(body, outer)
    )
    if not shared:
        return None
    part = PART
    while length > part * MOST_PARTS:
        part *= 2
    return part, part // PART_OF_WARP


def _cached(body: tuple[Stmt, ...], again: Mapping[str, torch.dtype]) -> int:
    """Bytes of a row that is better read again; several buffers take more registers than one."""
    in_one = all(place.index.is_affine for place in row_places(body))
    return CACHED_ROW if in_one or len(again) > 1 else CACHED_PIECES


def _most_places(body: tuple[Stmt, ...]) -> int:
    """Places of the row at which an element reads one buffer."""
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


def _reads_its_own(body: tuple[Stmt, ...]) -> bool:
    """Does a program read only elements that it has written itself of what it writes?

    What lies in the storage of something else that it reads takes no care: there,
    `schedule/memory.py` lets an element be written once all that is reduced has read it, which the
    programs wait for; a value of the whole row is written by one of them.
    """
    places = list(row_places(body))
    written = {place.buffer: place for place in places if isinstance(place.access, Store)}
    return all(
        place == own or (own.in_row and place.index == own.index)
        for place in places
        if (own := written.get(place.buffer)) is not None
    )
