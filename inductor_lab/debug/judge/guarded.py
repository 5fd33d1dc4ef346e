"""Memory that ends, or begins, at pages which no process can access.

    | no access | ...... x x x x x | no access |      edge "end"
    | no access | x x x x x ...... | no access |      edge "start"

A read or write out of bounds ends the process.  New memory of the heap is filled with a pattern, so
a result that is not written is noticed.  Called in the process of the candidate.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Literal

import torch

Edge = Literal["end", "start"]
GUARD = 16 * mmap.PAGESIZE
FORBIDDEN = 0
"""PROT_NONE of mprotect(2)."""
PERTURB = -6
"""M_PERTURB of mallopt(3)."""


class Guarded:
    """Memory for the storages of one call.  The next call gets the same addresses."""

    def __init__(self) -> None:
        self.maps: dict[tuple[int, int], tuple[mmap.mmap, ctypes.c_char]] = {}

    def place(self, number: int, content: torch.Tensor, edge: Edge) -> torch.Tensor:
        """The bytes of storage `number` in guarded memory."""
        nbytes = content.numel()
        if not nbytes:
            return content
        inside = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        area, _ = self._map(number, inside)
        start = GUARD if edge == "start" else GUARD + inside - nbytes
        placed = torch.frombuffer(area, dtype=torch.uint8, count=nbytes, offset=start)
        return placed.copy_(content)

    def _map(self, number: int, inside: int) -> tuple[mmap.mmap, ctypes.c_char]:
        if (number, inside) not in self.maps:
            area = mmap.mmap(-1, inside + 2 * GUARD)
            first = ctypes.c_char.from_buffer(area)
            address = ctypes.addressof(first)
            for guard in (address, address + GUARD + inside):
                _protect(guard)
            self.maps[number, inside] = (area, first)
        return self.maps[number, inside]


def _protect(address: int) -> None:
    protect = getattr(ctypes.CDLL(None), "mprotect", None)
    if protect is not None:
        protect(ctypes.c_void_p(address), ctypes.c_size_t(GUARD), FORBIDDEN)


def fill_new_memory(pattern: int) -> None:
    """From now on the C library fills new memory with this byte, where it can."""
    option = getattr(ctypes.CDLL(None), "mallopt", None)
    if option is not None:
        option(PERTURB, pattern ^ 0xFF)


def fill_gpu_memory(pattern: int, nbytes: int) -> None:
    """Leave memory with this byte to the next allocations on the GPU."""
    for size in (nbytes, 1 << 20, 1 << 12):
        filled = torch.empty(size, dtype=torch.uint8, device="cuda").fill_(pattern)
        del filled
    torch.cuda.synchronize()
