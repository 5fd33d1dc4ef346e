"""Find the node that wrote the value that another node reads.

`x.sin()` after `x[0].fill_(1)` reads the value of `fill_`.  So a lost write is blamed on the
writing node, and not on the first node that reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.blame.run_graphs import Keeping, may_write
from inductor_lab.debug.blame.stages import Difference, Values, same_numbers
from inductor_lab.debug.compare.values import AFTER


@dataclass(frozen=True)
class WrittenRead:
    """A node reads `source`, whose memory `writer` wrote last; `value` is its value then."""

    source: str
    writer: str
    value: torch.Tensor


Reads = Mapping[str, Sequence[WrittenRead]]
"""Node → its reads of written memory; a placeholder reads its value after the call."""


@dataclass(eq=False)
class Writers(Keeping):
    """Runs a graph in float64 and records the last writer of each storage."""

    wide: bool = True
    keep: bool = False
    reads: dict[str, list[WrittenRead]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._last: dict[int, str] = {}

    def run_node(self, n: Node) -> Any:
        nodes = [given for given in n.all_input_nodes if _is_strided(self.env.get(given))]
        given = [self.env[node] for node in nodes]
        for node, value in zip(nodes, given, strict=True):
            self.read(n.name, node.name, value)
        versions = [value._version for value in given]
        result = super().run_node(n)
        if may_write(n):
            for value, before in zip(given, versions, strict=True):
                if value._version > before:
                    self._last[_storage(value)] = n.name
        return result

    def read(self, reader: str, source: str, value: torch.Tensor) -> None:
        writer = self._last.get(_storage(value))
        if writer is not None:
            found = WrittenRead(source, writer, value.detach().clone())
            self.reads.setdefault(reader, []).append(found)


def written_reads(module: GraphModule, inputs: Sequence[Any]) -> Reads:
    """The reads of each node from memory that an earlier node wrote; `inputs` are in float64."""
    given = [v.detach() if isinstance(v, torch.Tensor) else v for v in inputs]
    run = Writers(module)
    with torch.enable_grad():
        run.run_graph(given)
    for node, value in zip(module.graph.find_nodes(op="placeholder"), given, strict=True):
        if _is_strided(value):
            run.read(node.name, node.name, value)
    return run.reads


def written_instead(
    captured: FxGraph, found: Difference | None, reads: Reads, later: Values
) -> Difference | None:
    """The writer instead of the reading node, if no later node computes the written value."""
    lost = [
        read for read in (reads.get(found.node.name, ()) if found else ())
        if not any(_is_strided(v) and same_numbers(v, read.value) for v in later.values())
    ]  # fmt: skip
    return last_writer(captured, lost) or found


def last_writer(captured: FxGraph, reads: Sequence[WrittenRead]) -> Difference | None:
    """The last writer of the values that are read, if any."""
    node = captured.node(reads[-1].writer) if reads else None
    if node is None:
        return None
    return Difference(node, f"{reads[-1].source} does not have the value that {node.name} writes")


def behind_result(module: GraphModule, captured: FxGraph, names: Sequence[str], result: str,
                  reads: Reads) -> Difference | None:  # fmt: skip
    """The node of one result or written value of a call: its last writer, or its producer."""
    (output,) = module.graph.find_nodes(op="output")
    leaves = enumerate(pytree.tree_leaves(output.args[0]))
    made = {f"result {n}": leaf.name for n, leaf in leaves if isinstance(leaf, Node)}
    placeholders = module.graph.find_nodes(op="placeholder")
    left = {f"{n}{AFTER}": p.name for n, p in zip(names, placeholders, strict=True)}
    if result in left:
        return last_writer(captured, reads.get(left[result], ()))
    read = [read for read in reads.get(output.name, ()) if read.source == made.get(result)]
    node = captured.node(made.get(result, ""))
    if read or node is None:
        return last_writer(captured, read)
    return Difference(node, f"{node.name} is the returned value")


def _is_strided(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


def _storage(value: torch.Tensor) -> int:
    return int(value.untyped_storage()._cdata)
