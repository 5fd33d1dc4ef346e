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

from functools import partial

from inductor_lab.compiler.base.errors import BadOption
from inductor_lab.compiler.base.options import FusionOptions
from inductor_lab.compiler.ir.program import (
    ExternCall,
    LoopProgram,
    PartialWrite,
    Step,
    read_by,
    written_by,
)
from inductor_lab.compiler.schedule.cost import cluster_cost, extern_cost
from inductor_lab.compiler.schedule.fusion import combo
from inductor_lab.compiler.schedule.fusion.groups import make_steps
from inductor_lab.compiler.schedule.fusion.rules import PROFIT
from inductor_lab.compiler.schedule.fusion.walk import Walk
from inductor_lab.compiler.schedule.order.low_memory import limit_peak
from inductor_lab.compiler.schedule.schedule import (
    Cost,
    Decision,
    Decisions,
    Group,
    Schedule,
    Verdict,
)


def schedule_program(program: LoopProgram, options: FusionOptions) -> Schedule:
    """Decide which nests become one kernel, the order of kernels, and the storage of buffers.

    Dead nests are dropped.  Raises BadOption if `options.off` contains an unknown profit rule.
    """
    BadOption.refuse_unknown("fusion.off", options.off, (*PROFIT, *combo.PROFIT))
    steps = live_steps(program)
    walk = Walk(program, steps, options)
    walk.run()
    calls = {p: step for p, step in enumerate(steps) if isinstance(step, ExternCall)}
    make = partial(make_steps, walk.clusters.values(), calls, program, options)
    scheduled, combos, memory = limit_peak(program, steps, make)
    externs = sum((extern_cost(call, program.buffers) for call in calls.values()), Cost())
    nests = (cluster_cost(alone) for alone in walk.alone.values())
    groups = (step.cost for step in scheduled if isinstance(step, Group))
    return Schedule(
        program=program,
        steps=scheduled,
        decisions=Decisions((*walk.decisions, *combos, *map(_decision, program.partial_writes))),
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
