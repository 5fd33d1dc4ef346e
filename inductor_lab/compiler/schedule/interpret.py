"""Interpret a schedule with torch: the reference for its kernels.

Groups run one after the other.  A load of an inlined producer is the value of the producer's body
at that place; all other nests of a group are computed in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import Any, TypeAlias

import torch

from inductor_lab.compiler.ir.expr import Const, Expr, Load, Masked, Temp, map_expr
from inductor_lab.compiler.ir.interpret import Run, evaluate, run_nest, stored
from inductor_lab.compiler.ir.program import ExternCall, Nest, Pointwise, Reduction, Scatter
from inductor_lab.compiler.schedule.demand import demand
from inductor_lab.compiler.schedule.facts import Place
from inductor_lab.compiler.schedule.schedule import Group, Schedule, ScheduleStep

Key: TypeAlias = tuple[str, Place]
"""A producer at a place."""


def run_schedule(schedule: Schedule, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The graph's outputs for the given tensors; see `Schedule.run`."""
    with torch.no_grad():
        run = Run(schedule.program, inputs)
        for step in schedule.steps:
            run_scheduled(run, step)
        return tuple(run.output(output) for output in schedule.program.outputs)


def run_scheduled(run: Run, step: ScheduleStep) -> None:
    """Run one group or call; its stored buffers are then in `run.env`."""
    if isinstance(step, ExternCall):
        run.call(step)
    else:
        for group in step.parts:
            _run_group(run, group)


def _run_group(run: Run, group: Group) -> None:
    for nest in group.nests:
        buffer = run.program.buffers[nest.buffer]
        values = _run_nest(run, nest, group)
        run.env[nest.buffer] = stored(values, buffer, run.symbols)
    for nest in group.nests:
        if nest.buffer not in group.stored:
            del run.env[nest.buffer]


def _run_nest(run: Run, nest: Nest, group: Group) -> torch.Tensor:
    """All elements of a nest.

    Producers are evaluated first, at the demanded places, over the axes of this nest.
    """
    device = run.device(run.program.buffers[nest.buffer].device)
    if isinstance(nest, Reduction) and nest.kind == "bisect":
        whole = _inline_producers(nest.body, group.inlined)
        return run_nest(replace(nest, body=whole), run.env, run.symbols, device)
    axes = (*nest.axes, *nest.reduce_axes)
    bodies = {key: body for key, body in demand(nest, group.inlined).items() if body is not None}
    every = (node for body in (*nest.roots, *bodies.values()) for node in body.walk())
    guarded = any(isinstance(node, Masked) for node in every)
    env = dict(run.env)
    temps: dict[Key, Temp] = {}
    for key in _in_order(bodies):
        body = _with_temps(bodies[key], temps)
        value = _unread_if_masked(body) if guarded else body
        name = f"t{len(temps)}"
        env[name] = evaluate(value, axes, env, run.symbols, device)
        temps[key] = Temp(name, body.dtype)
    if isinstance(nest, Scatter):
        nest = nest.rewritten(lambda value: _with_temps(value, temps))
    else:
        nest = replace(nest, body=_with_temps(nest.body, temps))
    return run_nest(nest, env, run.symbols, device)


def _inline_producers(body: Expr, producers: Mapping[str, Pointwise]) -> Expr:
    """The body with all producers inlined: a search evaluates it at places not known in advance."""

    def rebuild(node: Expr) -> Expr:
        if isinstance(node, Load) and node.buffer in producers:
            return rebuild(producers[node.buffer].at(node.index))
        return map_expr(node, rebuild, lambda index: index.substitute({}, rebuild))

    return rebuild(body)


def _in_order(bodies: Mapping[Key, Expr]) -> Iterable[Key]:
    """The keys in topological order: each after the producers that its body or its place loads."""
    needs = {
        key: [(load.buffer, load.index) for load in body.loads()] for key, body in bodies.items()
    }
    return (key for key in TopologicalSorter(needs).static_order() if key in bodies)


def _unread_if_masked(body: Expr) -> Expr:
    """The value for a consumer that uses it under a mask.

    Where the mask is false, the indices may be out of range, so nothing may be read there.
    """
    return Masked(Const(True, torch.bool), body, Const(0, body.dtype))


def _with_temps(body: Expr, temps: Mapping[Key, Temp]) -> Expr:
    """Replace loads of evaluated producers by temps, also inside gathered indices."""

    def rebuild(node: Expr) -> Expr:
        if isinstance(node, Load) and (node.buffer, node.index) in temps:
            return temps[node.buffer, node.index]
        return map_expr(node, rebuild, lambda index: index.substitute({}, rebuild))

    return rebuild(body)
