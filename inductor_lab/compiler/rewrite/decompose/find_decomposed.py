"""Finds the decompositions of a graph in the metadata of its nodes."""

from __future__ import annotations

from torch.fx import GraphModule, Node

from inductor_lab.compiler.capture.span import innermost
from inductor_lab.compiler.capture.text import target_text
from inductor_lab.compiler.rewrite.decompose.decomposition_record import Decomposed


def decompositions_of(module: GraphModule) -> tuple[Decomposed, ...]:
    """Every decomposed op of an ATen graph, in the order of the graph.

    The nodes of one call have the same original op, stack trace, autograd sequence number and
    captured node, and are consecutive (except for `detach` nodes of AOTAutograd).  A new run of
    such nodes is a new call.
    """
    runs: list[list[Node]] = []
    latest: object = None
    for node in module.graph.nodes:
        if node.op != "call_function" or _original(node) in ("None", "aten.detach.default"):
            continue
        captured = [source.name for source in node.meta.get("from_node", ())]
        key = (_original(node), node.meta.get("stack_trace"), node.meta.get("seq_nr"), captured)
        if key != latest:
            runs.append([])
        runs[-1].append(node)
        latest = key
    changed = [run for run in runs if any(str(n.target) != _original(n) for n in run)]
    return tuple(_decomposed(run) for run in changed)


def _original(node: Node) -> str:
    """The name of the original op; FX copies the operator object with the metadata."""
    return str(node.meta.get("original_aten"))


def _decomposed(run: list[Node]) -> Decomposed:
    return Decomposed(
        op=_original(run[0]),
        became=tuple(target_text(node.target).removeprefix("torch.ops.") for node in run),
        nodes=tuple(node.name for node in run),
        span=innermost(run[0].meta.get("stack_trace") or ""),
    )
