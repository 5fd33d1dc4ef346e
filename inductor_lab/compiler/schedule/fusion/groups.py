"""Convert clusters to groups: nests with the group's axes, names, costs, and their order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from inductor_lab.compiler.base.options import FusionOptions
from inductor_lab.compiler.ir.expr import NO_ORIGINS
from inductor_lab.compiler.ir.index import Index
from inductor_lab.compiler.ir.program import (
    ExternCall,
    LoopProgram,
    Nest,
    Pointwise,
    Reduction,
    Scan,
    Scatter,
)
from inductor_lab.compiler.schedule.cost import cluster_cost
from inductor_lab.compiler.schedule.facts import NestFacts
from inductor_lab.compiler.schedule.fusion.cluster import Cluster, Member
from inductor_lab.compiler.schedule.fusion.combo import grow, is_pointwise
from inductor_lab.compiler.schedule.order.overlap import order_of
from inductor_lab.compiler.schedule.order.step_order import Unit
from inductor_lab.compiler.schedule.schedule import Cost, Decision, Group, ScheduleStep

NAME_LENGTH = 64
"""A group name contains only as many operations as fit in this length."""


def make_steps(
    clusters: Iterable[Cluster],
    calls: Mapping[int, ExternCall],
    program: LoopProgram,
    options: FusionOptions,
    kept: frozenset[str],
) -> tuple[tuple[ScheduleStep, ...], tuple[Decision, ...]]:
    """Groups and extern calls in order, and the decisions about combos.

    Each step comes after the steps that it needs.  Among the steps that are ready, the first in
    program order runs first, if possible as a combo with other ready steps.  `calls` are the extern
    calls by their position in the program; buffers in `kept` may be allocated early by a combo.
    """
    units: dict[int, Unit] = {cluster.first: cluster for cluster in clusters}
    units.update(calls)
    order = order_of(units, program)
    steps: list[ScheduleStep] = []
    decisions: list[Decision] = []
    while (position := order.next()) is not None:
        unit = units[position]
        if isinstance(unit, ExternCall):
            steps.append(unit)
            order.done((position,))
            continue
        combo = [unit]
        if options.enabled and options.combos and is_pointwise(unit):
            ready = (units[at] for at in sorted(order.ready - {position}))
            others = [other for other in ready if isinstance(other, Cluster)]
            decisions += grow(combo, others, kept, options)
        count = sum(isinstance(step, Group) for step in steps)
        steps.append(make_group(unit, count) if len(combo) == 1 else make_combo(combo, count))
        order.done(cluster.first for cluster in combo)
    return tuple(steps), tuple(decisions)


def make_combo(clusters: Sequence[Cluster], number: int) -> Group:
    """One group made of several groups that run at the same time."""
    parts = tuple(make_group(cluster, k) for k, cluster in enumerate(clusters))
    nests = tuple(nest for part in parts for nest in part.nests)
    inlined = {name: nest for part in parts for name, nest in part.inlined.items()}
    return Group(
        name=group_name((*nests, *inlined.values()), number),
        axes=(),
        nests=nests,
        stored=frozenset[str]().union(*(part.stored for part in parts)),
        inlined=inlined,
        cost=replace(sum((part.cost for part in parts), Cost()), kernels=1),
        origins=NO_ORIGINS.union(*(part.origins for part in parts)),
        combined=parts,
    )


def make_group(cluster: Cluster, number: int) -> Group:
    """The group of a cluster; `number` makes its name unique in the graph."""
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
        in_parts=cluster.in_parts,
    )


def group_name(nests: Iterable[Nest], number: int) -> str:
    """`fused_<operations>_<number>`, like the kernel names of TorchInductor.

    The operations are the names of the FX nodes of the nests, without trailing numbers.
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
