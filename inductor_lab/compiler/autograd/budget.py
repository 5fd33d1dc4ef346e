"""Chooses the values to save from their prices and a memory budget.

Budget 1: only cheap ops are recomputed (`Price.CHEAP`, in chains of at most `LONGEST_CHAIN`).  A
value that would otherwise stay in registers counts twice, because saving it also writes it to
memory.

Below 1: ops that budget 1 does not allow to be recomputed are allowed one by one, in the order of
flops per byte, until the kept bytes are at most `budget` times those of budget 1.

Budget 0: all of them are allowed; the saved values are inputs, random draws, and custom ops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch

from inductor_lab.compiler.autograd.mincut import Pipe, cheapest_cut
from inductor_lab.compiler.autograd.recompute import (
    Price,
    Recompute,
    asked_to_recompute,
    asked_to_save,
    estimated_flops,
    is_size,
    recompute_price,
)
from inductor_lab.compiler.autograd.sides import Sides, returns_several

LONGEST_CHAIN = 64
_SCALE = 1024
"""Widths are bytes times this factor, so that the width of an input (1) is less than that of a
byte."""
_CHECKPOINTED = 1 << 16
"""Factor of the width of values in a checkpointed region, because the user asked not to save
them."""


@dataclass
class Chooser:
    """Computes the price of every forward value once, then a cut for each budget."""

    sides: Sides
    prices: dict[torch.fx.Node, Recompute] = field(default_factory=dict)
    bans: dict[torch.fx.Node, str] = field(default_factory=dict)
    in_memory: frozenset[torch.fx.Node] = frozenset()
    reason: str = "the cheapest cut on the path to the backward"
    _known: dict[int, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.prices = {node: recompute_price(node) for node in self.sides.values}
        self.in_memory = self._in_memory()
        bans = self._bans_at_budget_one()
        self.bans = {node: bans[node] for node in sorted(bans, key=self._flops_per_byte)}

    def choose(self, budget: float) -> frozenset[str]:
        """Names of the values to save with this budget."""
        at_one = self.cut(self.bans, count_traffic=True)
        if budget >= 1:
            return at_one
        if budget <= 0:
            return self._cut_without(len(self.bans))
        target = budget * self.kept_bytes(at_one)
        low, high = 0, len(self.bans)
        while low < high:
            middle = (low + high) // 2
            if self.kept_bytes(self._cut_without(middle)) <= target:
                high = middle
            else:
                low = middle + 1
        return self._cut_without(low)

    def ladder(self, steps: int) -> Iterator[frozenset[str]]:
        """Cuts that allow more and more recomputation, from budget 1 to budget 0."""
        yield self.choose(1)
        for step in range(1, steps + 1):
            yield self._cut_without(len(self.bans) * step // steps)

    def least_bytes(self) -> int:
        """The bytes that are kept with budget 0."""
        return self.kept_bytes(self._cut_without(len(self.bans)))

    def recomputed_for(self, saved: frozenset[str]) -> list[torch.fx.Node]:
        """Forward ops that the backward recomputes if these values are saved, without views."""
        recomputed: set[torch.fx.Node] = set()
        waiting = [node for node in self.sides.needed if node.name not in saved]
        while waiting:
            node = waiting.pop()
            if node.op != "placeholder" and node not in recomputed:
                recomputed.add(node)
                waiting += [n for n in node.all_input_nodes if n.name not in saved]
        twice = recomputed & self.sides.forward
        return [n for n in self.sides.values if n in twice and self.prices[n].price > Price.FREE]

    def kept_bytes(self, saved: frozenset[str]) -> int:
        """Bytes that are kept for the backward, without inputs of the graph."""
        return sum(
            self.sides.nbytes[node]
            for node in self.sides.values
            if node.name in saved and node.op != "placeholder"
        )

    def cut(
        self, bans: Mapping[torch.fx.Node, str], *, count_traffic: bool = False
    ) -> frozenset[str]:
        """The cheapest set of values to save if the `bans` must not be recomputed."""
        pipes = [self._pipe(node, node in bans, count_traffic) for node in self.sides.values]
        saved = cheapest_cut(pipes)
        return saved if saved is not None else frozenset(n.name for n in self.sides.needed)

    def _cut_without(self, lifted: int) -> frozenset[str]:
        """The cut without the first `lifted` bans."""
        if lifted not in self._known:
            self._known[lifted] = self.cut(dict(list(self.bans.items())[lifted:]))
        return self._known[lifted]

    def _flops_per_byte(self, node: torch.fx.Node) -> float:
        return estimated_flops(node) / max(self.sides.nbytes[node], 1)

    def _pipe(self, node: torch.fx.Node, banned: bool, count_traffic: bool) -> Pipe:
        never = self.prices[node].price == Price.NEVER
        return Pipe(
            name=node.name,
            inputs=tuple(n.name for n in node.all_input_nodes),
            width=self._width(node, count_traffic),
            is_source=never or banned or asked_to_save(node),
            is_needed=node in self.sides.needed,
        )

    def _width(self, node: torch.fx.Node, count_traffic: bool) -> int | None:
        if returns_several(node):
            return None
        nbytes = self.sides.nbytes[node]
        if node.op == "placeholder" or nbytes == 0 or is_size(node):
            return 1
        if asked_to_save(node):
            return 1
        width = _SCALE * nbytes
        if self.prices[node].price == Price.FREE:
            width += 1
        if count_traffic and node not in self.in_memory:
            width *= 2
        return width * _CHECKPOINTED if self._is_inside_checkpoint(node) else width

    def _is_inside_checkpoint(self, node: torch.fx.Node) -> bool:
        """Is it inside a checkpointed region, and not a result of it?

        The result of a random op must be saved in any case.  It is better to save the one-byte mask
        that is computed from it, so a direct user of a random op counts as outside too.
        """
        never = self._draws(node) or any(map(self._draws, node.all_input_nodes))
        return asked_to_recompute(node) and not never and not self._is_checkpoint_result(node)

    def _draws(self, node: torch.fx.Node) -> bool:
        """Is it the result of a random op, or a view of one?"""
        while self._is_view(node):
            node = node.all_input_nodes[0]
        return node.op != "placeholder" and self.prices[node].price == Price.NEVER

    def _is_checkpoint_result(self, node: torch.fx.Node) -> bool:
        """Is it a result of a checkpointed region that the forward reads outside it?"""
        region = node.meta.get("ac_graph_id")
        return asked_to_recompute(node) and any(
            not asked_to_recompute(user) or user.meta.get("ac_graph_id") != region
            for user in node.users
            if user in self.sides.forward
        )

    def _bans_at_budget_one(self) -> dict[torch.fx.Node, str]:
        bans: dict[torch.fx.Node, str] = {}
        chain: dict[torch.fx.Node, int] = {}
        for node in self.sides.values:
            price, reason = self.prices[node].price, self.prices[node].reason
            before = max((chain.get(n, 0) for n in node.all_input_nodes), default=0)
            chain[node] = before + (price == Price.CHEAP)
            if asked_to_recompute(node):
                if self._is_checkpoint_result(node):
                    bans[node] = "the result of a checkpointed region"
                continue
            if price in (Price.REDUCTION, Price.HEAVY):
                bans[node] = reason
            elif chain[node] > LONGEST_CHAIN:
                bans[node] = f"ends a chain of {LONGEST_CHAIN} cheap ops"
            if price >= Price.REDUCTION or node in bans:
                chain[node] = 0
        return bans

    def _in_memory(self) -> frozenset[torch.fx.Node]:
        """Values that are in memory in any case, because an op that is not fused computes or reads
        them.

        If a value is in memory, so are its base and its views, because they share its storage.
        """
        found = {
            node
            for node in self.sides.values
            if node in self.sides.outputs
            or self._is_unfused(node)
            or any(user in self.sides.forward and self._is_unfused(user) for user in node.users)
        }
        for node in self.sides.values:
            if self._is_view(node) and node.all_input_nodes[0] in found:
                found.add(node)
        for node in reversed(self.sides.values):
            if self._is_view(node) and node in found:
                found.update(node.all_input_nodes)
        return frozenset(found)

    def _is_unfused(self, node: torch.fx.Node) -> bool:
        known = self.prices.get(node) or recompute_price(node)
        return known.price >= Price.REDUCTION

    def _is_view(self, node: torch.fx.Node) -> bool:
        return self.prices[node].price == Price.FREE and bool(node.all_input_nodes)
