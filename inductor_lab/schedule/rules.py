"""What a fusion rule is, and the tables of all rules.

A rule gets a `Pair`, the fusion as it would be, and returns what speaks against it or None.  Rules
never change anything, and all of them are asked for every pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from inductor_lab.ir.index import Axis
from inductor_lab.ir.program import Buffer
from inductor_lab.schedule.cluster import Cluster

Placement: TypeAlias = Literal["inlined", "copied", "stored", "siblings"]


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A fusion to be judged.

    placement  inlined   the producer is evaluated inside the consumer's group and nowhere else
               copied    the same, and it is computed elsewhere too
               stored    the producer is computed in full in the consumer's group
               siblings  neither reads the other; they share an input
    first      the producer alone (for siblings, the group of the earlier nest)
    second     the group of the consumer
    common     outer axes of `first` → outer axes of `second` (not for inlined and copied)
    merged     what both would become; None if the axes do not allow it
    between    a step outside of the two on a way from one to the other
    home       the buffer whose group stores the producer already, if there is one
    saved      bytes of memory traffic that the fusion saves
    """

    producer: str
    consumer: str
    placement: Placement
    first: Cluster
    second: Cluster
    common: Mapping[Axis, Axis]
    merged: Cluster | None
    between: str | None
    home: str | None
    saved: int

    @property
    def buffers(self) -> Mapping[str, Buffer]:
        return self.second.buffers

    @property
    def evaluated_on_demand(self) -> bool:
        return self.placement in ("inlined", "copied")


Rule: TypeAlias = Callable[[Pair], str | None]

LEGALITY: dict[str, Rule] = {}
"""What must hold for the result to be right; filled by `legality.py`."""

PROFIT: dict[str, Rule] = {}
"""What should hold for the result to be fast; filled by `profit.py`."""


def legality(rule: Rule) -> Rule:
    """Register a rule that must hold."""
    return _register(LEGALITY, rule)


def profit(rule: Rule) -> Rule:
    """Register a rule that should hold; `force` overrules it and `off` leaves it out."""
    return _register(PROFIT, rule)


def _register(table: dict[str, Rule], rule: Rule) -> Rule:
    name = rule.__name__
    if name in LEGALITY or name in PROFIT:
        raise ValueError(f"there is a fusion rule {name} already")
    table[name] = rule
    return rule
