"""Fusion: which loop nests become one kernel.

One walk over the program, from its last step to its first.  When a producer is visited,
everybody who reads it has a cluster already, so the question is easy to put: does it vanish into
its only reader (inlined), into each of its readers (copied), does it join the kernel of one of them
(stored), or is it a kernel of its own?  Just before, the readers themselves may join, since they
share an input (siblings).

before:  buf0 = x + 1;  buf1 = buf0 * 2;  buf2 = sin(buf1)        three kernels
after:   buf2 = sin((x + 1) * 2)                                  one

Inductor: `scheduler.py`, `Scheduler.fuse_nodes`, which tries pairs in the order of a score, in up
to ten rounds; and `ir.py`, `StorageBox.realize`, which inlines while it lowers.
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
from inductor_lab.compiler.schedule.order.low_memory import low_enough
from inductor_lab.compiler.schedule.schedule import (
    Cost,
    Decision,
    Decisions,
    Group,
    Schedule,
    Verdict,
)


def schedule_program(program: LoopProgram, options: FusionOptions) -> Schedule:
    """Decide which nests become one kernel, in which order kernels run, and which storage they use.

    Nests that reach no output are dropped.  Raises BadOption if `options.off` names no profit rule.
    """
    BadOption.refuse_unknown("fusion.off", options.off, (*PROFIT, *combo.PROFIT))
    steps = live_steps(program)
    walk = Walk(program, steps, options)
    walk.run()
    calls = {p: step for p, step in enumerate(steps) if isinstance(step, ExternCall)}
    make = partial(make_steps, walk.clusters.values(), calls, program, options)
    scheduled, combos, memory = low_enough(program, steps, make)
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
    """What was decided on a write while the program was made."""
    verdicts = tuple(Verdict(a.rule, a.kind, a.reason) for a in write.answers)
    fused, names = write.in_place, (write.base, write.buffer)
    return Decision(*names, fused, "in place", choice=write.choice, verdicts=verdicts)


def live_steps(program: LoopProgram) -> tuple[Step, ...]:
    """The extern calls, and the nests that an output or an extern call needs."""
    needed = set(program.leaving)
    live: list[Step] = []
    for step in reversed(program.steps):
        if isinstance(step, ExternCall) or not needed.isdisjoint(written_by(step)):
            live.append(step)
            needed |= read_by(step)
    return tuple(reversed(live))
