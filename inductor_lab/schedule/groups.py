"""From clusters to groups: nests with the group's axes, names, costs, and the order they run in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from heapq import heapify, heappop, heappush

from inductor_lab.ir.expr import NO_ORIGINS
from inductor_lab.ir.index import Index
from inductor_lab.ir.program import (
    ExternCall,
    Nest,
    Pointwise,
    Reduction,
    Scan,
    Scatter,
    read_by,
    written_by,
)
from inductor_lab.schedule.cluster import Cluster, Member
from inductor_lab.schedule.cost import cluster_cost
from inductor_lab.schedule.facts import NestFacts
from inductor_lab.schedule.result import Group, ScheduleStep

NAME_LENGTH = 64
"""Names of groups are cut after the operation that exceeds this."""


def make_steps(
    clusters: Iterable[Cluster], calls: Mapping[int, ExternCall]
) -> tuple[ScheduleStep, ...]:
    """Groups and extern calls, each after all that it needs; among those that could run, the one
    that comes first in the program runs first.

    `calls` are the extern calls by their position in the program.
    """
    units: dict[int, Cluster | ExternCall] = {cluster.first: cluster for cluster in clusters}
    units.update(calls)
    steps: list[ScheduleStep] = []
    for position in _order(units):
        unit = units[position]
        if isinstance(unit, Cluster):
            count = sum(isinstance(step, Group) for step in steps)
            steps.append(make_group(unit, count))
        else:
            steps.append(unit)
    return tuple(steps)


def _order(units: Mapping[int, Cluster | ExternCall]) -> Iterable[int]:
    maker: dict[str, int] = {}
    for position, unit in units.items():
        names = unit.written if isinstance(unit, Cluster) else written_by(unit)
        maker.update(dict.fromkeys(names, position))
    needs: dict[int, set[int]] = {}
    users: dict[int, list[int]] = {position: [] for position in units}
    for position, unit in units.items():
        names = unit.reads if isinstance(unit, Cluster) else read_by(unit)
        needs[position] = {maker[name] for name in names if name in maker}
        for source in needs[position]:
            users[source].append(position)
    ready = [position for position in units if not needs[position]]
    heapify(ready)
    done = 0
    while ready:
        position = heappop(ready)
        done += 1
        yield position
        for user in users[position]:
            needs[user].discard(position)
            if not needs[user]:
                heappush(ready, user)
    assert done == len(units), "the schedule has a cycle"


def make_group(cluster: Cluster, number: int) -> Group:
    """The group that a cluster has become; `number` makes its name unique in the graph."""
    inlined = sorted(cluster.inlined.values(), key=lambda facts: facts.position)
    nests = tuple(_with_group_axes(member) for member in cluster.members)
    sources = [facts.nest for facts in inlined]
    origins = NO_ORIGINS.union(*(nest.origins for nest in (*nests, *sources)))
    return Group(
        name=group_name((*nests, *sources), number),
        axes=cluster.axes,
        nests=nests,
        stored=cluster.written,
        inlined={nest.buffer: nest for nest in map(_pointwise, inlined)},
        cost=cluster_cost(cluster),
        origins=origins,
    )


def group_name(nests: Iterable[Nest], number: int) -> str:
    """`fused_<operations>_<number>`, as TorchInductor names its kernels.

    The operations are the FX nodes that the nests came from, less the numbers at their ends.
    """
    found = {re.sub(r"(_\d+)+$", "", origin) for nest in nests for origin in nest.origins}
    name = "fused"
    for operation in sorted(found):
        if len(name) + len(operation) >= NAME_LENGTH:
            break
        name += f"_{operation}"
    return f"{name}_{number}"


def _pointwise(facts: NestFacts) -> Pointwise:
    assert isinstance(facts.nest, Pointwise), "only pointwise nests are inlined"
    return facts.nest


def _with_group_axes(member: Member) -> Nest:
    nest = member.facts.nest
    moved = {axis: Index.of(new) for axis, new in member.rename.items() if axis != new}
    if not moved or isinstance(nest, Scatter):
        assert not moved, "a scatter is alone in its kernel, with its own axes"
        return nest
    body = nest.body.substitute(moved)
    if isinstance(nest, Reduction):
        reduced = tuple(member.rename.get(axis, axis) for axis in nest.reduce_axes)
        return replace(nest, axes=member.axes, reduce_axes=reduced, body=body)
    if isinstance(nest, Scan):
        scanned = member.rename.get(nest.axis, nest.axis)
        return replace(nest, axes=member.axes, axis=scanned, body=body)
    return replace(nest, axes=member.axes, body=body)
