"""The buffers that a nest reads, and at which indices, when producers are inlined.

`buf1[i0] = sin(buf0[i0 + 1])` with `buf0[i0] = x[i0] * 2` inlined demands buf0 at [i0 + 1], and
through it x at [i0 + 1].  Each (buffer, index) pair appears once, however often bodies contain it.
"""

from __future__ import annotations

from collections.abc import Mapping

from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.ir.program import Nest, Pointwise
from inductor_lab.compiler.schedule.facts import Place

Demand = dict[tuple[str, Place], Expr | None]
"""(buffer, place) → the producer's body at that place; None if it is loaded from memory."""


def demand(nest: Nest, producers: Mapping[str, Pointwise]) -> Demand:
    """Everything the nest loads, directly or through the bodies of `producers`."""
    found: Demand = {}
    waiting: list[Expr] = list(nest.roots)
    while waiting:
        for load in waiting.pop().loads():
            key = (load.buffer, load.index)
            if key in found:
                continue
            producer = producers.get(load.buffer)
            if producer is None:
                found[key] = None
            else:
                found[key] = body = producer.at(load.index)
                waiting.append(body)
    return found
