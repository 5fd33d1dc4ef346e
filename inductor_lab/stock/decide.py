"""Stock's decision about any two nodes of its scheduler, as our `Decision`.

Whether two nodes were fused follows from the places of the output code.  The reasons are the
sentences of the fusion log about the two, or about the groups that they belonged to at that time.
Stock refuses some pairs without a sentence: then the nodes themselves say which rule it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from inductor_lab.compiler.base.errors import NotReported
from inductor_lab.compiler.schedule.schedule import Decision, Decisions, Verdict
from inductor_lab.stock.fusion_rules import silent, verdict_of
from inductor_lab.stock.kernel_places import (
    NO_CODE,
    KernelCall,
    KernelPlace,
    compatible_loops,
    has_code,
    kernel_calls,
    places,
)
from inductor_lab.stock.scheduler_nodes import NodeFacts
from inductor_lab.stock.stock_compilation import IrNode, Sizes, StockPart

MOST_NODES = 16
"""The default of stock's `cpp.max_horizontal_fusion_size`."""


@dataclass(frozen=True)
class StockSchedule:
    """The scheduler of one part: its nodes, the groups after fusion, and their places.

    facts   the nodes before fusion, by name, in order
    groups  node → the node after fusion that contains it
    places  node → kernel, call and loop nest, for nodes that the output code computes
    """

    part: StockPart
    facts: Mapping[str, NodeFacts]
    groups: Mapping[str, IrNode]
    places: Mapping[str, KernelPlace]

    @staticmethod
    def of(part: StockPart) -> StockSchedule:
        """Read the scheduler of a part; raises NotReported if the log has none."""
        if not part.ir_before:
            raise NotReported(
                f"the {part.name} has no IR and no fusion log of stock",
                todo=part.missing.get("ir") or "use lab.inspect(f, x, compiler='stock')",
            )
        facts = {node.name: NodeFacts.of(node) for node in part.ir_before}
        groups = {name: node for node in part.ir_after for name in node.members}
        return StockSchedule(part, facts, groups, places(part, facts))

    def decide(self, first: str, second: str) -> Decision:
        """The decision about two nodes; the one that the other depends on is the producer."""
        if first in self._needs[second] or second not in self._needs[first]:
            producer, consumer = self.facts[first], self.facts[second]
        else:
            producer, consumer = self.facts[second], self.facts[first]
        fused = self.in_one_kernel(first, second)
        vertical = producer.name in self._needs[consumer.name]
        return Decision(
            producer=producer.buffer,
            consumer=consumer.buffer,
            fused=fused,
            relation="vertical" if vertical else self._without_dependency(first, fused),
            choice="rules",
            verdicts=() if fused else tuple(self._against(producer, consumer, vertical)),
            bytes_saved=self._bytes_saved(producer, consumer),
        )

    def decisions(self) -> Decisions:
        """Decisions about producers with their consumers, and about pairs in the fusion log."""
        known = self.facts
        place = {name: number for number, name in enumerate(known)}
        pairs = [(maker, reader.name) for reader in known.values()
                 for maker in sorted(self._made_for(reader), key=place.__getitem__)]  # fmt: skip
        pairs += [(step.first, step.second) for step in self.part.fusion
                  if step.first in known and step.second in known]  # fmt: skip
        different = {frozenset(pair): pair for pair in pairs if pair[0] != pair[1]}
        return Decisions(tuple(self.decide(*pair) for pair in different.values()))

    def in_one_kernel(self, first: str, second: str) -> bool:
        """Does one loop nest compute both?  (A C++ function may have several loop nests.)"""
        here, there = self.places.get(first), self.places.get(second)
        if here is not None and there is not None:
            return here == there and self.facts[first].is_generated
        return first == second

    def origins(self, name: str) -> frozenset[str]:
        """The FX nodes of a node; those of its call for a library function."""
        known, place = self.facts[name].origins, self.places.get(name)
        if known or place is None:
            return known
        number = [call.kernel for call in self.calls[: place.call]].count(place.kernel)
        lines = [line for line in self.part.host.lines
                 if line.statement and f"{place.kernel}(" in line.text]  # fmt: skip
        return lines[number].origins if number < len(lines) else known

    @cached_property
    def calls(self) -> list[KernelCall]:
        """The calls of kernels and library functions in the wrapper."""
        return kernel_calls(self.part)

    # ---- dependencies ------------------------------------------------------------------------

    @cached_property
    def _makers(self) -> Mapping[str, str]:
        return {buffer: node.name for node in self.facts.values() for buffer in node.outputs}

    @cached_property
    def _needs(self) -> Mapping[str, frozenset[str]]:
        """Node → all nodes that must run before it."""
        needs: dict[str, frozenset[str]] = {}
        for name, node in self.facts.items():
            direct = self._made_for(node) - {name}
            needs[name] = frozenset(direct).union(*(needs.get(each, ()) for each in direct))
        return needs

    def _made_for(self, reader: NodeFacts) -> set[str]:
        """The nodes whose outputs a node reads."""
        return {self._makers[buffer] for buffer in reader.reads if buffer in self._makers}

    @cached_property
    def _readers(self) -> Mapping[str, list[NodeFacts]]:
        """Node → the nodes that read its outputs."""
        found: dict[str, list[NodeFacts]] = {name: [] for name in self.facts}
        for reader in self.facts.values():
            for maker in self._made_for(reader):
                found[maker].append(reader)
        return found

    def _without_dependency(self, name: str, fused: bool) -> Literal["horizontal", "combo"]:
        kind = self.groups[name].kind if name in self.groups else ""
        return "combo" if fused and kind.startswith("Foreach") else "horizontal"

    # ---- reasons -----------------------------------------------------------------------------

    def _against(
        self, producer: NodeFacts, consumer: NodeFacts, vertical: bool
    ) -> Iterator[Verdict]:
        groups = [self.groups.get(node.name) for node in (producer, consumer)]
        if groups[0] is not None and groups[0] is groups[1]:
            yield silent("outer_loops", f"{groups[0].name} became several loops")
            return
        known = [verdict_of(says) for says in self._sentences(producer.name, consumer.name)]
        real = [verdict for verdict in known if verdict.rule != "order"]
        yield from real or [self._silent(producer, consumer, vertical)]

    def _sentences(self, first: str, second: str) -> Iterator[str]:
        """The reasons in the log about two nodes, or about groups with one of them each."""
        found: dict[str, None] = {}
        for step in self.part.fusion:
            one, other = set(step.first.split("_")), set(step.second.split("_"))
            asked = (first in one and second in other) or (first in other and second in one)
            if asked and not step.fused:
                found[step.reason] = None
        yield from found

    def _silent(self, producer: NodeFacts, consumer: NodeFacts, vertical: bool) -> Verdict:
        for node in (producer, consumer):
            if node.kind in NO_CODE:
                return silent("no_code", f"{node.name} ({node.kind}) only names memory")
            if not node.is_generated and has_code(node):
                return silent("library_call", f"{node.name} calls {node.library or node.kind}")
        first, second = self._members(producer), self._members(consumer)
        if _used(first).isdisjoint(_used(second)):
            both = f"{producer.name} and {consumer.name}"
            return silent("no_shared_data", f"{both} use no common buffer")
        loops = f"{producer.name} loops over {_loops(producer)}, {consumer.name} over "
        loops += _loops(consumer)
        place = self.places.get(producer.name)
        if place is None or not place.kernel.startswith("cpp"):
            return silent("no_reason", loops)
        if not vertical and len(first) + len(second) > MOST_NODES:
            return silent("max_horizontal_fusion_size", f"{len(first)} and {len(second)} nodes")
        if vertical and producer.reduced:
            return silent("after_reduction", loops)
        if not compatible_loops([producer], [consumer]):
            return silent("same_iteration_space", loops)
        if vertical and any(node.reduced for node in first):
            by = "_".join(node.name for node in first)
            return silent("after_reduction", f"{producer.name} is fused with a reduction: {by}")
        if not compatible_loops(first, second):
            return silent("same_iteration_space", loops)
        return silent("no_reason", loops)

    def _members(self, node: NodeFacts) -> list[NodeFacts]:
        group = self.groups.get(node.name)
        names = (node.name,) if group is None else group.members
        return [self.facts[name] for name in names if name in self.facts]

    # ---- traffic -----------------------------------------------------------------------------

    def _bytes_saved(self, producer: NodeFacts, consumer: NodeFacts) -> int:
        """The memory traffic that one kernel for both saves: what both read is read once; what one
        makes for the other is not read, and not written if no third node reads it."""
        layouts = {**consumer.layouts, **producer.layouts}
        made = set(producer.outputs) & set(consumer.reads)
        both = set(producer.reads) & set(consumer.reads)
        saved = sum(layouts[name].nbytes for name in made | both if name in layouts)
        readers = self._readers[producer.name]
        if made and readers == [consumer] and not producer.is_result:
            saved += sum(layouts[name].nbytes for name in made if name in layouts)
        return saved


def _used(nodes: list[NodeFacts]) -> set[str]:
    return {name for node in nodes for name in (*node.outputs, *node.reads, *node.mutates)}


def _loops(node: NodeFacts) -> str:
    """`64 x 32, and reduces 8`."""
    text = _product(node.iterates or ()) or "a single point"
    return f"{text} (and reduces {_product(node.reduced)})" if node.reduced else text


def _product(sizes: Sizes) -> str:
    return " x ".join(map(str, sizes))
