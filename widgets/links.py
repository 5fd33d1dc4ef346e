"""Provenance: which code came from which.  The explorer uses it to highlight related code.

A thing is a line of the user's source, a node of a graph, or a buffer of a loop program.  A line
of code or a box of a picture lists the things it shows.  The parents of a thing are the things it
came from.  For a selection, the explorer highlights all ancestors and all descendants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from inductor_lab.compiler.capture.fx_graph import FxGraph, FxNode, Span
from inductor_lab.compiler.capture.span import outside_torch
from inductor_lab.widgets.shapes import LinkColumns

Thing = int
"""The number of a thing: its position in the lists of `Links.data()`."""


@dataclass
class Links:
    """Things by (kind, scope, name), each once; `scope` is a file, or the graph of the thing.

    `spans` has a span with the text of each source line that has descendants.  `called_from`
    replaces lines in torch's own files: it is the user's line that called torch's module.
    """

    spans: dict[Thing, Span] = field(default_factory=dict)
    called_from: Span | None = None
    _numbers: dict[tuple[str, str, str], Thing] = field(default_factory=dict)
    _labels: list[str] = field(default_factory=list)
    _parents: list[list[Thing]] = field(default_factory=list)
    _lines: set[Thing] = field(default_factory=set)

    def add(
        self, kind: str, scope: str, name: str, parents: Iterable[Thing] = (), label: str = ""
    ) -> Thing:
        """The number of a thing, added if it is new; new parents are added to its parents."""
        key = (kind, scope, name)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._labels)
            self._labels.append(label or name)
            self._parents.append([])
            if kind == "source":
                self._lines.add(number)
        known = self._parents[number]
        known.extend(p for p in parents if p != number and p not in known)
        return number

    def find(self, kind: str, scope: str, names: Iterable[str]) -> list[Thing]:
        """Numbers of the known things with these names, in order."""
        found = (self._numbers.get((kind, scope, name)) for name in names)
        return [number for number in found if number is not None]

    def line(self, file: str, number: int) -> Thing:
        """A line of the user's source."""
        return self.add("source", file, str(number), label=f"{file}:{number}")

    def graph(self, graph: FxGraph, scope: str, earlier: str | None) -> None:
        """Add all nodes of a graph; `earlier` is the scope of the graph it was made from."""
        for node in graph.nodes:
            if node.op != "output":
                before = self._before(node, scope, earlier)
                given = node.given or (self._given(before) if node.op == "placeholder" else "")
                self.add("node", scope, node.name, before, given)

    def _given(self, before: list[Thing]) -> str:
        """The label of an input is the label of the input it came from."""
        return self._labels[before[0]] if before and before[0] not in self.spans else ""

    def label(self, kind: str, scope: str, name: str) -> str:
        """The user's name of a thing: `h.0.attn.weight` for `primals_37`."""
        number = self._numbers.get((kind, scope, name))
        return name if number is None else self._labels[number]

    def labels(self) -> list[str]:
        """The labels of all nodes and buffers, each once."""
        pairs = zip(self._numbers, self._labels, strict=True)
        return list(dict.fromkeys(label for (kind, *_), label in pairs if kind != "source"))

    def _before(self, node: FxNode, scope: str, earlier: str | None) -> list[Thing]:
        before = self.find("node", earlier, node.came_from) if earlier else []
        return before or self.source_of(node.span)

    def source_of(self, span: Span | None) -> list[Thing]:
        """The first source line of a span, as a list of at most one thing."""
        if self.called_from is not None and (span is None or not outside_torch(span.file)):
            span = self.called_from
        if span is None:
            return []
        thing = self.line(span.file, span.line)
        self.spans.setdefault(thing, span)
        return [thing]

    def sources(self, things: Iterable[Thing]) -> list[Thing]:
        """The source lines that these things came from, each once."""
        seen: set[Thing] = set()
        waiting = list(things)
        while waiting:
            thing = waiting.pop()
            if thing not in seen:
                seen.add(thing)
                waiting += self._parents[thing]
        return sorted(seen & self._lines)

    def data(self) -> LinkColumns:
        """Columns: kind, scope, label and parents of thing number 0, 1, 2, ..."""
        kinds = [kind for kind, _, _ in self._numbers]
        scopes = [scope for _, scope, _ in self._numbers]
        return {
            "kind": kinds,
            "scope": scopes,
            "label": self._labels,
            "parents": self._parents,
        }
