"""A pool of memory that stays mapped between calls.

A new block of several megabytes costs one page fault for every 4 KiB.  This takes longer than most
kernels need to fill it.  Therefore blocks of large CPU tensors are kept, and reused when they are
free.  The pool has one tensor for each block.  torch counts the other references to its storage
(tensors, views, NumPy arrays, DLPack capsules, tensors saved by autograd).

Symbolic sizes are rounded up to one of sixteen classes between two powers of two, so that new
lengths find free blocks, and the number of classes stays small.  Static sizes are exact, so that
`torch.save` stores no excess bytes, and `as_strided` cannot go beyond the end.

DESIGN, section 7.  Inductor has no counterpart for CPU; its CUDA graph trees use the same count.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from sys import getrefcount

import torch

from inductor_lab.compiler.accelerate.packing import WEIGHTS
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.codegen.host.host_program import POOLED_FROM
from inductor_lab.compiler.schedule.schedule import Schedule
from inductor_lab.compiler.torch_door.torch_api import (
    empty_strided_cpu,
    reinterpret,
    storage_references,
)

MOST_TRIED = 8
"""The number of blocks of the right size that are tried before a new one is allocated."""


class Block:
    """One storage.  The block holds a flat tensor over it and its Python object."""

    __slots__ = ("address", "identity", "storage", "tensor", "unused_count")

    def __init__(self, dtype: torch.dtype, nbytes: int) -> None:
        self.tensor = empty_strided_cpu((nbytes // dtype.itemsize,), (1,), dtype)
        self.address = self.tensor.data_ptr()
        self.storage = self.tensor.untyped_storage()
        self.identity = self.storage._cdata
        self.unused_count = self.references()

    def references(self) -> int:
        """Return the number of references to the storage, in C++ and to its Python object."""
        return storage_references(self.identity) + getrefcount(self.storage)

    def is_free(self) -> bool:
        """Does only the pool refer to it?  Inlines `references`, because every call uses it."""
        return storage_references(self.identity) + getrefcount(self.storage) == self.unused_count

    def is_sound(self) -> bool:
        """Is its memory unchanged?

        A user may have moved the storage to shared memory, which other processes can access, or
        resized it.
        """
        return self.tensor.data_ptr() == self.address


class Pool:
    """Blocks by dtype and size, the least recently used size first.

    Each queue starts with the least recently used block.  The pool keeps at most `limit` bytes,
    including blocks in use, or the bytes of the largest block.  The pool is thread-safe.  If a
    finalizer or signal handler interrupts a call of the pool, it gets memory from elsewhere.
    """

    def __init__(self) -> None:
        self.limit = 0
        self.held = 0
        self._busy = False
        self._queues: dict[tuple[torch.dtype, int], deque[Block]] = {}
        self.renew_lock()

    def allow(self, nbytes: int) -> None:
        """Raise the limit to at least `nbytes`."""
        self.limit = max(self.limit, nbytes)

    def empty(
        self, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, nbytes: int
    ) -> torch.Tensor:
        """Return a new, uninitialized CPU tensor, whose storage has `nbytes`."""
        key = dtype, nbytes
        with self._lock:
            if self._busy:
                return empty_strided_cpu(size, stride, dtype)
            self._busy = True
            try:
                return reinterpret(self._block(key).tensor, size, stride)
            finally:
                self._busy = False

    def empty_rounded(
        self, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, nbytes: int
    ) -> torch.Tensor:
        """Like `empty`, for symbolic sizes.  The storage of a large tensor is up to 1/16 larger."""
        if nbytes < POOLED_FROM:
            return empty_strided_cpu(size, stride, dtype)
        step = 1 << (nbytes.bit_length() - 5)
        return self.empty(size, stride, dtype, nbytes + step - 1 & -step)

    def empty_result(
        self, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype
    ) -> torch.Tensor:
        """Return a new CPU tensor without gaps, for the result of a library.

        It is from the pool if it is large, and if a graph has reserved memory (`reserve_pool`).
        """
        nbytes = math.prod(size) * dtype.itemsize
        if POOLED_FROM <= nbytes <= self.limit:
            return self.empty(size, stride, dtype, nbytes)
        return empty_strided_cpu(size, stride, dtype)

    def _block(self, key: tuple[torch.dtype, int]) -> Block:
        """Return a free block, and move it to the end of its queue."""
        queue = self._queues.pop(key, None) or deque()
        self._queues[key] = queue
        if queue and queue[0].is_free() and queue[0].is_sound():
            queue.rotate(-1)
        else:
            block = self._free_block(queue, key[1]) or self._new_block(*key)
            self._queues[key] = queue
            queue.append(block)
        return queue[-1]

    def release(self) -> int:
        """Drop all blocks, and return the bytes of free blocks, which the system gets back."""
        with self._lock:
            if self._busy:
                return 0
            freed = sum(
                nbytes
                for (_, nbytes), queue in self._queues.items()
                for block in queue
                if block.is_free()
            )
            self._queues.clear()
            self.held = 0
            return freed

    def blocks(self) -> dict[int, bool]:
        """Return the address of each block, and whether it is free."""
        with self._lock:
            if self._busy:
                return {}
            kept = [block for queue in self._queues.values() for block in queue]
            return {block.address: block.is_free() for block in kept}

    def renew_lock(self) -> None:
        """Create a new lock, also after a fork, when another thread may have held the old one."""
        self._lock, self._busy = threading.RLock(), False

    def _free_block(self, queue: deque[Block], nbytes: int) -> Block | None:
        for _ in range(min(len(queue), MOST_TRIED)):
            block = queue.popleft()
            if block.is_free():
                if block.is_sound():
                    return block
                self.held -= nbytes
            else:
                queue.append(block)
        return None

    def _new_block(self, dtype: torch.dtype, nbytes: int) -> Block:
        """Allocate a block, and drop the oldest blocks of the least recently used sizes.

        Tensors in dropped blocks stay valid.  Their memory is returned to the system when they are
        freed.
        """
        self.allow(nbytes)
        for key in list(self._queues):
            queue = self._queues[key]
            while queue and self.held + nbytes > self.limit:
                queue.popleft()
                self.held -= key[1]
            if self.held + nbytes <= self.limit:
                break
            del self._queues[key]
        block = Block(dtype, nbytes)
        self.held += nbytes
        return block


POOL = Pool()
"""The pool of the process.  All graphs share its blocks."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.renew_lock)


def reserve_pool(schedule: Schedule, options: Options) -> None:
    """Raise the limit of the pool to the memory that calls of this program need."""
    POOL.allow(int(options.memory_pool * schedule.memory.peak_after))


def release_memory() -> int:
    """Return memory that compiled functions keep to the system; return its size in bytes.

    Live tensors stay valid.  The next calls allocate new memory, and pack their weights again.
    """
    return POOL.release() + WEIGHTS.release()
