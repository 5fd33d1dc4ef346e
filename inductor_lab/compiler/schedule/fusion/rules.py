"""Fusion rules: the type of a rule, the tables of all rules, and how a decision is made.

A rule takes a `Pair`, which describes a possible fusion, and returns a reason against it, or None.
Rules have no side effects.  All rules run for every pair.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias, TypeVar

from inductor_lab.compiler.base.options import FusionOptions
from inductor_lab.compiler.ir.index import Axis
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.ir.rules import rule_of
from inductor_lab.compiler.schedule.fusion.cluster import Cluster
from inductor_lab.compiler.schedule.schedule import Choice, Kind, Verdict

Placement: TypeAlias = Literal["inlined", "copied", "stored", "siblings"]


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A possible fusion, which the rules evaluate.

    placement  inlined   the producer is evaluated inside the consumer's group and nowhere else
               copied    the same, but it is computed elsewhere too
               stored    the producer is computed in full in the consumer's group
               siblings  neither reads the other; they share an input
    first      the producer alone (for siblings: the group of the earlier nest)
    second     the group of the consumer
    common     outer axes of `first` → outer axes of `second` (not for inlined and copied)
    merged     the fused cluster; None if the axes do not allow it
    between    a step outside both groups on a path from one to the other
    home       the buffer whose group already stores the producer, if any
    saved      bytes of memory traffic that the fusion saves
    operations  operations of the producer, and of producers that only it needs, per element
    overwritten  the reason why a value that the fusion reads would be overwritten before, if any
    after_reduction  the inlined producer uses a reduction with one result for each of its points
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
    operations: int = 0
    overwritten: str | None = None
    after_reduction: bool = False

    @property
    def buffers(self) -> Mapping[str, Buffer]:
        return self.second.buffers

    @property
    def evaluated_on_demand(self) -> bool:
        return self.placement in ("inlined", "copied")


Rule: TypeAlias = Callable[[Pair], str | None]

LEGALITY: dict[str, Rule] = {}
"""Rules that must hold for a correct result; `legality.py` registers them."""

PROFIT: dict[str, Rule] = {}
"""Rules that should hold for a fast result; `profit.py` registers them."""


legality = rule_of(LEGALITY)
"""Register a rule that must hold."""

profit = rule_of(PROFIT)
"""Register a rule that should hold; `force` overrules it and `off` disables it."""

Subject = TypeVar("Subject")
Answers: TypeAlias = Mapping[str, Callable[[Subject], str | None]]


def run_rules(
    subject: Subject,
    legality: Answers[Subject],
    profit: Answers[Subject],
    options: FusionOptions,
    choice: Choice,
) -> tuple[tuple[Verdict, ...], bool]:
    """Run all rules, then apply the options: returns the verdicts, and whether to fuse."""
    verdicts = [_verdict(name, "legality", rule(subject)) for name, rule in legality.items()]
    legal = all(verdict.reason is None for verdict in verdicts)
    enabled = [(name, rule) for name, rule in profit.items() if name not in options.off]
    verdicts += [_verdict(name, "profit", rule(subject)) for name, rule in enabled]
    wanted = choice == "forced" or all(verdict.reason is None for verdict in verdicts)
    return tuple(verdicts), legal and wanted and choice in ("rules", "forced")


def _verdict(rule: str, kind: Kind, reason: str | None) -> Verdict:
    return _passed(rule, kind) if reason is None else Verdict(rule, kind, reason)


@cache
def _passed(rule: str, kind: Kind) -> Verdict:
    """The verdict of a rule that accepts a pair; cached, because most rules accept most pairs."""
    return Verdict(rule, kind, None)


def choice_for(
    options: FusionOptions, firsts: Collection[str], seconds: Collection[str], ordered: bool
) -> Choice:
    """Whether the rules or the options decide on two sets of nests.

    If `ordered`, a forced pair must be (first, second).
    """

    def named(pairs: Iterable[tuple[str, ...]], either: bool) -> bool:
        return any(
            (one in firsts and other in seconds) or (either and one in seconds and other in firsts)
            for one, other in pairs
        )

    if not options.enabled:
        return "disabled"
    if named(options.forbid, either=True):
        return "forbidden"
    return "forced" if named(options.force, either=not ordered) else "rules"
