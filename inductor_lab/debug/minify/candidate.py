"""A slice of a captured graph that runs standalone.

Any set of nodes forms a graph: values that it reads from other nodes become inputs with their
recorded values, and values that it does not use itself become results.  So a fault in the middle of
a model is isolated in a few steps, and no candidate fails because of a missing node.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Interpreter, Node

from inductor_lab.debug.compare.values import copies

CALLS = ("call_function", "call_method", "call_module")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A graph and its inputs.  `with_grad`: the call includes gradients."""

    module: GraphModule
    inputs: tuple[Any, ...]
    with_grad: bool = False

    @property
    def calls(self) -> tuple[Node, ...]:
        return tuple(node for node in self.module.graph.nodes if node.op in CALLS)

    @property
    def nodes(self) -> int:
        """Inputs, calls and the output."""
        return len([n for n in self.module.graph.nodes if n.op != "get_attr"])

    @property
    def elements(self) -> int:
        return sum(v.numel() for v in self.inputs if isinstance(v, torch.Tensor))

    def __str__(self) -> str:
        counted = (self.nodes, "node"), (len(self.inputs), "input"), (self.elements, "element")
        return ", ".join(f"{n:,} {what}{'' if n == 1 else 's'}" for n, what in counted)

    def with_inputs(self, inputs: Sequence[Any]) -> Candidate:
        return replace(self, inputs=tuple(inputs))


class _Recorder(Interpreter):
    """Records the values that each call reads, at the time of the call."""

    def __init__(self, module: GraphModule, wanted: Collection[str]) -> None:
        super().__init__(module)
        self.wanted = wanted
        self.read: dict[str, Any] = {}

    def run_node(self, n: Node) -> Any:
        if n.name in self.wanted:
            for given in n.all_input_nodes:
                if given.name not in self.wanted and given.name not in self.read:
                    self.read[given.name] = self.env[given]
        return super().run_node(n)


def keep(candidate: Candidate, kept: Collection[str]) -> Candidate:
    """Keep only these calls: values from other nodes become inputs, unused values become results.

    Calls whose value is not a tensor or number (a list, a size) are kept with their consumers.
    """
    kept = set(kept)
    while True:
        recorder = _Recorder(candidate.module, kept)
        with torch.set_grad_enabled(candidate.with_grad):
            recorder.run(*copies(candidate.inputs), enable_io_processing=False)
        others = {n for n, value in recorder.read.items()
                  if not isinstance(value, torch.Tensor | int | float | bool)}  # fmt: skip
        others = {n.name for n in candidate.calls if n.name in others}
        if not others:
            return _cut_out(candidate, kept, recorder.read)
        kept |= others


def _cut_out(candidate: Candidate, kept: Collection[str], read: Mapping[str, Any]) -> Candidate:
    graph, known = Graph(), dict[Node, Node]()
    inputs: list[Any] = []
    for node in candidate.module.graph.nodes:
        if node.name in read and node.op != "get_attr":
            known[node] = graph.placeholder(node.name)
            inputs.append(_as_input(read[node.name], candidate.with_grad))
    for node in candidate.module.graph.nodes:
        if node.name in kept or (node.op == "get_attr" and node.name in read):
            known[node] = graph.node_copy(node, lambda n: known[n])
    results = [
        known[node] for node in candidate.module.graph.nodes
        if node.name in kept and not any(user.name in kept for user in node.users)
    ]  # fmt: skip
    graph.output(tuple(results))
    module = GraphModule(candidate.module, graph)
    return replace(candidate, module=module, inputs=tuple(inputs))


def _as_input(value: Any, with_grad: bool) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().requires_grad_(with_grad and value.requires_grad)


def with_results(candidate: Candidate, wanted: Collection[str]) -> Candidate:
    """The same graph with some of its results, and the nodes that they need."""
    needed, waiting = set[str](), [n for n in candidate.calls if n.name in wanted]
    while waiting:
        node = waiting.pop()
        if node.name not in needed:
            needed.add(node.name)
            waiting.extend(n for n in node.all_input_nodes if n.op in CALLS)
    return keep(candidate, needed)


def results_of(candidate: Candidate) -> tuple[str, ...]:
    """The calls whose values the graph returns."""
    output = candidate.module.graph.output_node()
    return tuple(node.name for node in output.all_input_nodes if node.op in CALLS)


def resized(candidate: Candidate, old: int, new: int) -> Candidate:
    """Change every dimension of length `old`, and every number `old` in the graph, to `new`."""
    inputs = [_cut(value, old, new) for value in candidate.inputs]
    graph = Graph()
    known: dict[Node, Node] = {}

    def number(argument: Any) -> Any:
        is_size = type(argument) is int and argument == old
        return new if is_size else argument

    for node in candidate.module.graph.nodes:
        copied = graph.node_copy(node, lambda n: known[n])
        if node.op in CALLS and node.target is not operator.getitem:
            copied.args = torch.fx.node.map_aggregate(copied.args, number)
            copied.kwargs = torch.fx.node.map_aggregate(copied.kwargs, number)
        known[node] = copied
    module = GraphModule(candidate.module, graph)
    return replace(candidate, module=module, inputs=tuple(inputs))


def _cut(value: Any, old: int, new: int) -> Any:
    """The first `new` elements of each dimension of length `old`, with the same density."""
    if not isinstance(value, torch.Tensor) or old not in value.shape:
        return value
    part = value.detach()
    for dim, size in enumerate(value.shape):
        if size == old:
            part = part.narrow(dim, 0, new)
    if not value.dtype.is_floating_point and not value.dtype.is_complex:
        part = part % max(new, 1) if value.dtype is torch.int64 else part
    return part.clone(memory_format=torch.contiguous_format).requires_grad_(value.requires_grad)


def retyped(candidate: Candidate, old: torch.dtype, new: torch.dtype) -> Candidate:
    """Change every input of dtype `old`, and every such dtype in the graph, to `new`."""

    def changed(argument: Any) -> Any:
        return new if argument is old else argument

    graph, known = Graph(), dict[Node, Node]()
    for node in candidate.module.graph.nodes:
        copied = graph.node_copy(node, lambda n: known[n])
        copied.args = torch.fx.node.map_aggregate(copied.args, changed)
        copied.kwargs = torch.fx.node.map_aggregate(copied.kwargs, changed)
        known[node] = copied
    inputs = tuple(
        v.detach().to(new).requires_grad_(v.requires_grad)
        if isinstance(v, torch.Tensor) and v.dtype is old else v
        for v in candidate.inputs
    )  # fmt: skip
    return replace(candidate, module=GraphModule(candidate.module, graph), inputs=inputs)


def lengths(candidate: Candidate) -> Iterator[int]:
    """Lengths of dimensions, the longest first."""
    found = {s for v in candidate.inputs if isinstance(v, torch.Tensor) for s in v.shape}
    yield from sorted((size for size in found if size > 1), reverse=True)
