"""Which nodes of a joint graph belong to the forward, which to the backward, and the values
between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch

from inductor_lab.compiler.autograd.joint import is_tangent
from inductor_lab.compiler.capture.fx_to_record import is_backward
from inductor_lab.compiler.capture.operands import writes_input
from inductor_lab.compiler.capture.text import node_value
from inductor_lab.compiler.torch_door.torch_api import nbytes_hint


@dataclass(frozen=True, eq=False)
class Sides:
    """The nodes of a joint graph, by direction.

    forward   nodes that the forward's outputs and its writes to inputs need
    gradient  nodes that depend on the gradients of the outputs (the tangents)
    needed    values outside `gradient` that it reads, or that are gradients themselves
    values    `needed` and all their ancestors, in order: the candidates of the cut
    outputs   results of the forward
    nbytes    size of each of `values`
    """

    forward: frozenset[torch.fx.Node]
    gradient: frozenset[torch.fx.Node]
    needed: frozenset[torch.fx.Node]
    values: tuple[torch.fx.Node, ...]
    outputs: frozenset[torch.fx.Node]
    nbytes: Mapping[torch.fx.Node, int]


def sort_sides(graph: torch.fx.Graph, num_fwd_outputs: int) -> Sides:
    """Sort the nodes of a joint graph; its first `num_fwd_outputs` results are those of the
    forward."""
    results = graph.output_node().args[0]
    assert isinstance(results, list | tuple), "a joint graph returns a tuple"
    outputs = _nodes(results[:num_fwd_outputs])
    gradients = _nodes(results[num_fwd_outputs:])
    gradient = _depends_on_tangents(graph)
    needed = {node for node in gradients if node not in gradient}
    needed.update(
        node for user in gradient for node in user.all_input_nodes if node not in gradient
    )
    written = filter(writes_input, graph.nodes)
    ancestors = _ancestors(needed)
    values = tuple(node for node in graph.nodes if node in ancestors)
    return Sides(
        forward=_ancestors(node for node in (*outputs, *written) if node not in gradient),
        gradient=gradient,
        needed=frozenset(needed),
        values=values,
        outputs=frozenset(outputs),
        nbytes={node: nbytes_hint(node_value(node)) for node in values},
    )


def returns_several(node: torch.fx.Node) -> bool:
    """Does a node return several values, which other nodes extract?"""
    return isinstance(node_value(node), list | tuple | dict)


def _nodes(results: Iterable[object]) -> list[torch.fx.Node]:
    return [node for node in results if isinstance(node, torch.fx.Node)]


def _depends_on_tangents(graph: torch.fx.Graph) -> frozenset[torch.fx.Node]:
    found: set[torch.fx.Node] = set()
    for node in graph.nodes:
        starts = is_tangent(node) or (is_backward(node) and _writes(node))
        if node.op != "output" and (starts or any(n in found for n in node.all_input_nodes)):
            found.add(node)
    return frozenset(found)


def _writes(node: torch.fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return bool(getattr(schema, "is_mutable", False))


def _ancestors(nodes: Iterable[torch.fx.Node]) -> frozenset[torch.fx.Node]:
    frontier = list(nodes)
    found = set(frontier)
    while frontier:
        for node in frontier.pop().all_input_nodes:
            if node not in found:
                found.add(node)
                frontier.append(node)
    return frozenset(found)
