"""Memory plan: every intermediate buffer gets a place in one block of memory.

In:    a `Schedule`.
Out:   a `MemoryPlan`: buffer → offset in bytes, so that buffers that live at the same time do not
       overlap.

    k0 writes a;  k1 reads a, writes b;  k2 reads b, writes c   ->   a  0..400
                                                                     b  400..800
                                                                     c  0..400    (a is dead)

Results of the graph are not planned, because the caller keeps them.  Results of calls are allocated
by ATen.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from inductor_lab.mini.fuse import Group, Schedule, steps_of
from inductor_lab.mini.loops import View, reads, writes

ALIGNMENT = 64
"""Bytes of a cache line."""


class Planned(NamedTuple):
    """A buffer: its place in bytes, and the first and the last item that need it."""

    buffer: View
    start: int
    end: int
    first: int
    last: int

    def __str__(self) -> str:
        items = f"items {self.first} to {self.last}"
        return f"{self.buffer.buffer}: bytes {self.start} to {self.end}, {items}"

    def of(self, block: torch.Tensor) -> torch.Tensor:
        """The tensor of this buffer in a block of bytes."""
        return self.buffer.of(block[self.start : self.end].view(self.buffer.dtype))


@dataclass(frozen=True)
class MemoryPlan:
    schedule: Schedule
    places: dict[str, Planned]
    last_use: dict[str, int]

    @property
    def total(self) -> int:
        return max((place.end for place in self.places.values()), default=0)

    def __str__(self) -> str:
        return "\n".join([f"{self.total} bytes", *map(str, self.places.values())])

    def run(self, *args: Any) -> list[Any]:
        """Interpret the schedule with buffers at their places, as the compiled program does."""
        block = torch.empty(self.total, dtype=torch.uint8)
        memory = {name: place.of(block) for name, place in self.places.items()}
        return self.schedule.program.interpret(self.schedule.steps(), memory, args)


def plan(schedule: Schedule) -> MemoryPlan:
    """Place the largest buffers first, each at the lowest offset that is free while it lives."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    planned: list[View] = []
    program = schedule.program
    for number, item in enumerate(schedule.items):
        for step in steps_of(item):
            last |= dict.fromkeys([*writes(step), *reads(step)], number)
            first |= dict.fromkeys(writes(step), number)
            if isinstance(item, Group):
                kept = item.local | program.returned()
                planned += [program.buffers[name] for name in writes(step) if name not in kept]
    places: dict[str, Planned] = {}
    for buffer in sorted(planned, key=lambda buffer: -buffer.bytes):
        a, b = first[buffer.buffer], last[buffer.buffer]
        size = -(-buffer.bytes // ALIGNMENT) * ALIGNMENT
        start = lowest_start(size, [p for p in places.values() if p.first <= b and a <= p.last])
        places[buffer.buffer] = Planned(buffer, start, start + size, a, b)
    return MemoryPlan(schedule, places, last)


def lowest_start(size: int, living: Iterable[Planned]) -> int:
    """The lowest offset with `size` bytes that no living buffer needs.

    size 64, living: bytes 0 to 64 and 128 to 192   ->   64
    """
    start = 0
    for other in sorted(living, key=lambda place: place.start):
        if start + size <= other.start:
            break
        start = max(start, other.end)
    return start


# What the full compiler does differently
#
# - compiler/schedule/memory.py: a plan over symbolic sizes, for CPU and GPU memory.
# - compiler/schedule/order/: chooses the order of the steps so that less memory is needed.
# - compiler/lower/passes/in_place.py: a step may write its result over an operand.
# - compiler/accelerate/pool.py: large blocks stay mapped between calls, results included.
