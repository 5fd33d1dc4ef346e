"""Transitive dependences between steps, updated when steps are merged.

A set of steps is an int with one bit per position: `|` is union, `&` is intersection.

Inductor: `scheduler.py`, ancestors of a `BaseSchedulerNode` and `will_fusion_create_cycle`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_, or_

from inductor_lab.compiler.ir.program import Pointwise
from inductor_lab.compiler.schedule.facts import NestFacts

MANY = 100
"""`operations_for` stops counting here."""


class Reachability:
    """`after[p]` and `before[p]`: step p with its descendants, and with its ancestors."""

    def __init__(self, sources: Sequence[Iterable[int]]) -> None:
        """`sources[p]`: the positions of the steps that p depends on, all smaller than p."""
        self.before: list[int] = []
        self.after = [1 << position for position in range(len(sources))]
        for position, direct in enumerate(sources):
            self.before.append(1 << position | _any(self.before, direct))
        for position in reversed(range(len(sources))):
            for source in sources[position]:
                self.after[source] |= self.after[position]

    def between(self, first: int, second: int) -> int:
        """Steps outside both sets on a path from one to the other.

        If there are any, the two sets cannot become one kernel.
        """
        one, other = list(positions(first)), list(positions(second))
        forth = _any(self.after, one) & _any(self.before, other)
        back = _any(self.after, other) & _any(self.before, one)
        return (forth | back) & ~(first | second)

    def leads(self, step: int, to: int) -> bool:
        """Must `step` run before a step of the set `to`, or is it in the set?"""
        return bool(self.after[step] & to)

    def order(self, first: int, second: int) -> None:
        """Add a dependence: step `second` runs after all steps of the set `first`."""
        above = _any(self.before, positions(first))
        for position in positions(above):
            self.after[position] |= self.after[second]
        for position in positions(self.after[second]):
            self.before[position] |= above

    def join(self, first: int, second: int) -> None:
        """Merge two sets: from now on they run as one step."""
        both = list(positions(first | second))
        above, knew_above = _any(self.before, both), _all(self.before, both)
        below, knew_below = _any(self.after, both), _all(self.after, both)
        for position in positions(above & ~knew_above):
            self.after[position] |= below
        for position in positions(below & ~knew_below):
            self.before[position] |= above


def _any(table: Sequence[int], steps: Iterable[int]) -> int:
    """The union of the entries of some steps."""
    return reduce(or_, (table[position] for position in steps), 0)


def _all(table: Sequence[int], steps: Iterable[int]) -> int:
    """The intersection of the entries of some steps."""
    return reduce(and_, (table[position] for position in steps), -1)


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
    """Operations of a nest and of the pointwise nests that only it needs, up to `MANY`."""
    total, waiting = 0, [facts[name]]
    while waiting and total < MANY:
        nest = waiting.pop()
        total += nest.ops
        for buffer in dict.fromkeys(buffer for buffer, _ in nest.loads):
            alone = buffer not in kept and readers[buffer] == [nest.buffer]
            if alone and buffer in facts and isinstance(facts[buffer].nest, Pointwise):
                waiting.append(facts[buffer])
    return total
