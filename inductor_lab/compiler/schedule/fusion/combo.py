"""Combos: independent kernels of different sizes that run as one.

    exp_avg0 = lerp(exp_avg0, grad0, 0.1)         one kernel of 768 elements
    exp_avg1 = lerp(exp_avg1, grad1, 0.1)    →    and 2,359,296 elements: two loop nests
                                                  one after another, shared by all threads

The nests have nothing to do with one another, so nothing is saved but the launches, and the
threads that a small nest leaves idle.  That pays for an optimizer's step, which is a handful of
operations on each of a hundred tensors.  Nests are compared if they could run at the same time:
when one is next, with those that are ready as well.

Inductor: `ForeachKernelSchedulerNode` in `scheduler.py`, `codegen/triton_combo_kernel.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.base.options import FusionOptions
from inductor_lab.compiler.ir.program import Buffer, Pointwise
from inductor_lab.compiler.ir.rules import rule_of
from inductor_lab.compiler.schedule.facts import storage_elements
from inductor_lab.compiler.schedule.fusion.cluster import Cluster
from inductor_lab.compiler.schedule.fusion.profit import FAR
from inductor_lab.compiler.schedule.fusion.rules import choice_on, judged
from inductor_lab.compiler.schedule.schedule import Decision

MAX_POINTERS = 256
MAX_OPERATIONS = 4096
"""The largest combo: a GPU takes 4 KiB of arguments, and long texts compile slowly."""

MAX_HELD = 1 << 20
"""Bytes of intermediates that a combo may make earlier than they would be; and by which combos may
raise the peak of a graph before results count as well."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """May `cluster` run in one kernel with the clusters of `combo`?

    `kept` are buffers that take no memory earlier: the results, which live to the end of the graph
    anyway; or, where that raises its peak, only those that are made in the storage of an input.
    """

    combo: tuple[Cluster, ...]
    cluster: Cluster
    kept: frozenset[str]

    @property
    def buffers(self) -> Mapping[str, Buffer]:
        return self.cluster.buffers

    @property
    def all(self) -> tuple[Cluster, ...]:
        return (*self.combo, self.cluster)


ComboRule = Callable[[Candidate], str | None]

LEGALITY: dict[str, ComboRule] = {}
PROFIT: dict[str, ComboRule] = {}
"""What must hold, and what should hold for it to pay; in the order they are asked."""


legality, profit = rule_of(LEGALITY), rule_of(PROFIT)


def is_pointwise(cluster: Cluster) -> bool:
    return all(isinstance(member.facts.nest, Pointwise) for member in cluster.members)


@legality
def combo_device(candidate: Candidate) -> str | None:
    """A kernel runs on one device."""
    names = [cluster.members[0].buffer for cluster in (candidate.combo[0], candidate.cluster)]
    here, there = (candidate.buffers[name].device for name in names)
    return None if here == there else f"{names[0]} is on {here}, {names[1]} on {there}"


@legality
def combo_pointwise(candidate: Candidate) -> str | None:
    """Reductions, scans and scatters divide their work among threads by themselves."""
    others = (cluster for cluster in candidate.all if not is_pointwise(cluster))
    for member in (member for cluster in others for member in cluster.members):
        kind = type(member.facts.nest).__name__.lower()
        if kind != "pointwise":
            return f"{member.buffer} is a {kind}"
    return None


@profit
def combo_size(candidate: Candidate) -> str | None:
    """A kernel takes so many pointers, and its text should stay quick to compile."""
    pointers = sum(len(c.reads) + len(c.written) for c in candidate.all)
    if pointers > MAX_POINTERS:
        return f"the kernel would take {pointers} pointers, more than {MAX_POINTERS}"
    operations = sum(c.operations for c in candidate.all)
    if operations > MAX_OPERATIONS:
        return f"the kernel would contain {operations} operations"
    return None


@profit
def combo_near(candidate: Candidate) -> str | None:
    """What runs long before its turn finds its inputs in no cache, and keeps its results."""
    distance = abs(candidate.cluster.first - candidate.combo[-1].first)
    return f"they are {distance} steps apart" if distance > FAR else None


@profit
def combo_held(candidate: Candidate) -> str | None:
    """Intermediates that are made early take memory until they are read; results do not, unless the
    peak of the graph is between."""
    held = sum(_bytes(c, c.written - candidate.kept) for c in candidate.all)
    if held <= MAX_HELD:
        return None
    return f"{bytes_text(held)} would be allocated early"


def _bytes(cluster: Cluster, names: Iterable[str]) -> int:
    buffers = (cluster.buffers[name] for name in names)
    return sum(storage_elements(b.layout) * b.dtype.itemsize for b in buffers)


def grow(
    combo: list[Cluster], others: Iterable[Cluster], kept: frozenset[str], options: FusionOptions
) -> Iterator[Decision]:
    """Add to a combo what may join it; `others`, in program order, could run at the same time.

    The first one that is too far away is the last one that is asked.
    """
    for cluster in others:
        candidate = Candidate(tuple(combo), cluster, kept)
        decision = judge(candidate, options)
        yield decision
        if decision.fused:
            combo.append(cluster)
        elif combo_near(candidate) is not None:
            return


def judge(candidate: Candidate, options: FusionOptions) -> Decision:
    """The decision on a candidate."""
    names = tuple(name for cluster in candidate.combo for name in cluster.names)
    choice = choice_on(options, names, candidate.cluster.names, ordered=False)
    verdicts, fused = judged(candidate, LEGALITY, PROFIT, options, choice)
    return Decision(
        producer=candidate.combo[-1].members[-1].buffer,
        consumer=candidate.cluster.members[-1].buffer,
        fused=fused,
        relation="combo",
        choice=choice,
        verdicts=verdicts,
    )
