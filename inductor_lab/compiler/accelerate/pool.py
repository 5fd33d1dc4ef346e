"""Memory that stays mapped between calls.

A fresh block of some megabytes costs a page fault for every 4 KiB, which is more than most kernels
take to fill it.  So the blocks that big CPU tensors lie in are kept, and reused once
nobody holds them: the pool has one tensor for each block, and torch counts who else refers to its
storage (a tensor, a view, a NumPy array, a DLPack capsule, what autograd saved).

Sizes that may change from call to call are rounded up to one of sixteen classes between two powers
of two: ever new lengths find blocks too, and there are few classes to keep.  Other sizes are exact,
so that a result is saved with no surplus, and `as_strided` cannot go past its end.

DESIGN, section 7.  Inductor has no counterpart for CPU; its CUDA graph trees ask the same count.
"""

from __future__ import annotations

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

LOOKED_AT = 8
"""Blocks of the right size that are tried before a new one is made."""


class Block:
    """One storage, held by a flat tensor over it and by the storage's Python object."""

    __slots__ = ("address", "alone", "identity", "storage", "tensor")

    def __init__(self, dtype: torch.dtype, nbytes: int) -> None:
        self.tensor = empty_strided_cpu((nbytes // dtype.itemsize,), (1,), dtype)
        self.address = self.tensor.data_ptr()
        self.storage = self.tensor.untyped_storage()
        self.identity = self.storage._cdata
        self.alone = self.references()

    def references(self) -> int:
        """References to the storage: in C++, and its one Python object."""
        return storage_references(self.identity) + getrefcount(self.storage)

    def is_free(self) -> bool:
        """Is the pool's the only reference?  As `references`; asked in each call."""
        return storage_references(self.identity) + getrefcount(self.storage) == self.alone

    def is_sound(self) -> bool:
        """Is it still the memory that was handed out?

        A holder may have moved the storage to shared memory, where another process can see it, or
        have resized it.
        """
        return self.tensor.data_ptr() == self.address


class Pool:
    """Blocks by dtype and size, the size that was used longest ago first; each queue starts with
    the block handed out longest ago.

    At most `limit` bytes are kept, counting blocks that somebody holds, or as many as the largest
    block has.  Safe across threads, and in a finalizer or signal handler that runs in the midst of
    a call: what it asks for does not come from the pool.
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
        """A new CPU tensor, uninitialized; its storage has `nbytes`."""
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
        """The same for sizes of any call; the storage of a large one has up to 1/16 more."""
        if nbytes < POOLED_FROM:
            return empty_strided_cpu(size, stride, dtype)
        step = 1 << (nbytes.bit_length() - 5)
        return self.empty(size, stride, dtype, nbytes + step - 1 & -step)

    def _block(self, key: tuple[torch.dtype, int]) -> Block:
        """A free block, now the last of its queue."""
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
        """Let go of all blocks; those that nobody holds go back to the system.  Returns bytes."""
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

    def renew_lock(self) -> None:
        """Also after a fork: a thread that no longer exists may have held it."""
        self._lock, self._busy = threading.RLock(), False

    def _free_block(self, queue: deque[Block], nbytes: int) -> Block | None:
        for _ in range(min(len(queue), LOOKED_AT)):
            block = queue.popleft()
            if block.is_free():
                if block.is_sound():
                    return block
                self.held -= nbytes
            else:
                queue.append(block)
        return None

    def _new_block(self, dtype: torch.dtype, nbytes: int) -> Block:
        """One more block, for which the oldest ones of the sizes used longest ago are forgotten:
        whoever holds one of those keeps it, and the memory goes back to the system afterwards."""
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
"""The one pool of the process: graphs that run in turn share its blocks."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.renew_lock)


def reserve_pool(schedule: Schedule, options: Options) -> None:
    """Let the pool keep what calls of this program need."""
    POOL.allow(int(options.memory_pool * schedule.memory.peak_after))


def release_memory() -> int:
    """Give memory that compiled functions keep back to the system; returns the bytes.

    Tensors that are still held stay as they are.  The next calls map new memory, and pack their
    weights again.
    """
    return POOL.release() + WEIGHTS.release()
