"""Fusion: decide which loop nests become one kernel.

The scheduler visits the steps in reverse order, consumers before producers.  When it visits a
producer, all its readers already have a cluster.  So there are four possibilities: the producer is
inlined into its only reader (inlined) or into each of its readers (copied), it is computed in the
kernel of one reader (stored), or it becomes a separate kernel.  Before that, the readers may be
fused with each other, since they share an input (siblings).

before:  buf0 = x + 1;  buf1 = buf0 * 2;  buf2 = sin(buf1)        three kernels
after:   buf2 = sin((x + 1) * 2)                                  one

Inductor: `scheduler.py`, `Scheduler.fuse_nodes`, which tries pairs ordered by score, in up to ten
rounds; and `ir.py`, `StorageBox.realize`, which inlines during lowering.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from inductor_lab.compiler import library_choice
from inductor_lab.compiler.base.options import FusionOptions, Options
from inductor_lab.compiler.ir.program import (
    ExternCall,
    LoopProgram,
    PartialWrite,
    Step,
    read_by,
    written_by,
)
from inductor_lab.compiler.schedule.cost import cluster_cost, extern_cost
from inductor_lab.compiler.schedule.fusion.cluster import Cluster
from inductor_lab.compiler.schedule.fusion.groups import make_steps
from inductor_lab.compiler.schedule.fusion.walk import Walk
from inductor_lab.compiler.schedule.memory import plan_memory
from inductor_lab.compiler.schedule.order.low_memory import limit_peak
from inductor_lab.compiler.schedule.schedule import (
    Cost,
    Decision,
    Decisions,
    Group,
    MemoryPlan,
    Schedule,
    ScheduleStep,
    Verdict,
)


@dataclass
class ScheduleFacts:
    """The facts of passes over schedules.

    options  of the compilation; fusion: those of this part
    trained  a backward belongs to the graph
    choices  the measurements of passes, in order; passes append to it
    """

    options: Options
    fusion: FusionOptions
    trained: bool = False
    choices: list[library_choice.Choice] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Draft:
    """A schedule under construction.

    steps     the live steps of the program
    clusters  the nests of each kernel
    walk      decides on fusion; `walk.alone` has each nest as a cluster
    share     buffers reuse the storage of dead buffers
    ordered   kernels in order, decisions about combos, and the memory plan; None before `combos`
    """

    program: LoopProgram
    steps: tuple[Step, ...]
    walk: Walk
    clusters: tuple[Cluster, ...]
    decisions: tuple[Decision, ...] = ()
    share: bool = False
    ordered: tuple[tuple[ScheduleStep, ...], tuple[Decision, ...], MemoryPlan] | None = None

    @property
    def calls(self) -> dict[int, ExternCall]:
        """The extern calls by their position."""
        return {p: step for p, step in enumerate(self.steps) if isinstance(step, ExternCall)}


def draft_of(program: LoopProgram, fusion: FusionOptions) -> Draft:
    """The simplest schedule: one kernel per nest that an output or an extern call needs."""
    steps = live_steps(program)
    walk = Walk(program, steps, fusion)
    return Draft(program, steps, walk, tuple(walk.alone.values()))


def fuse(draft: Draft, facts: ScheduleFacts) -> Draft:
    """Fuse nests into one kernel if the rules allow it."""
    walk = draft.walk
    walk.run()
    clusters, decisions = tuple(walk.clusters.values()), tuple(walk.decisions)
    return replace(draft, clusters=clusters, decisions=decisions)


def share_storage(draft: Draft, facts: ScheduleFacts) -> Draft:
    """Let buffers reuse the storage of dead buffers (`schedule/memory.py`)."""
    return replace(draft, share=True)


def combos(draft: Draft, facts: ScheduleFacts) -> Draft:
    """Combine small independent kernels (`schedule/fusion/combo.py`)."""
    if not (facts.fusion.enabled and facts.fusion.combos):
        return draft
    program, fusion = draft.program, facts.fusion
    make = partial(make_steps, draft.clusters, draft.calls, program, fusion)
    return replace(draft, ordered=limit_peak(program, draft.steps, make, draft.share))


def finish(draft: Draft, facts: ScheduleFacts) -> Schedule:
    """The schedule: kernels and calls in order, with the memory plan and the costs."""
    program, calls = draft.program, draft.calls
    if draft.ordered is None:
        alone = replace(facts.fusion, combos=False)
        scheduled, combined = make_steps(draft.clusters, calls, program, alone, frozenset())
        memory = plan_memory(program, scheduled, draft.steps, draft.share)
    else:
        scheduled, combined, memory = draft.ordered
    externs = sum((extern_cost(call, program.buffers) for call in calls.values()), Cost())
    nests = (cluster_cost(alone) for alone in draft.walk.alone.values())
    groups = (step.cost for step in scheduled if isinstance(step, Group))
    writes = map(_decision, program.partial_writes)
    return Schedule(
        program=program,
        steps=scheduled,
        decisions=Decisions((*draft.decisions, *combined, *writes)),
        memory=memory,
        before=sum(nests, externs),
        after=sum(groups, externs),
    )


def _decision(write: PartialWrite) -> Decision:
    """The decision about a write that was made during lowering."""
    verdicts = tuple(Verdict(a.rule, a.kind, a.reason) for a in write.answers)
    fused, names = write.in_place, (write.base, write.buffer)
    return Decision(*names, fused, "in place", choice=write.choice, verdicts=verdicts)


def live_steps(program: LoopProgram) -> tuple[Step, ...]:
    """The extern calls, and the nests that an output or an extern call needs."""
    needed = set(program.output_buffers)
    live: list[Step] = []
    for step in reversed(program.steps):
        if isinstance(step, ExternCall) or not needed.isdisjoint(written_by(step)):
            live.append(step)
            needed |= read_by(step)
    return tuple(reversed(live))
