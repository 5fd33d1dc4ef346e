"""A user-defined schedule: the user chooses which nests share a kernel, and we verify the choice.

    def mine(program):                     each loop nest is a separate kernel
        return [[nest.buffer] for nest in program.nests]

    with lab.override(schedule=mine):
        c = lab.inspect(f, x)

The scheduler creates the groups as usual, but every pair inside a group is forced, and every other
pair is forbidden.  So memory planning and code generation work as for any other schedule, and if
the rules refuse a group, the error contains their reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations, permutations
from typing import Any, TypeAlias

from inductor_lab.compiler.base.errors import Refused
from inductor_lab.compiler.base.options import FusionOptions
from inductor_lab.compiler.base.passes import switched_off
from inductor_lab.compiler.ir.program import ExternCall, LoopProgram
from inductor_lab.compiler.schedule.fusion.fuse import ScheduleFacts, live_steps
from inductor_lab.compiler.schedule.passes import PASSES, schedule_program
from inductor_lab.compiler.schedule.schedule import Decision, Schedule

Grouping: TypeAlias = Callable[[LoopProgram], Iterable[Iterable[str]]]
"""A function from a program to groups of buffers; a pointwise buffer may be in several groups, and
is then recomputed in each."""


def schedule_from_groups(
    grouping: Grouping, program: LoopProgram, options: FusionOptions,
    facts: ScheduleFacts | None = None,
    changed: Callable[[str, Schedule], object] | None = None,
) -> Schedule:  # fmt: skip
    """The schedule that a user's function defines.

    Raises Refused, with the reason, if it is not complete or not legal.  The other
    arguments are those of `schedule_program`.
    """
    nests = [s.buffer for s in live_steps(program) if not isinstance(s, ExternCall)]
    groups = _named(grouping(program), nests)
    pairs = list(combinations(nests, 2))
    together = {pair for group in groups for pair in pairs if group.issuperset(pair)}
    restricted = replace(
        options,
        enabled=True,
        combos=False,
        force=tuple(pair for pair in pairs if pair in together),
        forbid=tuple(pair for pair in pairs if pair not in together),
    )
    if facts is not None:
        off = switched_off(PASSES, facts.options.passes_off) - {"fuse"}
        facts.options = replace(facts.options, passes_off=tuple(off))
    schedule = schedule_program(program, restricted, facts, changed)
    made = [{n.buffer for n in g.nests} | g.inlined.keys() for g in schedule.groups]
    for group in groups:
        if group not in made:
            raise Refused(f"{_listed(group)} cannot be one kernel", _why(schedule, group), _TODO)
    return schedule


_TODO = "c.graphs[0].forward.schedule.decisions has the verdict of every rule on every pair"


def _named(given: Any, nests: list[str]) -> list[set[str]]:
    """The groups as sets; every nest must be in a group."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise Refused(f"a schedule is a list of groups of buffers, not {given!r}")
    groups = [names for group in given if (names := _names(group))]
    for group in groups:
        if unknown := group - set(nests):
            known = ", ".join(nests)
            raise Refused(f"unknown loop nest: {_listed(unknown)}", todo=f"loop nests: {known}")
    if missing := set(nests).difference(*groups):
        raise Refused(f"no group computes {_listed(missing)}")
    for smaller, larger in permutations(groups, 2):
        if smaller <= larger:
            twice = f"two groups contain {_listed(smaller)}: one of them is redundant"
            raise Refused(twice, todo="remove one of the two groups")
    return groups


def _names(group: Any) -> set[str]:
    """A group as a set; a single name is a group of one."""
    alone = isinstance(group, str) or not isinstance(group, Iterable)
    return {str(name) for name in ([group] if alone else group)}


def _why(schedule: Schedule, group: set[str]) -> str:
    """The first reason of a legality rule against a pair inside the group."""
    inside = [d for d in schedule.decisions if {d.producer, d.consumer} <= group and not d.fused]
    reasons = [reason for decision in inside for reason in _reasons(decision)]
    return reasons[0] if reasons else "its nests read neither each other nor the same buffer"


def _reasons(decision: Decision) -> list[str]:
    return [
        f"{decision.producer} and {decision.consumer}: {verdict.rule}: {verdict.reason}"
        for verdict in decision.verdicts
        if verdict.kind == "legality" and verdict.reason is not None
    ]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names, key=lambda name: (len(name), name)))
