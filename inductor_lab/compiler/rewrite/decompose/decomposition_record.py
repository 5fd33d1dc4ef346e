"""The record of decompositions: op → the ops it became, read from the metadata of the nodes.

```
aten.softmax.int → aten.amax, aten.sub, aten.exp, aten.sum, aten.div      m.py:12
```
"""

from __future__ import annotations

from dataclasses import dataclass

from torch.fx import GraphModule, Node

from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.compiler.capture.span import innermost
from inductor_lab.compiler.capture.text import target_text


@dataclass(frozen=True, slots=True)
class Decomposed:
    """The op that was called, the ops it became, and the names of their nodes (same order)."""

    op: str
    became: tuple[str, ...]
    nodes: tuple[str, ...]
    span: Span | None

    def __str__(self) -> str:
        where = f"      {self.span}" if self.span else ""
        return f"{self.op} → {', '.join(self.became)}{where}"


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
