"""Clusters: groups under construction, with their nests, loads and costs.

A cluster is immutable: inlining or merging creates a new one, so that rules can evaluate the result
of a fusion before it is applied.  Each member has its loads as (buffer, place), with inlined
producers already expanded and each different place once.  So long chains of cheap operations take
linear time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TypeAlias

from inductor_lab.compiler.ir.index import Axis, Index, hint
from inductor_lab.compiler.ir.program import Buffer, Pointwise, Scan, Scatter
from inductor_lab.compiler.schedule.facts import (
    Access,
    NestFacts,
    Place,
    access,
    real_axes,
    storage_elements,
    touched,
)
from inductor_lab.compiler.schedule.row_parts import InParts

Loads: TypeAlias = dict[str, dict[Place, Access]]


@dataclass(frozen=True, eq=False)
class Member:
    """A nest that the cluster computes in full.

    `rename` maps its axes to the axes of the cluster.  `loads` are all its loads in terms of those
    axes, including the loads of inlined producers.  `in_parts` is set if the nest is reduced over
    outer axes of the cluster (`mixed_order_reduction.py`); its loads are then in terms of the outer
    axes.
    """

    facts: NestFacts
    rename: Mapping[Axis, Axis]
    loads: Loads
    in_parts: InParts | None = None

    @property
    def buffer(self) -> str:
        return self.facts.buffer

    @property
    def accumulates(self) -> bool:
        """Is it a reduction or a scan, which runs a separate loop at each point?"""
        return not isinstance(self.facts.nest, Pointwise)

    @property
    def scanned(self) -> Axis | None:
        """The scanned axis, as an axis of the cluster; None if the nest is not a scan."""
        nest = self.facts.nest
        return self.rename.get(nest.axis, nest.axis) if isinstance(nest, Scan) else None

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The nest's axes, as axes of the cluster: one per dimension of its buffer.

        For a scatter: one per dimension of the values that it stores.
        """
        return tuple(self.rename.get(axis, axis) for axis in self.facts.nest.axes)

    @cached_property
    def loops(self) -> tuple[Axis, ...]:
        if self.in_parts:
            return self.in_parts.loops(self.axes)
        return tuple(self.rename.get(axis, axis) for axis in self.facts.loops)

    @property
    def store(self) -> Place:
        if isinstance(self.facts.nest, Scatter):
            return self.facts.nest.index
        return tuple(Index.of(axis) for axis in self.axes)


