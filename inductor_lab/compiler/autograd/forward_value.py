"""A value of the forward as a partitioner gets it.  It is data, and needs no torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ForwardValue:
    """One value of the forward, as input of a partitioner.

    inputs        names of the values that it is computed from
    nbytes        the cost of saving it
    flops         an estimate of the cost of recomputing it
    repeatable    it can be recomputed: it is neither random nor an operator with effects
    needed        the backward reads it
    is_input      it is an input of the graph, which stays in memory anyway and costs nothing
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    nbytes: int
    flops: int
    repeatable: bool
    needed: bool
    is_input: bool
