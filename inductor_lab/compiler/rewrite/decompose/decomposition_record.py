"""Which op became which ops: decompositions as data, read from the nodes they left behind.

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
    """Every op of an ATen graph that is no longer itself, in the order of the graph.

    Nodes of one call have the original op, the stack trace, the autograd sequence number and the
    captured node in common and stand in a row, `detach` of AOTAutograd's aside; a new run of such
    nodes is a new call.
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
    """By name: FX copies the operator object along with the metadata."""
    return str(node.meta.get("original_aten"))


def _decomposed(run: list[Node]) -> Decomposed:
    return Decomposed(
        op=_original(run[0]),
        became=tuple(target_text(node.target).removeprefix("torch.ops.") for node in run),
        nodes=tuple(node.name for node in run),
        span=innermost(run[0].meta.get("stack_trace") or ""),
    )