@dataclass(frozen=True, eq=False)
class Cluster:
    """Members in program order, and the producers that are inlined into them.

    axes      the outer axes that all members share
    written   members whose buffer is stored to memory, as far as known at this time
    copied    flops of one evaluation of the producers that are inlined here and also computed
              elsewhere
    """

    axes: tuple[Axis, ...]
    members: tuple[Member, ...]
    inlined: Mapping[str, NestFacts]
    written: frozenset[str]
    buffers: Mapping[str, Buffer]
    copied: int = 0

    @cached_property
    def made(self) -> dict[str, Member]:
        return {member.buffer: member for member in self.members}

    @cached_property
    def in_parts(self) -> InParts | None:
        """How the points are visited if a member is reduced over them."""
        return next((m.in_parts for m in self.members if m.in_parts), None)

    @property
    def points(self) -> int:
        """The number of independent points, which can run in parallel."""
        axes = (self.in_parts.part,) if self.in_parts else self.axes
        return prod(hint(axis.size) for axis in axes)

    @property
    def names(self) -> tuple[str, ...]:
        """The buffers of all its nests, members and inlined producers."""
        return (*self.made, *self.inlined)

    @cached_property
    def accumulates(self) -> bool:
        return any(member.accumulates for member in self.members)

    @cached_property
    def scans(self) -> bool:
        return any(member.scanned for member in self.members)

    @property
    def scatter(self) -> Scatter | None:
        """The scatter, if the cluster is one; a scatter shares its kernel with no other nest."""
        nest = self.members[0].facts.nest
        return nest if isinstance(nest, Scatter) else None

    @cached_property
    def loads(self) -> dict[str, dict[Place, None]]:
        """Every buffer that is loaded, with its places, including inlined and computed buffers."""
        places: dict[str, dict[Place, None]] = {}
        for member in self.members:
            for buffer, found in member.loads.items():
                places.setdefault(buffer, {}).update(dict.fromkeys(found))
        return places

    @cached_property
    def reads(self) -> Mapping[str, Sequence[Access]]:
        """The buffers that the kernel reads from memory, with all loads of each."""
        found: dict[str, list[Access]] = {}
        for member in self.members:
            for name, places in member.loads.items():
                if name not in self.inlined and name not in self.made:
                    found.setdefault(name, []).extend(places.values())
        return found

    @cached_property
    def bytes_read(self) -> int:
        found = ((self.buffers[name], accesses) for name, accesses in self.reads.items())
        return sum(touched(accesses, b) * b.dtype.itemsize for b, accesses in found)

    @cached_property
    def bytes_written(self) -> int:
        total = 0
        for name in self.written:
            nest, buffer = self.made[name].facts.nest, self.buffers[name]
            elements = storage_elements(buffer.layout)
            if isinstance(nest, Scatter):
                elements = min(elements, access(nest.index, nest.axes, buffer.layout).elements)
            total += elements * buffer.dtype.itemsize
        return total

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written

    @cached_property
    def operations(self) -> int:
        """The number of operations in the generated code: an inlined body counts once per place."""
        total = sum(member.facts.ops for member in self.members)
        for name, facts in self.inlined.items():
            total += facts.ops * sum(len(member.loads.get(name, ())) for member in self.members)
        return total

    @cached_property
    def flops(self) -> int:
        """Arithmetic, with inlined producers evaluated at each load."""
        total = sum(member.facts.flops * member.facts.volume for member in self.members)
        return total + sum(map(self.flops_of, self.inlined.values()))

    @cached_property
    def flops_kept(self) -> int:
        """Arithmetic if members that load a producer at the same place share its value.

        For example, the two loops over a row of softmax share `exp`: a kernel keeps expensive
        values.
        """
        total = sum(member.facts.flops * member.facts.volume for member in self.members)
        for name, facts in self.inlined.items():
            shared: Counter[Access] = Counter()
            for member in self.members:
                shared |= Counter(member.loads.get(name, {}).values())
            total += facts.flops * sum(a.evaluations * n for a, n in shared.items())
        return total

    def flops_of(self, facts: NestFacts) -> int:
        """Arithmetic of one inlined producer."""
        accesses = (a for m in self.members for a in m.loads.get(facts.buffer, {}).values())
        return facts.flops * sum(a.evaluations for a in accesses)

    def places(self, facts: NestFacts) -> int:
        """The maximum number of places at which one element of a member reads a producer."""
        return max((len(m.loads.get(facts.buffer, ())) for m in self.members), default=0)

    def recomputed_flops(self, facts: NestFacts) -> int:
        """Additional arithmetic of a pointwise producer, beyond one evaluation per element.

        A load at a place other than the stored one evaluates the producer again.
        """
        if facts.buffer in self.inlined:
            return self.flops_of(facts) - facts.flops * facts.volume
        store = self.made[facts.buffer].store
        found = [m.loads.get(facts.buffer, {}) for m in self.members]
        evaluations = (a.evaluations for places in found for p, a in places.items() if p != store)
        return facts.flops * sum(evaluations)

    @property
    def first(self) -> int:
        return self.members[0].facts.position


def single_nest_cluster(facts: NestFacts, buffers: Mapping[str, Buffer]) -> Cluster:
    """A cluster of one nest."""
    nest = facts.nest
    loads: Loads = {}
    for buffer, place in facts.loads:
        loads.setdefault(buffer, {})[place] = access(place, facts.loops, buffers[buffer].layout)
    axes = real_axes(nest.disjoint_axes if isinstance(nest, Scatter) else nest.axes)
    if isinstance(nest, Scan):
        axes = tuple(axis for axis in axes if axis != nest.axis)
    return Cluster(axes, (Member(facts, {}, loads),), {}, frozenset({facts.buffer}), buffers)


Expand: TypeAlias = Callable[[NestFacts, Place], tuple[tuple[str, Place], ...]]
"""The loads of a producer evaluated at a place."""


def expand_loads(facts: NestFacts, place: Place) -> tuple[tuple[str, Place], ...]:
    """The loads that are needed to evaluate a producer at a place.

    before:  buf0[i0, i1] = x[i1] + y[i0]      at [r0, 3]
    after:   x at [3], y at [r0]
    """
    moved = {a: e for a, e in zip(facts.nest.axes, place, strict=True) if e != Index.of(a)}
    if not moved:
        return facts.loads
    return tuple(
        (buffer, tuple(index.substitute(moved) for index in at)) for buffer, at in facts.loads
    )


