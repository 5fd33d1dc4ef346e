"""Visit the steps of a program in reverse order and decide on fusions; `fuse.py` gives an overview.

Each decision has the same steps: build the cluster that a fusion would create (`on_demand`,
`together`), evaluate all rules and the options (`judge`), record the decision, and only then apply
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from inductor_lab.compiler.base.errors import working_on
from inductor_lab.compiler.base.options import FusionOptions
from inductor_lab.compiler.ir.index import hint
from inductor_lab.compiler.ir.program import (
    ExternCall,
    LoopProgram,
    Reduction,
    Scatter,
    Step,
    read_by,
    storage_bases,
    symbols_of,
    written_by,
)
from inductor_lab.compiler.schedule.facts import NestFacts, Place, nest_facts
from inductor_lab.compiler.schedule.fusion import legality, profit, profit_gpu
from inductor_lab.compiler.schedule.fusion.align import common_axes, merge_clusters
from inductor_lab.compiler.schedule.fusion.cluster import (
    Cluster,
    drop_local_stores,
    expand_loads,
    inline,
    reads_only_written_elements,
    single_nest_cluster,
)
from inductor_lab.compiler.schedule.fusion.mixed_order_reduction import mixed_order_pairs
from inductor_lab.compiler.schedule.fusion.rules import (
    LEGALITY,
    PROFIT,
    Pair,
    Placement,
    choice_for,
    run_rules,
)
from inductor_lab.compiler.schedule.order.dependences import Reachability, operations_for, positions
from inductor_lab.compiler.schedule.order.step_order import binders_of
from inductor_lab.compiler.schedule.schedule import Choice, Decision, Verdict

RULE_FILES = (legality, profit, profit_gpu)
"""The modules that register rules when they are imported."""

FEW_NESTS = 8
"""Nests among which `follows_reduction` looks for a reduction."""

NEIGHBOURS = 2
"""A nest is compared with this many earlier clusters that share an input."""


@dataclass(frozen=True, slots=True)
class _Judged:
    pair: Pair
    verdicts: tuple[Verdict, ...]
    fused: bool
    choice: Choice


class Walk:
    """The state of the fusion decisions.

    alone      each nest as a separate cluster
    clusters   clusters by number
    where      buffer → numbers of the clusters that compute it (several if it is copied)
    readers    buffer → nests that load it, in program order
    overwriting  buffer → the step that writes to its storage; its readers run before that step
    kept       buffers that extern calls and outputs need
    """

    def __init__(self, program: LoopProgram, steps: Sequence[Step], options: FusionOptions) -> None:
        self.buffers, self.steps, self.options = program.buffers, steps, options
        self.facts: dict[str, NestFacts] = {}
        self.readers: dict[str, list[str]] = {}
        self.kept = set(program.output_buffers)
        sources: list[set[int]] = []
        maker: dict[str, int] = {}
        loading: dict[str, set[int]] = {}
        self.overwriting: dict[str, int] = {}
        binders = binders_of(dict(enumerate(steps)), program)
        for position, step in enumerate(steps):
            if isinstance(step, ExternCall):
                names = read_by(step)
                self.kept |= names
            else:
                layout = self.buffers[step.buffer].layout
                self.facts[step.buffer] = facts = nest_facts(step, position, layout, self.facts)
                names = frozenset(buffer for buffer, _ in facts.loads)
                self.kept |= {step.base} if isinstance(step, Scatter) else set()
                for name in names:
                    self.readers.setdefault(name, []).append(step.buffer)
            known = {binders[s] for s in symbols_of(step) if s in binders} if binders else set()
            before = {maker[name] for name in names if name in maker} | known - {position}
            for base in storage_bases(step).values():
                self.overwriting[base] = position
                before |= loading.get(base, set())  # these read the old value
            for name in names:
                loading.setdefault(name, set()).add(position)
            sources.append(before)
            maker.update(dict.fromkeys(written_by(step), position))
        self.reach = Reachability(sources)
        self.alone = {
            name: single_nest_cluster(facts, self.buffers) for name, facts in self.facts.items()
        }
        self.clusters: dict[int, Cluster] = {}
        self.where: dict[str, list[int]] = {}
        self.decisions: list[Decision] = []
        self.refused: set[tuple[Cluster, Cluster]] = set()
        self.expanded: dict[tuple[str, Place], tuple[tuple[str, Place], ...]] = {}

    def run(self) -> None:
        made: set[str] = set()
        for step in reversed(self.steps):
            made.update(written_by(step))
            with working_on(step.origins):
                if isinstance(step, ExternCall):
                    for name in written_by(step):
                        self.join_siblings(name)
                else:
                    self.place(self.facts[step.buffer])
        for name in self.buffers:
            if name not in made:
                self.join_siblings(name)
        self.join_forced()
        for number, cluster in sorted(self.clusters.items(), key=lambda item: -item[1].first):
            escaping = frozenset(name for name in cluster.made if self.escapes(name, {number}))
            if escaping != cluster.written:
                self.clusters[number] = drop_local_stores(cluster, escaping, self.expand)
        # a reader may have been fused with clusters that copy the value: then nothing reads it
        self.clusters = {n: cluster for n, cluster in self.clusters.items() if cluster.members}

    # ---- one producer ----

    def place(self, facts: NestFacts) -> None:
        """Find the kernel, or the kernels, that compute this nest."""
        name = facts.buffer
        numbers = self.join_siblings(name)
        alone = self.alone[name]
        if name in self.kept or alone.accumulates:
            return self.store(alone, numbers)
        if len(numbers) == 1:
            judged = self.on_demand(alone, numbers[0], "inlined", alone.bytes)
            self.record(judged, numbers[0])
            if judged.fused:
                return self.apply(judged.pair, numbers[0])
            return self.add(alone)
        if not self.copied(alone, numbers):
            self.store(alone, numbers)

    def copied(self, alone: Cluster, numbers: Sequence[int]) -> bool:
        """Inline the producer into every reader, if all allow it: this saves its kernel."""
        copies: list[_Judged] = []
        for number in numbers:
            copies.append(self.on_demand(alone, number, "copied", alone.bytes // len(numbers)))
            if not copies[-1].fused:
                return False
        for number, copy in zip(numbers, copies, strict=True):
            self.record(copy, number)
            self.apply(copy.pair, number)
        return True

    def store(self, alone: Cluster, numbers: Sequence[int]) -> None:
        """Compute it in the kernel of the reader that saves most; others copy or load it."""
        judged = {n: self.in_one_kernel(alone, n) for n in numbers}
        home = max(
            (n for n in numbers if judged[n].fused),
            key=lambda n: (judged[n].choice == "forced", judged[n].pair.saved, -n),
            default=None,
        )
        if home is None:
            self.add(alone)
        for number in numbers:
            if number == home:
                self.record(judged[number], number)
                continue
            copy = None if alone.accumulates else self.on_demand(alone, number, "copied", 0)
            if copy is not None and copy.fused:
                self.record(copy, number)
                self.apply(copy.pair, number)
                continue
            answer = judged[number]
            if home is not None and answer.fused:
                at_home = self.edges(alone.members[0].buffer, home)[0]
                answer = self.judge(replace(answer.pair, home=at_home))
            self.record(_with_reasons(answer, copy), number)
        if home is not None:
            self.apply(judged[home].pair, home)

    # ---- siblings ----

    def join_siblings(self, name: str) -> list[int]:
        """Fuse clusters that load this buffer if the rules allow it; returns the clusters."""
        numbers = self.loading(name)
        settled: list[int] = numbers[:1]
        for number in numbers[1:]:
            for other in reversed(settled[-NEIGHBOURS:]):
                if self.try_siblings(other, number, name):
                    break
            else:
                settled.append(number)
        return settled

    def try_siblings(self, number: int, other: int, shared: str) -> bool:
        first, second = self.clusters[number], self.clusters[other]
        if (first, second) in self.refused:
            return False
        names = self.reader(shared, number, other), self.reader(shared, other, number)
        joined = self.join(number, other, names, shared)
        if not joined:
            self.refused.add((first, second))
        return joined

    def join(self, number: int, other: int, names: tuple[str, str], shared: str | None) -> bool:
        """Evaluate the fusion of two clusters, and apply it if the rules allow it."""
        first, second = self.clusters[number], self.clusters[other]
        both = [b for b in first.loads if b in second.loads and b != shared]
        through = both if shared is None else [shared, *both]
        pair = self.together(first, second, names, "siblings", through, {number, other})
        judged = self.judge(pair)
        self.decisions.append(_decision(judged, *names))
        if judged.fused and pair.merged is not None:
            self.merge(number, other, pair.merged)
        return judged.fused

    def merge(self, number: int, other: int, merged: Cluster) -> None:
        self.reach.join(_steps_of(self.clusters[number]), _steps_of(self.clusters[other]))
        for name in self.clusters[other].names:
            places = [number if n == other else n for n in self.where[name]]
            self.where[name] = list(dict.fromkeys(places))
        del self.clusters[other]
        self.clusters[number] = merged
        self.order_before_overwriters(merged)

    def join_forced(self) -> None:
        """Fuse pairs that a user forces, although they are independent and share no input."""
        known = {(d.producer, d.consumer) for d in self.decisions}
        for producer, consumer in self.options.force:
            names = (producer, consumer)
            places = [self.where.get(name, [])[:1] for name in names]
            if names in known or not all(places) or places[0] == places[1]:
                continue
            self.join(places[0][0], places[1][0], names, None)

    # ---- candidates ----

    def on_demand(
        self, alone: Cluster, number: int, placement: Placement, own_bytes: int
    ) -> _Judged:
        """Evaluate inlining a producer into a cluster; its separate kernel moves `own_bytes`."""
        second, member = self.clusters[number], alone.members[0]
        merged = inline(second, member.facts, self.expand, placement == "copied")
        names = member.buffer, self.edges(member.buffer, number)[0]
        saved = second.bytes - merged.bytes + own_bytes
        work = operations_for(member.buffer, self.facts, self.readers, self.kept)
        pair = Pair(*names, placement, alone, second, {}, merged, None, None, saved, work)
        after = placement == "inlined" and self.follows_reduction(member.facts)
        return self.judge(
            replace(pair, overwritten=self.overwritten(merged), after_reduction=after)
        )

    def follows_reduction(self, facts: NestFacts) -> bool:
        """Does a nest use a reduction that has one result for each point of the nest, directly or
        through a few nests with as many points?"""
        found = [facts]
        for each in found:
            for name in dict.fromkeys(name for name, _ in each.loads if name in self.facts):
                of_input = self.facts[name]
                points = prod(hint(axis.size) for axis in of_input.nest.axes)
                if points != facts.volume or of_input in found:
                    continue
                if isinstance(of_input.nest, Reduction):
                    return True
                if len(found) < FEW_NESTS:
                    found.append(of_input)
        return False

    def in_one_kernel(self, alone: Cluster, number: int) -> _Judged:
        """Evaluate computing a producer in the kernel of a cluster that reads it."""
        name, second = alone.members[0].buffer, self.clusters[number]
        names = name, self.edges(name, number)[0]
        return self.judge(self.together(alone, second, names, "stored", [name], {number}))

    def together(
        self,
        first: Cluster,
        second: Cluster,
        names: tuple[str, str],
        placement: Placement,
        shared: Sequence[str],
        inside: set[int],
    ) -> Pair:
        path = self.reach.between(_steps_of(first), _steps_of(second))
        first, second = self.with_copies(first, second), self.with_copies(second, first)
        common = common_axes(first, second, shared)
        between = next((self.describe(p) for p in positions(path)), None)
        pair = Pair(*names, placement, first, second, common, None, between, None, 0)
        pair = next(filter(_visits_same_points, mixed_order_pairs(pair, shared)), pair)
        if not _visits_same_points(pair):
            return pair
        merged = merge_clusters(pair.first, pair.second, pair.common)
        escaping = frozenset(b for b in merged.made if self.escapes(b, inside))
        merged = drop_local_stores(merged, escaping, self.expand)
        saved = first.bytes + second.bytes - merged.bytes
        return replace(pair, merged=merged, saved=saved, overwritten=self.overwritten(merged))

    def overwritten(self, merged: Cluster) -> str | None:
        """The reason why a value that the kernel reads would be overwritten before, if any."""
        for name in merged.reads:
            place = self.overwriting.get(name)
            if place is None:
                continue
            writer = self.describe(place)
            if writer in merged.made:
                if not reads_only_written_elements(merged, name):
                    return f"{writer} writes to {name} at other places than it is read"
            elif self.reach.leads(place, _steps_of(merged)):
                return f"{writer} has written to {name} before"
        return None

    def order_before_overwriters(self, merged: Cluster) -> None:
        """Record that a kernel runs before the steps that overwrite its inputs."""
        for name in merged.reads:
            place = self.overwriting.get(name)
            if place is not None and self.describe(place) not in merged.made:
                self.reach.order(_steps_of(merged), place)

    def with_copies(self, cluster: Cluster, other: Cluster) -> Cluster:
        """Inline into the cluster the producers that it reads and that `other` has inlined."""
        while names := other.inlined.keys() & cluster.reads:
            cluster = inline(cluster, other.inlined[min(names)], self.expand, copy=True)
        return cluster

    def judge(self, pair: Pair) -> _Judged:
        choice = choice_for(self.options, pair.first.names, pair.second.names, ordered=True)
        return _Judged(pair, *run_rules(pair, LEGALITY, PROFIT, self.options, choice), choice)

    # ---- bookkeeping ----

    def expand(self, facts: NestFacts, place: Place) -> tuple[tuple[str, Place], ...]:
        key = (facts.buffer, place)
        if key not in self.expanded:
            self.expanded[key] = expand_loads(facts, place)
        return self.expanded[key]

    def loading(self, name: str) -> list[int]:
        """The clusters that load a buffer from memory, in program order."""
        found = {n for reader in self.readers.get(name, ()) for n in self.where[reader]}
        found = {n for n in found if name in self.clusters[n].reads}
        return sorted(found, key=lambda n: self.clusters[n].first)

    def escapes(self, name: str, inside: set[int]) -> bool:
        """Does anything outside these clusters need the buffer?"""
        return name in self.kept or any(n not in inside for n in self.loading(name))

    def edges(self, name: str, number: int) -> list[str]:
        """The nests of a cluster that load a buffer directly."""
        return [reader for reader in self.readers[name] if number in self.where[reader]]

    def reader(self, name: str, number: int, other: int) -> str:
        """A nest of one cluster, but not of the other, that loads the buffer.

        If all such nests are copied into both clusters: the last nest of the cluster.
        """
        own = [reader for reader in self.edges(name, number) if other not in self.where[reader]]
        return own[0] if own else self.clusters[number].members[-1].buffer

    def describe(self, position: int) -> str:
        step = self.steps[position]
        return step.op if isinstance(step, ExternCall) else step.buffer

    def record(self, judged: _Judged, number: int) -> None:
        producer = judged.pair.producer
        for consumer in self.edges(producer, number):
            self.decisions.append(_decision(judged, producer, consumer))

    def add(self, alone: Cluster) -> None:
        self.clusters[alone.first] = alone
        self.where[alone.members[0].buffer] = [alone.first]

    def apply(self, pair: Pair, number: int) -> None:
        assert pair.merged is not None, "a fused pair has a cluster"
        if not pair.evaluated_on_demand:
            self.reach.join(_steps_of(pair.first), _steps_of(self.clusters[number]))
        self.clusters[number] = pair.merged
        self.order_before_overwriters(pair.merged)
        self.where.setdefault(pair.producer, []).append(number)


def _steps_of(cluster: Cluster) -> int:
    """The positions of all nests of a cluster, as a set for `Reachability`."""
    facts = (*(member.facts for member in cluster.members), *cluster.inlined.values())
    return sum(1 << position for position in {one.position for one in facts})


def _visits_same_points(pair: Pair) -> bool:
    """Do the nests of both visit the same points?"""
    rules = (legality.scatter_alone, legality.same_iteration_space, legality.same_point)
    return not any(rule(pair) for rule in rules)


def _with_reasons(judged: _Judged, copy: _Judged | None) -> _Judged:
    """A refusal to share a kernel, with the reasons against a copy added."""
    if copy is None:
        return judged
    pairs = zip(judged.verdicts, copy.verdicts, strict=True)
    return replace(judged, verdicts=tuple(one if one.reason else other for one, other in pairs))


def _decision(judged: _Judged, producer: str, consumer: str) -> Decision:
    siblings = judged.pair.placement == "siblings"
    return Decision(
        producer=producer,
        consumer=consumer,
        fused=judged.fused,
        relation="horizontal" if siblings else "vertical",
        choice=judged.choice,
        verdicts=judged.verdicts,
        bytes_saved=judged.pair.saved,
    )
