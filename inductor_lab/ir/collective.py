"""Collectives: calls in which every rank of a process group takes part.

    buf1 = all_reduce(buf0, "sum", "0")      begins; other steps run while tensors are on the wire
    buf2 = wait_tensor(buf1)                 the result, in the memory of buf1

A collective reads its argument until it is waited for.  All ranks must begin the same ones in the
same order, so none is ever left out, computed twice or moved past another one.

Inductor: `ir._CollectiveKernel`, `ir._WaitKernel`; torch: `distributed/_functional_collectives.py`.
"""

from __future__ import annotations

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
