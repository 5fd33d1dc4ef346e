"""What the user's functions make of scores, as programs: traced, lowered and scheduled as graphs
are.  Kernels of attention have the one loop nest that comes of it in their midst.

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
from inductor_lab.compiler.schedule.fusion.fuse import schedule_program
from inductor_lab.compiler.torch_door.torch_api import make_fx

Known: TypeAlias = dict[tuple[Any, ...], Inner | None]
"""Programs of users' functions, by what makes them equal."""
Making: TypeAlias = Callable[..., tuple[Tensor, ...]]
"""From functions, whether they mask, and blocks that a kernel has, what it needs of them."""


def seen(functions: Functions, masked: bool, scores: Tensor) -> tuple[Tensor, ...]:
    return (functions.seen(scores, masked),)


def seen_at(
    functions: Functions, masked: bool, scores: Tensor, places: Tensor
) -> tuple[Tensor, ...]:
    """Of scores[1, 1, columns, rows], where `places` has what `codegen/attention/cpp_flash.py`
    says; those past the ends are taken for the last ones."""
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


RESULTS: Mapping[Making, tuple[str, ...]] = {
    seen: ("seen",), seen_at: ("scores",), slopes: ("weights", "slopes"),
}  # fmt: skip
"""The variables of kernels that the results become."""


def inner_of(
    making: Making, functions: Callable[[tuple[Tensor, ...]], Functions], masked: bool,
    blocks: Mapping[str, Tensor], read: list[Tensor], table: Mapping[Any, Decomposition],
) -> Inner | None:  # fmt: skip
    """The program, or None if it is more than one pointwise nest.

    `blocks` are what a kernel has, by name, and `functions` what the user says, given what is
    `read`; all are fake.
    """

    def run(*given: Tensor) -> tuple[Tensor, ...]:
        return making(functions(given[len(blocks) :]), masked, *given[: len(blocks)])

    traced = make_fx(run, decomposition_table=table)(*blocks.values(), *read)
    traced.graph.eliminate_dead_code()
    program = lower_graph(traced, making.__name__, Options())
    schedule = schedule_program(program, FusionOptions(off=("recompute_work",)))  # nothing is kept
    groups = schedule.groups
    pointwise = len(groups) == len(schedule.steps) == 1 and not program.constants
    if not pointwise or not all(isinstance(nest, Pointwise) for nest in groups[0].nests):
        return None
    return Inner(schedule, tuple(blocks), RESULTS[making])


def text_of(function: Any) -> Any:
    """The text of a graph of the user's; with tensors of its own it is equal to none but itself."""
    if not isinstance(function, GraphModule):
        return function
    own = any(node.op == "get_attr" for node in function.graph.nodes)
    return function if own else function.code
