"""Which thing came from which: the threads that light up when a line or a node is touched.

A thing is a line of the user's source, a node of a graph, or a buffer of a loop program.  A line
of code or a box of a picture names the things it shows; what came before a thing are its parents.
The explorer walks parents up and children down, so a selection lights up its whole way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from inductor_lab.compiler.capture.fx_graph import FxGraph, FxNode, Span
from inductor_lab.compiler.capture.span import outside_torch
from inductor_lab.widgets.shapes import LinkColumns

Thing = int
"""A thing's number: its position in the lists of `Links.data()`."""


@dataclass
class Links:
    """Things by (kind, scope, name), each once; `scope` is a file, or the graph it belongs to.

    `spans` has, for source lines that something came from, a span with the text of the line.
    `called_from` stands for lines of torch's own files: the line that called torch's module.
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
        """The number of a thing; new parents are added to those it has."""
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
        """Numbers of the named things that are known, in order."""
        found = (self._numbers.get((kind, scope, name)) for name in names)
        return [number for number in found if number is not None]

    def line(self, file: str, number: int) -> Thing:
        """A line of the user's source."""
        return self.add("source", file, str(number), label=f"{file}:{number}")

    def graph(self, graph: FxGraph, scope: str, earlier: str | None) -> None:
        """All nodes of a graph; `earlier` is the scope of the graph that it was made from."""
        for node in graph.nodes:
            if node.op != "output":
                before = self._before(node, scope, earlier)
                given = node.given or (self._given(before) if node.op == "placeholder" else "")
                self.add("node", scope, node.name, before, given)

    def _given(self, before: list[Thing]) -> str:
        """An input is called what the input that it came from is called."""
        return self._labels[before[0]] if before and before[0] not in self.spans else ""

    def label(self, kind: str, scope: str, name: str) -> str:
        """What a thing is called where people see it: `h.0.attn.weight` for `primals_37`."""
        number = self._numbers.get((kind, scope, name))
        return name if number is None else self._labels[number]

    def _before(self, node: FxNode, scope: str, earlier: str | None) -> list[Thing]:
        before = self.find("node", earlier, node.came_from) if earlier else []
        return before or self.source_of(node.span)

    def source_of(self, span: Span | None) -> list[Thing]:
        """The first source line of a span, as a list of none or one."""
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
