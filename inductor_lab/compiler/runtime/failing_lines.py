"""Which lines of a group may fail at run time: those that divide integers, and those that read or
write at a place that is loaded."""

from __future__ import annotations

from collections.abc import Iterator

from inductor_lab.compiler.ir.expr import Load, Origins, integer_divisors
from inductor_lab.compiler.ir.index import gathered_in
from inductor_lab.compiler.ir.program import Scatter
from inductor_lab.compiler.schedule.schedule import Group


def dividing(group: Group) -> Iterator[Origins]:
    """The nodes that divide integers by something that may be zero."""
    for nest in (*group.nests, *group.inlined.values()):
        for root in nest.roots:
            yield from (origins or nest.origins for _, origins in integer_divisors(root))


def gathering(group: Group) -> Iterator[tuple[str, Origins]]:
    """The buffers that a group reads or writes at a place that depends on a loaded value.

    A loaded position that is used as a number counts for the buffer that is computed from it.
    """
    for nest in (*group.nests, *group.inlined.values()):
        nodes = [node for root in nest.roots for node in root.walk()]
        if isinstance(nest, Scatter):
            nodes.append(Load(nest.buffer, nest.index, nest.body.dtype, nest.origins))
        for node in nodes:
            if any(any(gathered_in(index)) for index in node.indices()):
                if isinstance(node, Load):
                    yield node.buffer, node.origins
                else:
                    yield nest.buffer, nest.origins
