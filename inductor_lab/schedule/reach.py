"""Transitive dependences between steps, kept up to date while steps are merged.

A set of steps is an int with one bit for each position: a union is `|`, a question is `&`.

Inductor: `scheduler.py`, ancestors of a `BaseSchedulerNode` and `will_fusion_create_cycle`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_, or_

from inductor_lab.ir.program import Pointwise
from inductor_lab.schedule.facts import NestFacts

MANY = 100
"""Operations."""


class Reachability:
    """`after[p]` and `before[p]`: the descendants and the ancestors of step p, once it has joined
    others with itself among them."""

    def __init__(self, sources: Sequence[Iterable[int]]) -> None:
        """`sources[p]` are the positions that step p reads from, all smaller than p."""
        self.before: list[int] = []
        self.after = [0] * len(sources)
        for direct in sources:
            mask = 0
            for source in direct:
                mask |= 1 << source | self.before[source]
            self.before.append(mask)
        for position in reversed(range(len(sources))):
            mask = self.after[position] | 1 << position
            for source in sources[position]:
                self.after[source] |= mask

    def between(self, first: int, second: int) -> int:
        """Steps outside of both sets on a path from one to the other.

        If there are any, the two sets cannot become one kernel.
        """
        forth = _any(self.after, first) & _any(self.before, second)
        back = _any(self.after, second) & _any(self.before, first)
        return (forth | back) & ~(first | second)

    def join(self, first: int, second: int) -> None:
        """From now on the two sets run as one step."""
        both = first | second
        above = _any(self.before, both) | both
        below = _any(self.after, both) | both
        knew_above = _all(self.before, both)
        knew_below = _all(self.after, both)
        for position in positions(above & ~knew_above):
            self.after[position] |= below
        for position in positions(below & ~knew_below):
            self.before[position] |= above


def _any(table: Sequence[int], mask: int) -> int:
    """What any of a set has in a table."""
    return reduce(or_, (table[position] for position in positions(mask)), 0)


def _all(table: Sequence[int], mask: int) -> int:
    """What all of a set have in a table: steps that learn nothing new when the set joins."""
    return reduce(and_, (table[position] for position in positions(mask)), -1)


def positions(mask: int) -> Iterator[int]:
    """The members of a set, smallest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def operations_for(
    name: str, facts: Mapping[str, NestFacts], readers: Mapping[str, Sequence[str]],
    kept: Collection[str],
) -> int:  # fmt: skip
    """Operations of a nest and of pointwise ones that it alone needs, until there are `MANY`."""
    total, waiting = 0, [facts[name]]
    while waiting and total < MANY:
        nest = waiting.pop()
        total += nest.ops
        for buffer in dict.fromkeys(buffer for buffer, _ in nest.loads):
            alone = buffer not in kept and readers[buffer] == [nest.buffer]
            if alone and buffer in facts and isinstance(facts[buffer].nest, Pointwise):
                waiting.append(facts[buffer])
    return total
