"""Rows that several Triton programs share, so that each value is read once and stays in registers.

    rpart = tl.program_id(0) % 32                       which part of the row
    t0 = tl.load(in0 + (rindex + 131072 * xindex))      read once: every later loop has it
    acc0_part = lab.row_max(t0)
    acc0 = lab.row_max(lab.of_all_parts(acc0_part, exchange + 64 * xindex, rpart, 32, 32, ...))

A program puts the result of its part where the others of its row see it, and waits for theirs.
They wait only for neighbours in the grid: a GPU starts programs in the order of their numbers, and
there is always room for those of one row (single-pass scans rely on the same).

Merrill and Garland: Single-pass parallel prefix scan with decoupled look-back (2016).
Inductor: `cooperative_reductions`, which keeps as many programs as the GPU holds.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from inductor_lab.codegen.tree import Accumulate, Init, Loop, LoopKind, Stmt, Store
from inductor_lab.codegen.triton_loops import row_places
from inductor_lab.codegen.visit import walk
from inductor_lab.ir.index import Axis, Index, Size, product
from inductor_lab.ir.program import LONGEST_SHARED, Buffer

MOST_PARTS = 32
"""Lanes of a warp: each of them sees the result of one part."""

PART = 4096
"""Elements of a part; twice as many where a row has too many parts (of the blocks from 4096 to
32,768 with 4 to 32 warps this was the fastest on an H200, benchmarks/RESULTS.md)."""

PART_OF_WARP = 1024
"""Elements that a warp holds: 32 of float32 in the registers of each thread."""

CACHED_ROW = 64 * 1024
"""Bytes of a row that is still in the caches of an H200 when it is read again."""

ALIGNED = 16
"""Bytes: rows that begin elsewhere are read element by element, with a register for each place."""

KINDS = ("sum", "prod", "max", "min")

MOST_KEPT = 2
"""Buffers whose elements stay in registers from one loop to the next."""


def part_of(length: int) -> int:
    """Elements of a part of a row."""
    return PART if length <= PART * MOST_PARTS else LONGEST_SHARED // MOST_PARTS


def is_shared(
    outer: tuple[Axis, ...],
    body: tuple[Stmt, ...],
    extents: list[Size],
    again: Mapping[str, torch.dtype],
    buffers: Mapping[str, Buffer],
) -> bool:
    """Do programs share the rows of this body?

    Its rows are long, reduced to float32, and several loops read those of the buffers `again`.
    """
    sizes = [*extents, product(axis.size for axis in outer)]
    if len(extents) != 1 or not all(isinstance(size, int) for size in sizes):
        return False
    length = sizes[0]
    assert isinstance(length, int), "it was found to be a number"
    nbytes = [length * dtype.itemsize for dtype in again.values()]
    return (
        0 < len(again) <= MOST_KEPT
        and length <= LONGEST_SHARED
        and max(nbytes) > CACHED_ROW
        and not any(n % ALIGNED for n in nbytes)
        and _only_reduces(body)
        and _reads_its_own(body, buffers)
    )


def _only_reduces(body: tuple[Stmt, ...]) -> bool:
    for stmt in walk(body):
        match stmt:
            case Init(kind=kind, dtype=dtype, start=start):
                if kind not in KINDS or dtype != torch.float32 or start:
                    return False
            case Accumulate(position=Index()):
                return False
            case Loop(kind=kind) if kind in (LoopKind.SCAN, LoopKind.ORDERED, LoopKind.BISECT):
                return False
            case Store(kind=kind) if kind != "store":
                return False
    return True


def _reads_its_own(body: tuple[Stmt, ...], buffers: Mapping[str, Buffer]) -> bool:
    """Of what may lie in the memory that it writes, does a program read only what it writes itself?

    A result may be made in the memory of anything of its dtype and size that is read.
    """
    places = list(row_places(body))
    written = [place for place in places if isinstance(place.access, Store)]
    return not any(
        _alike(buffers[one.buffer], buffers[other.buffer])
        and not (one.in_row and one.index == other.index)
        for one in written
        for other in places
        if other not in written
    )


def _alike(one: Buffer, other: Buffer) -> bool:
    """May they be given the same storage (`schedule/memory.py`)?"""
    same = (one.dtype, one.layout.storage_size) == (other.dtype, other.layout.storage_size)
    return same or one.name == other.name
