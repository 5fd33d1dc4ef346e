"""Graphs for Graphviz and pydot: for drawing with other tools, or for traversal by a program.

The explorer does not use the layout of Graphviz's `dot`: opening a frame in place has to move the
rows around it, and a saved file must show the same picture on every machine.
"""

from __future__ import annotations

from typing import Any

import graphviz
import pydot

from inductor_lab.compiler.base.errors import UnknownName
from inductor_lab.widgets.picture import ROOT, Picture
from inductor_lab.widgets.plots import picture_of


def to_dot(value: Any) -> graphviz.Digraph:
    """The graph of a stage for Graphviz, frames as clusters; raises UnknownName if it has none."""
    picture = picture_of(value)
    if picture is None:
        raise UnknownName(f"a {type(value).__name__} has no graph", todo="print its text")
    graph = graphviz.Digraph(picture.title, node_attr={"shape": "box", "fontname": "monospace"})
    _fill(graph, picture, ROOT)
    names = {name: f"n{number}" for number, name in enumerate(picture.items)}
    for source, target in picture.edges:
        graph.edge(names[source], names[target])
    return graph


def _fill(graph: graphviz.Digraph, picture: Picture, level: str) -> None:
    for number, (name, item) in enumerate(picture.items.items()):
        if item.frame == level:
            lines = [part for part in (item.label, item.sub) if part]
            graph.node(f"n{number}", graphviz.escape("\n".join(lines)), tooltip=name)
    for number, frame in enumerate(picture.frames.values()):
        if frame.parent == level:
            with graph.subgraph(name=f"cluster{number}") as inner:
                inner.attr(label=graphviz.escape(frame.label))
                _fill(inner, picture, frame.name)


def to_pydot(value: Any) -> pydot.Dot:
    """The same as a pydot graph, whose nodes and edges can be traversed and modified."""
    (graph,) = pydot.graph_from_dot_data(to_dot(value).source)
    return graph
