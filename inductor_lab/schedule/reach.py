"""Transitive dependences between steps, kept up to date while steps are merged.

A set of steps is an int with one bit for each position: a union is `|`, a question is `&`.

Inductor: `scheduler.py`, ancestors of a `BaseSchedulerNode` and `will_fusion_create_cycle`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from inductor_lab.ir.program import Pointwise
from inductor_lab.schedule.facts import NestFacts

MANY = 100
"""Operations."""


class Reachability:
    """`after[p]` and `before[p]`: the descendants and the ancestors of step p."""

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

    def _all(self, table: list[int], mask: int) -> int:
        total = 0
        for position in positions(mask):
            total |= table[position]
        return total

    def _common(self, table: list[int], mask: int) -> int:
        """What all of a set have in a table: steps that learn nothing new when the set joins."""
        total = -1
        for position in positions(mask):
            total &= table[position]
        return total

    def between(self, first: int, second: int) -> int:
        """Steps outside of both sets on a path from one to the other.

        If there are any, the two sets cannot become one kernel.
        """
        forth = self._all(self.after, first) & self._all(self.before, second)
        back = self._all(self.after, second) & self._all(self.before, first)
        return (forth | back) & ~(first | second)

    def join(self, first: int, second: int) -> None:
        """From now on the two sets run as one step."""
        both = first | second
        above = self._all(self.before, both) | both
        below = self._all(self.after, both) | both
        knew_above = self._common(self.before, both)
        knew_below = self._common(self.after, both)
        for position in positions(above & ~knew_above):
            self.after[position] |= below & ~(1 << position)
        for position in positions(below & ~knew_below):
            self.before[position] |= above & ~(1 << position)


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
