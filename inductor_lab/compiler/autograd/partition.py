"""Partition a joint graph into forward and backward: our partition function for AOTAutograd.

    joint:     x, dy ->  s = sin(x); c = cos(x); dx = dy * c                  ->  s, dx
    forward:   x     ->  s = sin(x)                                          ->  s, (saved) x
    backward:  x, dy ->  c = cos(x); dx = dy * c                             ->  dx

Inductor: `torch/_functorch/partitioners.py`, `min_cut_rematerialization_partition`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from inductor_lab.compiler.autograd.budget import Chooser
from inductor_lab.compiler.autograd.graphs import (
    Cut,
    Partition,
    PartitionChoice,
    PartitionDecision,
    Recomputed,
    SavedValue,
)
from inductor_lab.compiler.autograd.joint import with_lengths
from inductor_lab.compiler.autograd.recompute import (
    Price,
    asked_to_recompute,
    asked_to_save,
    estimated_flops,
    is_size,
)
from inductor_lab.compiler.autograd.sides import Sides, sort_sides
from inductor_lab.compiler.autograd.user_partition import Partitioner, saved_by
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.capture.fx_to_record import fx_graph
from inductor_lab.compiler.capture.operands import items_of, operand, writes_input
from inductor_lab.compiler.capture.text import target_text
from inductor_lab.compiler.torch_door import torch_api

aten = torch.ops.aten
GraphModule = torch.fx.GraphModule
SIZE_BYTES = 8
CUTS = 8
"""The number of other budgets that are computed for comparison; each takes one maximum flow."""


def partition(
    joint: GraphModule,
    joint_inputs: Any = None,
    *,
    num_fwd_outputs: int,
    memory_budget: float = 1.0,
    static_lifetime_input_indices: Sequence[int] | None = None,
    earlier: FxGraph | None = None,
    describe: bool = True,
    chosen_by: Partitioner | None = None,
    **unused: Any,
) -> tuple[GraphModule, GraphModule, Partition | None]:
    """Forward module, backward module, and the `Partition` (None without `describe`).

    The forward returns its `num_fwd_outputs` results, then the saved tensors, then the saved sizes;
    the backward takes saved sizes, saved tensors, tangents: AOTAutograd's calling convention.
    `earlier` is the record of the joint graph, for `came_from`; `chosen_by` is a user's
    partitioner.
    """
    joint.graph.eliminate_dead_code()
    sides = sort_sides(joint.graph, num_fwd_outputs)
    chooser = Chooser(sides)
    names = saved_by(chosen_by, chooser) if chosen_by else chooser.choose(memory_budget)
    saved = [node for node in sides.values if node.name in names]
    tensors = [node for node in saved if not is_size(node)]
    sizes = with_lengths(joint, [node for node in saved if is_size(node)])
    primals = [node for node in joint.graph.find_nodes(op="placeholder")]
    forward, backward = torch_api.extract_modules(
        joint,
        tensors,
        sizes,
        num_fwd_outputs=num_fwd_outputs,
        static_lifetime_input_nodes={primals[i] for i in static_lifetime_input_indices or ()},
    )
    _copy_before_written(forward, num_fwd_outputs)
    _recompute_late(backward, {node.name for node in sides.gradient})
    if not describe:
        return forward, backward, None
    return forward, backward, _describe(
        forward, backward, chooser, [*tensors, *sizes], memory_budget, earlier
    )


def _copy_before_written(forward: GraphModule, own: int) -> None:
    """Save a copy of an input that is written, in the forward or after it; the first `own` outputs
    are results.

    `x.copy_(new_x); return (y, (saved) x)`  →  `x' = clone(x); x.copy_(new_x); return (y, x')`
    """
    graph, writes = forward.graph, [node for node in forward.graph.nodes if writes_input(node)]
    written = torch_api.written_inputs(graph) | {operand(node).name for node in writes}
    output = graph.output_node()
    results = items_of(output, 0)
    for n in range(own, len(results)):
        node = results[n]
        if isinstance(node, torch.fx.Node) and node.op == "placeholder" and node.name in written:
            with graph.inserting_before(writes[0] if writes else output):
                results[n] = graph.call_function(aten.clone.default, (node,))
            results[n].meta = dict(node.meta)
    if results != items_of(output, 0):
        output.args = (tuple(results),)
        forward.recompile()


def _recompute_late(backward: GraphModule, gradient: set[str]) -> None:
    """Move each recomputed op to just before its first use, so that its result uses memory only
    then.

    `a' b' c'  da(a') db(b') dc(c')`  →  `a' da(a')  b' db(b')  c' dc(c')`
    """
    graph = backward.graph
    inputs = graph.find_nodes(op="placeholder")
    placed: set[torch.fx.Node] = set(inputs)
    cursor = inputs[-1] if inputs else graph._root
    for node in list(graph.nodes):
        if node.name not in gradient and node.op != "output":
            continue
        for step in _unplaced(node, placed):
            if step is not cursor.next:
                cursor.append(step)
            placed.add(step)
            cursor = step
    graph.lint()
    backward.recompile()


def _unplaced(node: torch.fx.Node, placed: set[torch.fx.Node]) -> Iterator[torch.fx.Node]:
    """`node` and all its ancestors that have no position yet, ancestors first."""
    if node in placed:
        return
    stack = [(node, iter(node.all_input_nodes))]
    seen = {node}
    while stack:
        current, inputs = stack[-1]
        missing = next((n for n in inputs if n not in placed and n not in seen), None)
        if missing is None:
            stack.pop()
            yield current
        else:
            seen.add(missing)
            stack.append((missing, iter(missing.all_input_nodes)))


def _describe(
    forward: GraphModule,
    backward: GraphModule,
    chooser: Chooser,
    saved: list[torch.fx.Node],
    memory_budget: float,
    earlier: FxGraph | None,
) -> Partition:
    in_backward = {node.name for node in backward.graph.nodes}
    decisions = tuple(_decisions(chooser, {node.name for node in saved}, in_backward))
    return Partition(
        forward=fx_graph(forward, "forward", earlier=earlier),
        backward=fx_graph(backward, "backward", earlier=earlier),
        saved=tuple(
            SavedValue(
                node.name,
                chooser.sides.nbytes.get(node, SIZE_BYTES),
                node.op == "placeholder",
                _why_saved(node, chooser),
            )
            for node in saved
        ),
        recomputed=tuple(_recomputed(chooser, decisions)),
        decisions=decisions,
        cut_bytes=chooser.kept_bytes(frozenset(node.name for node in saved)),
        memory_budget=memory_budget,
        bytes_if_all_saved=_eager_bytes(chooser.sides, chooser),
        bytes_if_min=chooser.least_bytes(),
        cuts=tuple(_cuts(chooser)),
    )


def _cuts(chooser: Chooser) -> Iterator[Cut]:
    """Cuts from budget 1 down to 0, each with the smallest budget that gives it."""
    most = least = None
    for names in chooser.ladder(CUTS):
        kept = chooser.kept_bytes(names)
        most = kept if most is None else most
        if least is None or kept < least:
            least = kept
            twice = chooser.recomputed_for(names)
            yield Cut(
                memory_budget=kept / most if most else 1.0,
                saved=tuple(node.name for node in chooser.sides.values if node.name in names),
                cut_bytes=kept,
                recomputed=len(twice),
                flops=sum(map(estimated_flops, twice)),
            )


def _decisions(
    chooser: Chooser, saved: set[str], in_backward: set[str]
) -> Iterator[PartitionDecision]:
    for node in chooser.sides.values:
        choice: PartitionChoice
        if node.name in saved:
            choice = "input" if node.op == "placeholder" else "saved"
            why = _why_saved(node, chooser)
        elif node.name not in in_backward:
            choice, why = "unneeded", "the backward does not need it"
        elif node in chooser.sides.forward:
            choice, why = "recomputed", _why_recomputed(node, chooser)
        else:
            choice, why = "backward", "the forward does not need it"
        yield PartitionDecision(node.name, choice, chooser.sides.nbytes[node], (why,))


def _why_saved(node: torch.fx.Node, chooser: Chooser) -> str:
    if node.op == "placeholder":
        return "an input: stays in memory anyway"
    if is_size(node):
        return "a size that shapes depend on"
    if asked_to_save(node):
        return "required by the checkpoint policy"
    if node.target is operator.getitem and node.all_input_nodes[0] in chooser.prices:
        node = node.all_input_nodes[0]
    if chooser.prices[node].price == Price.NEVER:
        return chooser.prices[node].reason
    if node in chooser.bans:
        return chooser.bans[node]
    if node in chooser.sides.outputs:
        return "an output of the forward: stays in memory anyway"
    return chooser.reason


def _why_recomputed(node: torch.fx.Node, chooser: Chooser) -> str:
    if asked_to_recompute(node):
        return "inside a checkpointed region"
    if node in chooser.bans:
        return f"recomputed to meet the memory budget, although: {chooser.bans[node]}"
    return chooser.prices[node].reason


def _recomputed(
    chooser: Chooser, decisions: tuple[PartitionDecision, ...]
) -> Iterator[Recomputed]:
    """Ops that run twice, without views and sizes, which cost nothing."""
    twice = {decision.node for decision in decisions if decision.choice == "recomputed"}
    for node in chooser.sides.values:
        price = chooser.prices[node]
        if node.name in twice and price.price > Price.FREE:
            flops, nbytes = estimated_flops(node), chooser.sides.nbytes[node]
            reason = _why_recomputed(node, chooser)
            why = f"{reason}; {flops:,} flops versus {nbytes:,} bytes"
            yield Recomputed(node.name, target_text(node.target), flops, why)


def _eager_bytes(sides: Sides, chooser: Chooser) -> int:
    """Bytes that eager mode keeps: the values that gradient formulas read, where a view counts as
    its base."""
    bases = set()
    for node in sides.needed:
        base = node
        while chooser.prices[base].price == Price.FREE and base.all_input_nodes:
            base = base.all_input_nodes[0]
        bases.add(base)
    return sum(sides.nbytes[base] for base in bases if base.op != "placeholder")
