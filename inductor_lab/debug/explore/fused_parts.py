"""The parts of a compilation, by our compiler or by stock, for questions about fusion."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from inductor_lab.compiler.capture.fx_graph import FxNode
from inductor_lab.compiler.ir.program import ExternCall, Nest, read_by
from inductor_lab.compiler.records import CompiledGraph, CompiledPart, Record
from inductor_lab.compiler.schedule.facts import storage_elements
from inductor_lab.compiler.schedule.fusion.rules import LEGALITY, PROFIT
from inductor_lab.compiler.schedule.schedule import Decision, Verdict
from inductor_lab.saved.documents.of_compile import sources_of
from inductor_lab.saved.documents.sources import Sources
from inductor_lab.stock.decide import StockSchedule
from inductor_lab.stock.fusion_rules import explained, silent
from inductor_lab.stock.stock_compilation import StockCompilation, StockGraph, StockPart

OVERRULED = (
    "The options can overrule it: {{'fusion': {{'off': ['{rule}']}}}}, or what_if(force=...)."
)
FIXED = "It must hold for a correct result, so no option overrules it."


@dataclass(frozen=True)
class Computed:
    """A buffer: its other names, the FX nodes that it computes, and their source lines.

    `results` are the FX nodes that no other of its FX nodes reads: the value of the buffer.
    """

    buffer: str
    names: frozenset[str]
    origins: frozenset[str]
    results: frozenset[str]
    lines: frozenset[tuple[str, int]]


class FusedPart(Protocol):
    """One part of a compilation: what computes each buffer, and the decision about a pair."""

    @property
    def name(self) -> str: ...
    @property
    def computed(self) -> Mapping[str, Computed]: ...

    def decide(self, first: str, second: str) -> Decision:
        """The decision about two buffers of `computed`."""

    def earlier(self, first: str, second: str) -> tuple[Decision, ...]:
        """Earlier decisions about the two."""

    def refused(self) -> Iterator[tuple[str, str]]:
        """The pairs that were considered and are not in one kernel."""

    def kernel(self, buffer: str) -> str:
        """The kernel or library function that computes a buffer; "" if there is none."""

    def explain(self, verdict: Verdict) -> tuple[str, str]:
        """What a verdict means, and what would have to change."""


def parts_of(compilation: Record | StockCompilation) -> list[FusedPart]:
    """The parts of all graphs, in order; raises NotReported if stock's log lacks them."""
    found: list[FusedPart] = []
    graphs: Iterable[CompiledGraph | StockGraph] = compilation.graphs
    for number, graph in enumerate(graphs):
        for part in graph.parts:
            name = f"g{number}.{part.name}"
            if isinstance(part, StockPart):
                found.append(StockSide(name, part, StockSchedule.of(part)))
            else:
                found.append(OurSide(name, part))
    return found


def apart(first: str, second: str) -> Decision:
    """The decision about two values of different parts."""
    reason = f"{first} and {second} are in different graphs, or in forward and backward"
    return Decision(first, second, False, "horizontal", "rules", (silent("one_graph", reason),))


def _computed(
    buffer: str, names: Iterable[str], origins: frozenset[str], nodes: Mapping[str, FxNode]
) -> Computed:
    known = [nodes[name] for name in origins if name in nodes]
    lines = {(n.span.file, n.span.line) for n in known if n.span is not None}
    results = origins.difference(*(node.inputs for node in known))
    return Computed(buffer, frozenset(names), origins, results, frozenset(lines))


@dataclass(frozen=True)
class StockSide:
    """A part that stock compiled; its nodes are known by their buffers."""

    name: str
    part: StockPart
    schedule: StockSchedule

    @cached_property
    def nodes(self) -> Mapping[str, str]:
        """Buffer → node of stock's scheduler."""
        return {node.buffer: node.name for node in self.schedule.facts.values()}

    @cached_property
    def computed(self) -> Mapping[str, Computed]:
        nodes = Sources.of((self.part.last, self.part.graph)).nodes
        return {
            node.buffer: _computed(
                node.buffer, (node.name, *node.outputs), self.schedule.origins(node.name), nodes
            )
            for node in self.schedule.facts.values()
        }

    def decide(self, first: str, second: str) -> Decision:
        return self.schedule.decide(self.nodes[first], self.nodes[second])

    def earlier(self, first: str, second: str) -> tuple[Decision, ...]:
        return ()

    def refused(self) -> Iterator[tuple[str, str]]:
        for decision in self.schedule.decisions():
            if not decision.fused:
                yield decision.producer, decision.consumer

    def kernel(self, buffer: str) -> str:
        place = self.schedule.places.get(self.nodes[buffer])
        return place.kernel if place is not None else ""

    def explain(self, verdict: Verdict) -> tuple[str, str]:
        return explained(verdict)


