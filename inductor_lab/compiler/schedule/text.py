"""Schedules and decisions as text.

```
Schedule(kernels 3 unfused -> 1 fused, memory passes 6 -> 2, 66.7% saved)
fused_add_mul_sin_0  i0<10000000          # 2 passes, 80.0 MB
  buf0[i0] : inlined
    = add(x[i0], 1.0)
```

Inductor: `TORCH_LOGS=fusion` and `TORCH_LOGS=schedule`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from inductor_lab.compiler.base.display import bytes_text, counted
from inductor_lab.compiler.ir.expr import NO_ORIGINS
from inductor_lab.compiler.ir.program import ExternCall, LoopProgram, Nest
from inductor_lab.compiler.ir.text import TextLine, axes_text, extern_lines, nest_lines
from inductor_lab.compiler.schedule.schedule import Cost, Decision, Group, MemoryPlan, Schedule

Role: TypeAlias = Literal["stored", "inlined", "register"]

_CHOICES = {
    "rules": "the rules decided",
    "forced": "forced by options",
    "forbidden": "forbidden by options",
    "disabled": "fusion is switched off by options",
}


def schedule_text(schedule: Schedule) -> str:
    """The complete schedule: totals, kernels in order, memory."""
    return "\n".join(text.rstrip() for text, _ in schedule_lines(schedule)) + "\n"


def schedule_lines(schedule: Schedule) -> tuple[TextLine, ...]:
    """Every line, with its FX nodes."""
    lines: list[TextLine] = [
        (repr(schedule), NO_ORIGINS),
        (f"unfused: {cost_text(schedule.before)}", NO_ORIGINS),
        (f"fused:   {cost_text(schedule.after)}", NO_ORIGINS),
    ]
    position = positions(schedule.program)
    for step in schedule.steps:
        lines.append(("", NO_ORIGINS))
        if isinstance(step, ExternCall):
            lines.extend(extern_lines(step, schedule.program.buffers))
        else:
            lines.extend(group_lines(step, schedule, position))
    lines.append(("", NO_ORIGINS))
    lines.extend((text, NO_ORIGINS) for text in memory_lines(schedule.memory))
    return tuple(lines)


def positions(program: LoopProgram) -> dict[str, int]:
    """The position of each nest in the program, by the name of its buffer."""
    return {nest.buffer: number for number, nest in enumerate(program.nests)}


def group_lines(
    group: Group, schedule: Schedule, position: Mapping[str, int]
) -> Iterable[TextLine]:
    """One group: its name and outer axes, then its nests in program order with the role of each."""
    if group.combined:
        parts = counted(len(group.combined), "part")
        head = f"{group.name}  # {parts}, {cost_text(group.cost)}"
        yield head, group.origins
        for part in group.combined:
            inner = group_lines(part, schedule, position)
            yield from ((f"  {text}", origins) for text, origins in inner)
        return
    points = axes_text(group.axes)
    if group.in_parts is not None:
        points += f" by {axes_text(group.in_parts.axes)}"
    yield f"{group.name}({points})  # {cost_text(group.cost)}", group.origins
    for role, nest in nests_with_roles(group, position):
        for count, (text, origins) in enumerate(
            nest_lines(nest, schedule.program.buffers.get(nest.buffer))
        ):
            yield f"  {role:<8} {text}" if count == 0 else f"           {text}", origins


def nests_with_roles(group: Group, position: Mapping[str, int]) -> Iterator[tuple[Role, Nest]]:
    """The nests of a group, ordered by the positions of their buffers, with the role of each."""
    nests = (*group.inlined.values(), *group.nests)
    for nest in sorted(nests, key=lambda nest: position.get(nest.buffer, len(position))):
        if nest.buffer in group.inlined:
            yield "inlined", nest
        else:
            yield ("stored" if nest.buffer in group.stored else "register"), nest


def memory_lines(plan: MemoryPlan) -> Iterable[str]:
    """The memory plan: peaks, then storage reuse."""
    yield f"memory {peak_text(plan)}"
    for new, old in plan.reuse.items():
        yield f"  {new} reuses the storage of {old}" + (" in place" * (new in plan.in_place))


def memory_text(plan: MemoryPlan) -> str:
    """The memory plan as it is printed."""
    return "\n".join(memory_lines(plan)) + "\n"


MORE = "; fused kernels allocate some results earlier and keep their inputs alive longer"
"""The reason if the peak after fusion is higher than the unfused peak."""


def peak_text(plan: MemoryPlan) -> str:
    """`peak: 12.0 kB without fusion and reuse -> 4.0 kB (8.0 kB without reuse)`."""
    unfused, planned = bytes_text(plan.peak_unfused), bytes_text(plan.peak_after)
    alone = f" ({bytes_text(plan.peak_before)} without reuse)"
    alone = alone if plan.peak_before != plan.peak_after else ""
    more = MORE if plan.peak_after > plan.peak_unfused else ""
    return f"peak: {unfused} without fusion and reuse -> {planned}{alone}{more}"


def cost_text(cost: Cost) -> str:
    """`1 kernel, 2 passes, 40.0 MB read, 40.0 MB written, 120,000,000 flops`."""
    moved = f"{bytes_text(cost.bytes_read)} read, {bytes_text(cost.bytes_written)} written"
    done = f"{counted(cost.kernels, 'kernel')}, {counted(cost.passes, 'pass')}"
    return f"{done}, {moved}, {cost.flops:,} flops"


def decision_text(decision: Decision) -> str:
    """One decision, with a line for each rule: its kind, its name, and ok or the reason against."""
    lines = [decision_head(decision)]
    lines.append(f"  saves {bytes_text(decision.bytes_saved)} of memory traffic")
    width = max((len(verdict.rule) for verdict in decision.verdicts), default=0)
    for verdict in decision.verdicts:
        answer = "ok" if verdict.reason is None else f"no: {verdict.reason}"
        lines.append(f"  {verdict.kind:<8}  {verdict.rule:<{width}}  {answer}")
    return "\n".join(lines)


def decision_head(decision: Decision) -> str:
    """`buf0 -> buf1: fused (vertical; the rules decided)`."""
    done = "in place" if decision.relation == "in place" else "fused"
    head = f"{decision.producer} -> {decision.consumer}: {'' if decision.fused else 'not '}{done}"
    return f"{head} ({decision.relation}; {_CHOICES[decision.choice]})"
