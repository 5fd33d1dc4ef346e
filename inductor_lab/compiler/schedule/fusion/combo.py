"""Combos: run independent groups of different sizes as one kernel (horizontal fusion).

    exp_avg0 = lerp(exp_avg0, grad0, 0.1)         one kernel of 768 elements
    exp_avg1 = lerp(exp_avg1, grad1, 0.1)    →    and 2,359,296 elements: two loop nests
                                                  one after another, shared by all threads

The nests are independent, so a combo saves only launches, and the threads that a small nest would
leave idle.  This helps an optimizer step, which runs a few operations on each of a hundred tensors.
Candidates are nests that could run at the same time: the next nest, and all others that are ready.

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
from inductor_lab.compiler.schedule.fusion.rules import choice_for, run_rules
from inductor_lab.compiler.schedule.schedule import Decision

MAX_POINTERS = 256
MAX_OPERATIONS = 4096
"""Limits of a combo: a GPU accepts 4 KiB of arguments, and large kernels compile slowly."""

MAX_HELD = 1 << 20
"""Bytes of intermediates that a combo may allocate earlier than without it.  Also: if combos raise
the peak of a graph by more than this, early results count too."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A question to the rules: may `cluster` run in one kernel with the clusters of `combo`?

    `kept` are buffers that may be allocated early: the results, which live to the end of the graph.
    If this raises the peak, only those that are computed in the storage of an input.
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
"""Legality rules and profit rules, in the order in which they run."""


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
    """Reductions, scans and scatters parallelize their own work."""
    others = (cluster for cluster in candidate.all if not is_pointwise(cluster))
    for member in (member for cluster in others for member in cluster.members):
        kind = type(member.facts.nest).__name__.lower()
        if kind != "pointwise":
            return f"{member.buffer} is a {kind}"
    return None


@profit
def combo_size(candidate: Candidate) -> str | None:
    """A kernel has a limited number of pointers, and should compile quickly."""
    pointers = sum(len(c.reads) + len(c.written) for c in candidate.all)
    if pointers > MAX_POINTERS:
        return f"the kernel would take {pointers} pointers, more than {MAX_POINTERS}"
    operations = sum(c.operations for c in candidate.all)
    if operations > MAX_OPERATIONS:
        return f"the kernel would contain {operations} operations"
    return None


@profit
def combo_near(candidate: Candidate) -> str | None:
    """A group that runs much too early finds no inputs in the cache, and its results stay alive."""
    distance = abs(candidate.cluster.first - candidate.combo[-1].first)
    return f"they are {distance} steps apart" if distance > FAR else None


@profit
def combo_held(candidate: Candidate) -> str | None:
    """Intermediates that are computed early occupy memory until they are read.

    Results do not count, unless they raise the peak of the graph.
    """
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
    """Add clusters to a combo; `others`, in program order, could run at the same time.

    Stops at the first cluster that is too far away.
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
    choice = choice_for(options, names, candidate.cluster.names, ordered=False)
    verdicts, fused = run_rules(candidate, LEGALITY, PROFIT, options, choice)
    return Decision(
        producer=candidate.combo[-1].members[-1].buffer,
        consumer=candidate.cluster.members[-1].buffer,
        fused=fused,
        relation="combo",
        choice=choice,
        verdicts=verdicts,
    )