@dataclass(frozen=True)
class OurSide:
    """A part that our compiler compiled."""

    name: str
    part: CompiledPart

    @cached_property
    def steps(self) -> Mapping[str, Nest | ExternCall]:
        """Buffer → the loop nest or library call that computes it."""
        found: dict[str, Nest | ExternCall] = {}
        for step in self.part.schedule.program.steps:
            names = step.outputs if isinstance(step, ExternCall) else (step.buffer,)
            found |= {name: step for name in names if name is not None}
        return found

    @cached_property
    def computed(self) -> Mapping[str, Computed]:
        nodes = sources_of(self.part).nodes
        return {
            name: _computed(name, (), frozenset(step.origins), nodes)
            for name, step in self.steps.items()
        }

    def decide(self, first: str, second: str) -> Decision:
        """The final decision; a pair that was not considered has a reason too."""
        schedule = self.part.schedule
        known = schedule.decisions.by_pair
        found = known.get((first, second)) or known.get((second, first))
        together = schedule.in_one_kernel(first, second)
        if found and (found[-1].fused == together or found[-1].relation == "in place"):
            return found[-1]
        if first in self._needs(second) or second not in self._needs(first):
            producer, consumer = first, second
        else:
            producer, consumer = second, first
        vertical = producer in self._needs(consumer)
        against = () if together else (self._not_considered(producer, consumer),)
        return Decision(producer, consumer, together, "vertical" if vertical else "horizontal",
                        "rules", against, self._bytes_saved(producer, consumer))  # fmt: skip

    def _bytes_saved(self, producer: str, consumer: str) -> int:
        """The bytes of the buffers that both use, and that one kernel therefore reads once."""
        both = (self._needs(producer) | {producer}) & self._needs(consumer)
        buffers = self.part.schedule.program.buffers
        known = [buffers[name] for name in both if name in buffers]
        return sum(storage_elements(b.layout) * b.dtype.itemsize for b in known)

    def earlier(self, first: str, second: str) -> tuple[Decision, ...]:
        known = self.part.schedule.decisions.by_pair
        return (known.get((first, second)) or known.get((second, first)) or ())[:-1]

    def _needs(self, name: str) -> frozenset[str]:
        return frozenset(read_by(self.steps[name]))

    def _not_considered(self, producer: str, consumer: str) -> Verdict:
        for name in (producer, consumer):
            step = self.steps[name]
            if isinstance(step, ExternCall):
                return silent("library_call", f"{name} calls {step.op}")
        if not self._needs(producer) & self._needs(consumer):
            return silent("no_shared_data", f"{producer} and {consumer} use no common buffer")
        return silent("no_reason", f"{producer} and {consumer} were not considered as a pair")

    def refused(self) -> Iterator[tuple[str, str]]:
        for (producer, consumer), found in self.part.schedule.decisions.by_pair.items():
            if not found[-1].fused:
                yield producer, consumer

    def kernel(self, buffer: str) -> str:
        for group in self.part.schedule.groups:
            made = {n.buffer for part in group.parts for n in (*part.nests, *part.inlined.values())}
            if buffer in made:
                return group.name
        step = self.steps.get(buffer)
        return step.op if isinstance(step, ExternCall) else ""

    def explain(self, verdict: Verdict) -> tuple[str, str]:
        rule = LEGALITY.get(verdict.rule) or PROFIT.get(verdict.rule)
        if rule is None:
            return explained(verdict)
        if verdict.reason is None:
            return "", ""
        meaning = " ".join((inspect.getdoc(rule) or "").partition("\n\n")[0].split())
        return meaning, FIXED if verdict.kind == "legality" else OVERRULED.format(rule=verdict.rule)
