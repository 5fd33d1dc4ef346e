"""Places in the user's source, and FX nodes with their places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from inductor_lab.compiler.capture.fx_graph import FxGraph, FxNode, Span
from inductor_lab.compiler.ir.text import in_reading_order
from inductor_lab.saved.documents.kernel_types import Origin, Place


def place(span: Span | None) -> Place | None:
    """A span as data."""
    if span is None:
        return None
    return Place(file=span.file, line=span.line, column=span.column, code=span.code)


@dataclass(frozen=True)
class Sources:
    """The nodes of some graphs by name; `called_from` is the line for nodes without a line."""

    nodes: Mapping[str, FxNode]
    called_from: Span | None = None

    @staticmethod
    def of(graphs: Iterable[FxGraph | None], called_from: Span | None = None) -> Sources:
        """The nodes of these graphs; the first graph that has a name wins."""
        found: dict[str, FxNode] = {}
        for graph in graphs:
            for node in graph.nodes if graph is not None else ():
                if found.setdefault(node.name, node).span is None and node.span is not None:
                    found[node.name] = node
        return Sources(found, called_from)

    def origins(self, names: Iterable[str]) -> list[Origin]:
        """The nodes with these names, in reading order."""
        return [self._origin(name) for name in in_reading_order(names)]

    def _origin(self, name: str) -> Origin:
        node = self.nodes.get(name)
        span = (node.span if node is not None else None) or self.called_from
        operator = node.target if node is not None else ""
        return Origin(node=name, operator=operator, place=place(span))

    def lines(self, names: Iterable[str]) -> str:
        """The lines of these nodes, for summaries: `model.py:3, model.py:5`."""
        spans = {self.nodes[name].span for name in names if name in self.nodes}
        found = sorted({(span.file, span.line) for span in spans if span is not None})
        return ", ".join(f"{file}:{line}" for file, line in found)
