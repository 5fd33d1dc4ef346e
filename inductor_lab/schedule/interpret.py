"""Run a schedule with torch: what its kernels are meant to compute.

Group by group, as code generators see them: a load of an inlined producer is replaced by the producer's
body at that place, and everything else that a group makes is computed in full, nest by nest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from inductor_lab.ir.expr import Expr, Load, map_expr
from inductor_lab.ir.index import Index
from inductor_lab.ir.interpret import Run, run_nest, stored
from inductor_lab.ir.program import ExternCall, Nest
from inductor_lab.schedule.result import Group, Schedule


def run_schedule(schedule: Schedule, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The graph's outputs for real tensors; see `Schedule.run`."""
    with torch.no_grad():
        run = Run(schedule.program, inputs)
        for step in schedule.steps:
            if isinstance(step, ExternCall):
                run.call(step)
            else:
                _run_group(run, step)
        return tuple(run.output(output) for output in schedule.program.outputs)


def _run_group(run: Run, group: Group) -> None:
    for nest in group.nests:
        buffer = run.program.buffers[nest.buffer]
        whole = expanded(nest, group)
        values = run_nest(whole, run.env, run.symbols, run.device(buffer.device))
        run.env[nest.buffer] = stored(values, buffer, run.symbols)
    for nest in group.nests:
        if nest.buffer not in group.stored:
            del run.env[nest.buffer]


def expanded(nest: Nest, group: Group) -> Nest:
    """The nest with every load of an inlined producer replaced by the producer's body.

    before:  buf1[i0] = sin(buf0[i0 + 1])        with buf0[i0] = x[i0] * 2 inlined
    after:   buf1[i0] = sin(x[i0 + 1] * 2)

    The same producer at the same place becomes one shared subtree.
    """
    at_place: dict[Load, Expr] = {}
    done: dict[int, Expr] = {}
    alive: list[Expr] = []

    def index(place: Index) -> Index:
        return place.substitute({}, rebuild)

    def rebuild(node: Expr) -> Expr:
        if id(node) not in done:
            alive.append(node)
            if isinstance(node, Load) and node.buffer in group.inlined:
                done[id(node)] = inlined(node)
            else:
                done[id(node)] = map_expr(node, rebuild, index)
        return done[id(node)]

    def inlined(load: Load) -> Expr:
        if load not in at_place:
            producer = group.inlined[load.buffer]
            moved = dict(zip(producer.axes, load.index, strict=True))
            at_place[load] = rebuild(producer.body.substitute(moved))
        return at_place[load]

    return replace(nest, body=rebuild(nest.body))
