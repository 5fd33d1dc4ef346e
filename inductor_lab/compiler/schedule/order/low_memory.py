"""Limit combos if computing results early raises the peak memory of a graph.

A result of the graph needs memory whenever it is computed, so a combo may compute it early, unless
this raises the peak.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from inductor_lab.compiler.ir.program import LoopProgram, Step
from inductor_lab.compiler.schedule.fusion.combo import MAX_HELD
from inductor_lab.compiler.schedule.memory import made_by, new_values, plan_memory
from inductor_lab.compiler.schedule.schedule import Decision, MemoryPlan, ScheduleStep

Made: TypeAlias = tuple[tuple[ScheduleStep, ...], tuple[Decision, ...]]
"""Steps, and the decisions about combos."""


def limit_peak(
    program: LoopProgram, steps: Sequence[Step], make: Callable[[frozenset[str]], Made],
    share: bool = True,
) -> tuple[tuple[ScheduleStep, ...], tuple[Decision, ...], MemoryPlan]:  # fmt: skip
    """The steps, decisions and memory plan with the lower peak.

    `make` takes the buffers that a combo may allocate early.
    """
    scheduled, combos = make(frozenset(program.output_buffers))
    memory = plan_memory(program, scheduled, steps, share)
    if memory.peak_after > MAX_HELD and any(decision.fused for decision in combos):
        waiting, fewer = make(frozenset(new_values(program)))
        if [*map(made_by, waiting)] != [*map(made_by, scheduled)]:
            lower = plan_memory(program, waiting, steps, share)
            if lower.peak_after + MAX_HELD < memory.peak_after:
                return waiting, fewer, lower
    return scheduled, combos, memory