def inline(cluster: Cluster, facts: NestFacts, expand: Expand, copy: bool = False) -> Cluster:
    """Inline a pointwise producer: replace its loads by its body.

    before:  buf1 = sin(buf0[i0])         loads buf0 at [i0]
    after:   buf1 = sin(x[i0] + 1)        loads buf0 (inlined) and x at [i0]
    """
    inlined = {**cluster.inlined, facts.buffer: facts}
    members = []
    for member in cluster.members:
        if places := member.loads.get(facts.buffer):
            loads = _expanded(member, [(facts, p) for p in places], inlined, expand, cluster)
            member = replace(member, loads=loads)
        members.append(member)
    copied = cluster.copied + (facts.flops if copy else 0)
    return replace(cluster, members=tuple(members), inlined=inlined, copied=copied)


def _expanded(
    member: Member,
    waiting: list[tuple[NestFacts, Place]],
    inlined: Mapping[str, NestFacts],
    expand: Expand,
    cluster: Cluster,
) -> Loads:
    """All loads of a member, after the evaluations in `waiting` are added."""
    loads = dict(member.loads)
    fresh: set[str] = set()
    while waiting:
        for name, at in expand(*waiting.pop()):
            if name not in fresh:
                fresh.add(name)
                loads[name] = dict(loads.get(name, {}))
            if at not in loads[name]:
                loads[name][at] = access(at, member.loops, cluster.buffers[name].layout)
                if name in inlined:
                    waiting.append((inlined[name], at))
    return loads


def reads_only_written_elements(cluster: Cluster, base: str) -> bool:
    """Does a scatter read its base only where `Scatter.may_read` allows it?"""
    scatter = cluster.scatter
    if scatter is None or scatter.base != base:
        return False
    if scatter.may_read(cluster.loads[base]):
        return True
    return cluster.loads[base].keys() == {scatter.index} and _only_combines(cluster, base)


def _only_combines(cluster: Cluster, base: str) -> bool:
    """Is the base read only by the scatter itself, to combine old and new values?"""
    bodies = [root for facts in cluster.inlined.values() for root in facts.nest.roots]
    bodies += [root for member in cluster.members for root in member.facts.nest.roots]
    return all(load.buffer != base for body in bodies for load in body.loads())


def drop_local_stores(cluster: Cluster, escaping: frozenset[str], expand: Expand) -> Cluster:
    """Remove the stores of buffers that are not read outside the cluster.

    A pointwise member that does not escape is inlined; other members stay in a register.
    """
    for member in reversed(cluster.members):
        if member.buffer not in escaping and not member.accumulates:
            others = tuple(m for m in cluster.members if m is not member)
            cluster = inline(replace(cluster, members=others), member.facts, expand)
    return replace(cluster, written=escaping)


def renamed(member: Member, rename: Mapping[Axis, Axis], buffers: Mapping[str, Buffer]) -> Member:
    """The member with renamed axes; `rename` is one to one."""
    moved = {axis: Index.of(new) for axis, new in rename.items() if axis != new}
    if not moved:
        return member
    now = {axis: member.rename.get(axis, axis) for axis in member.facts.loops}
    names = {axis: rename.get(name, name) for axis, name in now.items()}
    shell = Member(member.facts, names, {}, member.in_parts and member.in_parts.renamed(rename))
    return with_loads(shell, member.loads, moved, buffers)


def with_loads(
    member: Member, loads: Loads, moved: Mapping[Axis, Index], buffers: Mapping[str, Buffer]
) -> Member:
    """The member with these loads, after replacing axes in them."""
    found: Loads = {}
    for buffer, places in loads.items():
        for place in places:
            at = tuple(index.substitute(moved) for index in place)
            found.setdefault(buffer, {})[at] = access(at, member.loops, buffers[buffer].layout)
    return replace(member, loads=found)


def union(
    axes: tuple[Axis, ...], first: Cluster, first_members: Iterable[Member], second: Cluster
) -> Cluster:
    """A cluster with the members of both; a member of one that is inlined in the other stays a
    member."""
    members = sorted((*first_members, *second.members), key=lambda m: m.facts.position)
    made = {member.buffer for member in members}
    inlined = {**first.inlined, **second.inlined}
    return Cluster(
        axes,
        tuple(members),
        {name: facts for name, facts in inlined.items() if name not in made},
        first.written | second.written,
        second.buffers,
        max(first.copied, second.copied),
    )
