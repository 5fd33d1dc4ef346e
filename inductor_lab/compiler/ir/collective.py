"""Collectives: calls in which every rank of a process group takes part.

    buf1 = all_reduce(buf0, "sum", "0")      starts; other steps run during the communication
    buf2 = wait_tensor(buf1)                 the result, in the memory of buf1

A collective may read its argument until the wait has returned.  All ranks must start the same
collectives in the same order.  Therefore no pass removes, duplicates or reorders them.

Inductor: `ir._CollectiveKernel`, `ir._WaitKernel`; torch: `distributed/_functional_collectives.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NAMESPACES = ("_c10d_functional", "_dtensor")
WAIT = "wait_tensor"

Kind = Literal["collective", "wait"]


def collective_kind(op: object) -> Kind | None:
    """Whether an operator starts a collective or waits for one; None for all other operators."""
    space, _, name = str(op).partition(".")
    if space not in NAMESPACES:
        return None
    return "wait" if name.startswith(WAIT) else "collective"


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes and operations per second of one rank, bytes per second of its link to the next rank,
    and the latency of one hop in seconds, which does not depend on the size of the message."""

    memory: float
    arithmetic: float
    link: float
    latency: float

    def work(self, nbytes: float, flops: float) -> float:
        """Seconds of a kernel or a library call at the roofline."""
        return max(nbytes / self.memory, flops / self.arithmetic)

    def wire(self, sent: int, ranks: int) -> float:
        """Seconds of a collective in which each rank sends `sent` bytes; trees have depth
        log2(ranks)."""
        return self.latency * max(ranks - 1, 1).bit_length() + sent / self.link


RATES = {"cpu": Rates(10e9, 50e9, 1e9, 1e-4), "cuda": Rates(3e12, 2e14, 2e11, 2e-5)}
"""Rates by device: one core of a laptop with gloo over loopback, and an H100 with NVLink."""
