"""Compiles user functions on scores to loop programs: they are traced, lowered and scheduled.

Attention kernels contain the resulting loop nest.

    score_mod, mask_mod    →    seen[b, h, i, j] = where(i >= j, scores[b, h, i, j] * scale, -inf)

Inductor: `kernel/flex/common.py`, `build_subgraph_buffer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.fx import GraphModule

from inductor_lab.compiler.accelerate.flex_definitions import Functions
from inductor_lab.compiler.base.options import FusionOptions, Options
from inductor_lab.compiler.codegen.attention.attention_call import Inner
from inductor_lab.compiler.ir.program import Pointwise
from inductor_lab.compiler.lower.graph import lower_graph
from inductor_lab.compiler.rewrite.decompose.decompositions import Decomposition
from inductor_lab.compiler.schedule.passes import schedule_program
from inductor_lab.compiler.torch_door.torch_api import make_fx

Known: TypeAlias = dict[tuple[Any, ...], Inner | None]
"""Caches programs of user functions."""
BlockFunction: TypeAlias = Callable[..., tuple[Tensor, ...]]
"""A function of the user functions, whether to mask, and the blocks of a kernel."""


def seen(functions: Functions, masked: bool, scores: Tensor) -> tuple[Tensor, ...]:
    return (functions.seen(scores, masked),)


def seen_at(
    functions: Functions, masked: bool, scores: Tensor, places: Tensor
) -> tuple[Tensor, ...]:
    """Like `seen`, for scores[1, 1, columns, rows] at `places` (see `cpp_flash.py`).

    Positions beyond the end are clamped to the last one.
    """
    batch, head, row, column, last_row, last_column = places.unbind()
    columns, rows = (torch.arange(size) for size in scores.shape[2:])
    ends = (row + rows).minimum(last_row), (column + columns).minimum(last_column)
    at = replace(functions, places=(batch.view(1), head.view(1), *ends))
    return (at.seen(scores, masked),)


def slopes(
    functions: Functions, masked: bool, scores: Tensor, of_weights: Tensor, logs: Tensor,
    inner: Tensor,
) -> tuple[Tensor, ...]:  # fmt: skip
    return functions.slopes(scores, of_weights, logs, inner, masked)[:2]


RESULTS: Mapping[BlockFunction, tuple[str, ...]] = {
    seen: ("seen",), seen_at: ("scores",), slopes: ("weights", "slopes"),
}  # fmt: skip
"""The kernel variables to which the results are assigned."""


def inner_of(
    compute: BlockFunction, functions: Callable[[tuple[Tensor, ...]], Functions], masked: bool,
    blocks: Mapping[str, Tensor], read: list[Tensor], table: Mapping[Any, Decomposition],
) -> Inner | None:  # fmt: skip
    """Return the program, or None if it is not a single pointwise group.

    `blocks` has the blocks of a kernel by name.  `functions` returns the user functions, given the
    tensors that they read (`read`).  All tensors are fake.
    """

    def run(*given: Tensor) -> tuple[Tensor, ...]:
        return compute(functions(given[len(blocks) :]), masked, *given[: len(blocks)])

    traced = make_fx(run, decomposition_table=table)(*blocks.values(), *read)
    traced.graph.eliminate_dead_code()
    program = lower_graph(traced, compute.__name__, Options())
    schedule = schedule_program(program, FusionOptions(off=("recompute_work",)))  # no intermediates
    groups = schedule.groups
    pointwise = len(groups) == len(schedule.steps) == 1 and not program.constants
    if not pointwise or not all(isinstance(nest, Pointwise) for nest in groups[0].nests):
        return None
    return Inner(schedule, tuple(blocks), RESULTS[compute])


def text_of(function: Any) -> Any:
    """Return a value that compares user functions: the text of a graph, or the graph itself.

    A graph with its own tensors is only equal to itself.
    """
    if not isinstance(function, GraphModule):
        return function
    own = any(node.op == "get_attr" for node in function.graph.nodes)
    return function if own else function.code
