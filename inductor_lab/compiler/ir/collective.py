"""Collectives: calls in which every rank of a process group takes part.

    buf1 = all_reduce(buf0, "sum", "0")      begins; other steps run while tensors are on the wire
    buf2 = wait_tensor(buf1)                 the result, in the memory of buf1

A collective reads its argument until it is waited for.  All ranks must begin the same ones in the
same order, so none is ever left out, computed twice or moved past another one.

Inductor: `ir._CollectiveKernel`, `ir._WaitKernel`; torch: `distributed/_functional_collectives.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NAMESPACES = ("_c10d_functional", "_dtensor")
WAIT = "wait_tensor"

Kind = Literal["collective", "wait"]


def collective_kind(op: object) -> Kind | None:
    """Which of the two an operator of a graph is; None for all others."""
    space, _, name = str(op).partition(".")
    if space not in NAMESPACES:
        return None
    return "wait" if name.startswith(WAIT) else "collective"


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes and operations per second of one rank and of its link to the next, and the seconds that
    a hop takes however short the message is."""

    memory: float
    arithmetic: float
    link: float
    latency: float

    def work(self, nbytes: float, flops: float) -> float:
        """Seconds of a kernel or a library call, at the roof."""
        return max(nbytes / self.memory, flops / self.arithmetic)

    def wire(self, sent: int, ranks: int) -> float:
        """Seconds of a collective in which each rank sends so much; trees are log2(n) deep."""
        return self.latency * max(ranks - 1, 1).bit_length() + sent / self.link


RATES = {"cpu": Rates(10e9, 50e9, 1e9, 1e-4), "cuda": Rates(3e12, 2e14, 2e11, 2e-5)}
"""By device: a laptop's core with gloo over its loopback, an H100 with NVLink."""
