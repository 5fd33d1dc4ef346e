"""Partition the joint graph: what runs in the forward, what in the backward, and what is saved.

In:    the joint graph that AOTAutograd traced: results and gradients in one FX graph.
Out:   two FX graphs.  The forward also returns the saved values; the backward takes them.

    joint      primals, tangents:  a = relu(x);  g = tangents * (a > 0)   ->  a, g
    forward    primals:            a = relu(x)                           ->  a, (saved) a
    backward   a, tangents:        g = tangents * (a > 0)                ->  g

Everything that depends on a tangent is backward; everything else is forward.  A forward value that
the backward reads is saved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch.fx import Graph, GraphModule, Node


@dataclass(frozen=True)
class Partition:
    """The joint graph and its two halves."""

    joint: GraphModule
    forward: GraphModule
    backward: GraphModule
    results: int
    saved: list[str]

    def __str__(self) -> str:
        return f"{self.joint.graph}\nsaved for the backward: {', '.join(self.saved)}"

    def run(self, *args: Any) -> list[Any]:
        """The forward, then the backward; arguments and results are those of the joint graph."""
        given = dict(zip(inputs_of(self.joint), args, strict=True))
        out = self.forward(*(given[name] for name in inputs_of(self.forward)))
        given |= zip(self.saved, out[self.results :], strict=True)
        gradients = self.backward(*(given[name] for name in inputs_of(self.backward)))
        return [*out[: self.results], *gradients]


def inputs_of(module: GraphModule) -> list[str]:
    return [node.name for node in module.graph.find_nodes(op="placeholder")]


def partition(joint: GraphModule, results: int) -> Partition:
    """Choose what is saved, and build the two graphs.

    The first `results` outputs of the joint graph are results, the others are gradients.  Inputs
    whose names start with "tangents" are gradients of the results.
    """
    joint.graph.eliminate_dead_code()
    nodes = list(joint.graph.nodes)
    outputs: Any = joint.graph.output_node().args[0]
    inputs = [node for node in nodes if node.op == "placeholder"]
    tangents = [node for node in inputs if node.name.startswith("tangents")]
    primals = [node for node in inputs if node not in tangents]
    in_backward = set(tangents)
    for node in nodes[:-1]:
        in_backward |= {node} if in_backward.intersection(node.all_input_nodes) else set()
    read = {each for node in in_backward for each in node.all_input_nodes}.union(outputs[results:])
    saved = [node for node in nodes if node in read - in_backward]
    before = [node for node in nodes if node not in in_backward]
    forward = extract(joint, primals, before, [*outputs[:results], *saved])
    after = [node for node in nodes if node in in_backward]
    backward = extract(joint, [*saved, *tangents], after, outputs[results:])
    return Partition(joint, forward, backward, results, [node.name for node in saved])


def extract(
    joint: GraphModule, inputs: list[Node], body: list[Node], outputs: Sequence[Any]
) -> GraphModule:
    """A graph with these inputs, the nodes of `body` that are needed, and these outputs."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in inputs:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = dict(node.meta)
    for node in body:
        if node.op not in ("placeholder", "output") and node not in copies:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    output = graph.output(tuple(copies[n] if isinstance(n, Node) else n for n in outputs))
    output.meta = dict(joint.graph.output_node().meta)
    graph.eliminate_dead_code()
    return GraphModule(joint, graph)


# What the full compiler does differently
#
# - compiler/autograd/mincut.py: a minimum cut of the graph chooses the saved values.  A cheap value
#   is computed again in the backward if that saves memory (recompute.py decides what is cheap).
# - compiler/autograd/budget.py: `memory_budget` trades memory for time.
# - compiler/autograd/partition.py: sizes are saved too; recomputed values move next to their use.
