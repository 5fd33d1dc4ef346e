"""Run loop programs and schedules in float64, and keep the values of all buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from inductor_lab.compiler.ir.expr import (
    Const,
    Expr,
    IndexValue,
    Load,
    Masked,
    Op,
    SizeValue,
    map_expr,
)
from inductor_lab.compiler.ir.interpret import Run, run_step
from inductor_lab.compiler.ir.program import (
    ExternArg,
    ExternCall,
    LoopProgram,
    Scatter,
    Step,
    read_by,
)
from inductor_lab.compiler.schedule.interpret import run_scheduled
from inductor_lab.compiler.schedule.schedule import Group, Schedule
from inductor_lab.debug.compare.values import WIDE

DRAWN = frozenset(["philox_uniform", "philox_normal", "philox_bits"])
"""Operations whose result depends on the bits of the dtype: they keep their dtype."""
REINTERPRETED = frozenset(["bitcast"])
"""Operations that have no meaning in another dtype."""


class NotWide(Exception):
    """Raised for a program that has another meaning in float64."""


def wide_program(program: LoopProgram) -> LoopProgram:
    """The program with float64 in place of every float dtype; raises NotWide."""
    buffers = program.buffers.items()
    return replace(
        program,
        buffers={n: replace(b, dtype=WIDE.get(b.dtype, b.dtype)) for n, b in buffers},
        steps=tuple(map(_wide_step, program.steps)),
        constants={n: t.to(WIDE.get(t.dtype, t.dtype)) for n, t in program.constants.items()},
    )


def wide_schedule(schedule: Schedule) -> Schedule:
    """The schedule with float64 in place of every float dtype; raises NotWide."""
    steps = tuple(
        _wide_group(step) if isinstance(step, Group) else _wide_step(step)
        for step in schedule.steps
    )
    return replace(schedule, program=wide_program(schedule.program), steps=steps)


def _wide_group(group: Group) -> Group:
    return replace(
        group,
        nests=tuple(map(_wide_step, group.nests)),
        inlined={name: _wide_step(nest) for name, nest in group.inlined.items()},
        combined=tuple(map(_wide_group, group.combined)),
    )


def _wide_step(step: Any) -> Any:
    if isinstance(step, ExternCall):
        return replace(
            step,
            args=tuple(map(_wide_argument, step.args)),
            kwargs=tuple((name, _wide_argument(value)) for name, value in step.kwargs),
        )
    done: dict[int, Expr] = {}
    if isinstance(step, Scatter):
        return step.rewritten(lambda value: _wide_value(value, done))
    return replace(step, body=_wide_value(step.body, done))


def _wide_argument(argument: ExternArg) -> ExternArg:
    if isinstance(argument, tuple):
        return tuple(map(_wide_argument, argument))
    return WIDE.get(argument, argument) if isinstance(argument, torch.dtype) else argument


def _wide_value(expr: Expr, done: dict[int, Expr]) -> Expr:
    def rebuild(node: Expr) -> Expr:
        if id(node) not in done:
            done[id(node)] = _retyped(
                map_expr(node, rebuild, lambda i: i.substitute({}, rebuild)), node
            )
        return done[id(node)]

    return rebuild(expr)


def _retyped(node: Expr, old: Expr) -> Expr:
    if isinstance(node, Op) and node.name in REINTERPRETED:
        raise NotWide("it looks at the bits of a number")
    if isinstance(node, Masked) or node.dtype not in WIDE:
        return node
    wide = WIDE[node.dtype]
    match node:
        case Op(name=name, origins=origins) if name in DRAWN:
            return Op("convert", (node,), wide, origins)
        case Op() | Load() | Const() | SizeValue() | IndexValue():
            return replace(node, dtype=wide)
    return node


@dataclass(frozen=True)
class Ran:
    """The result of running a program: outputs, buffers by name, and values of symbols."""

    outputs: tuple[Any, ...]
    buffers: Mapping[str, torch.Tensor]
    symbols: Mapping[Any, Any]


def run_loops(
    program: LoopProgram, inputs: Sequence[Any], given: Mapping[str, torch.Tensor] | None = None
) -> Ran:
    """Run the nests one by one; buffers in `given` keep their value (random numbers)."""
    run = Run(program, inputs)
    with torch.no_grad():
        for step in program.steps:
            run_step(run, step)
            for name in given or ():
                if name in run.env:
                    run.env[name] = (given or {})[name].to(run.env[name].dtype)
        outputs = tuple(run.output(output) for output in program.outputs)
    return Ran(outputs, run.env, run.symbols)


def run_groups(schedule: Schedule, inputs: Sequence[Any]) -> Ran:
    """Run the groups one by one; keeps the buffers that are stored in memory."""
    run = Run(schedule.program, inputs)
    with torch.no_grad():
        for step in schedule.steps:
            run_scheduled(run, step)
        outputs = tuple(run.output(output) for output in schedule.program.outputs)
    return Ran(outputs, run.env, run.symbols)


def of_group(schedule: Schedule, group: Group) -> LoopProgram:
    """A group's nests as a program: its inputs are its reads, its outputs all buffers it computes.

    A producer that is inlined in several groups is in each of them.  The buffer that a scatter
    updates is in the group of the scatter, with its own producers.
    """
    made = {nest.buffer for part in group.parts for nest in (*part.nests, *part.inlined.values())}
    made |= {nest.base for part in group.parts for nest in part.nests if isinstance(nest, Scatter)}
    nests = [step for step in schedule.program.steps if not isinstance(step, ExternCall)]
    elsewhere = _in_no_memory(schedule)
    for nest in reversed(nests):
        if nest.buffer in made:
            made |= read_by(nest) & elsewhere
    steps: list[Step] = [nest for nest in nests if nest.buffer in made]
    return replace(schedule.program, steps=tuple(steps))


def _in_no_memory(schedule: Schedule) -> frozenset[str]:
    """Buffers that are inlined into all their consumers."""
    parts = [part for group in schedule.groups for part in group.parts]
    inlined = {name for part in parts for name in part.inlined}
    return frozenset(inlined.difference(*(part.stored for part in parts)))
