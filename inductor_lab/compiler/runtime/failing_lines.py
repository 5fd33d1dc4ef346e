"""Finds the lines of a group that can fail at run time: integer divisions and indirect indices."""

from __future__ import annotations

from collections.abc import Iterator

from inductor_lab.compiler.ir.expr import Load, Origins, integer_divisors
from inductor_lab.compiler.ir.index import gathered_in
from inductor_lab.compiler.ir.program import Scatter
from inductor_lab.compiler.schedule.schedule import Group


def integer_divisions(group: Group) -> Iterator[Origins]:
    """Yield the nodes that divide integers by a value that can be zero."""
    for nest in (*group.nests, *group.inlined.values()):
        for root in nest.roots:
            yield from (origins or nest.origins for _, origins in integer_divisors(root))


def indirect_accesses(group: Group) -> Iterator[tuple[str, Origins]]:
    """Yield the buffers that a group accesses with an indirect index.

    If a loaded position is used as a number, the buffer computed from it is yielded.
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
