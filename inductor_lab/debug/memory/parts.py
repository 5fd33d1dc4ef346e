"""What the recorder of compiled code has to know of a host program; the same for both compilers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from inductor_lab.compiler.capture.fx_graph import FxGraph, Span


@dataclass(frozen=True)
class HostPart:
    """A host program: one direction of one graph.

    text     its text; `file` is where it is if it is known
    outputs  the number of values that it returns to the user; the others are saved
    buffers  buffer → the FX nodes whose values it has
    places   FX node → the user's line
    why      FX node → the rule by which it is saved
    steps    line of the text → the FX nodes that it computes
    """

    name: str
    direction: Literal["forward", "backward"]
    text: str
    outputs: int
    file: str = ""
    buffers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    places: Mapping[str, Span] = field(default_factory=dict)
    order: Mapping[str, int] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)
    steps: Mapping[int, frozenset[str]] = field(default_factory=dict)

    def place(self, nodes: frozenset[str]) -> Span | None:
        """The user's line of the last of some nodes."""
        known = sorted((n for n in nodes if n in self.places), key=lambda n: self.order.get(n, 0))
        return self.places[known[-1]] if known else None

    def nodes_of(self, buffer: str) -> frozenset[str]:
        """The nodes whose value a variable of the host program has."""
        if buffer in self.buffers:
            return self.buffers[buffer]
        return frozenset([buffer]) if buffer in self.places or buffer in self.why else frozenset()

    def reason(self, buffer: str) -> str:
        """The rule by which a buffer is saved; "" if it is unknown."""
        return next((self.why[n] for n in sorted(self.nodes_of(buffer)) if n in self.why), "")

    def last_of(self, nodes: frozenset[str]) -> str:
        """The last of some nodes."""
        return max(nodes, key=lambda n: self.order.get(n, 0), default="")


def places_in(*graphs: FxGraph | None) -> dict[str, Span]:
    """The user's line of each node."""
    return {n.name: n.span for g in graphs if g is not None for n in g.nodes if n.span is not None}


def order_in(*graphs: FxGraph | None) -> dict[str, int]:
    """The position of each node."""
    return {n.name: at for g in graphs if g is not None for at, n in enumerate(g.nodes)}
