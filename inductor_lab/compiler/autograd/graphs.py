"""The joint graph, and what became of it: what is saved for the backward and what is recomputed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.compiler.base.errors import UnknownName
from inductor_lab.compiler.capture.fx_graph import FxGraph


@dataclass(frozen=True, eq=False)
class JointGraph(Shown):
    """Forward and backward in one graph, functional and in ATen ops, as AOTAutograd traced it.

    Inputs: the forward's (`primals`), and the gradients of the forward's outputs (`tangents`).
    Outputs: the forward's (`num_forward_outputs`), then one gradient (or None) for each primal.
    """

    graph: FxGraph
    num_forward_outputs: int
    primals: tuple[str, ...]
    tangents: tuple[str, ...]

    def __repr__(self) -> str:
        held = {"node": self.graph.nodes, "primal": self.primals, "tangent": self.tangents}
        return f"JointGraph({', '.join(counted(len(each), noun) for noun, each in held.items())})"

    def __str__(self) -> str:
        return str(self.graph)

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Run on primals then tangents with torch; returns forward outputs, then gradients."""
        return tuple(self.graph.run(*inputs))


@dataclass(frozen=True, slots=True)
class SavedValue:
    """A value that the forward hands to the backward."""

    name: str
    nbytes: int
    is_input: bool
    why: str


@dataclass(frozen=True, slots=True)
class Recomputed:
    """A forward op that the backward recomputes; `flops` is an estimate."""

    name: str
    op: str
    flops: int
    why: str


PartitionChoice: TypeAlias = Literal["saved", "input", "recomputed", "backward", "unneeded"]


@dataclass(frozen=True, slots=True)
class PartitionDecision:
    """What was decided for one forward value that the backward needs, directly or not.

    saved       handed over by the forward
    input       handed over too, but it is an input of the graph, so it is alive anyway
    recomputed  computed a second time, in the backward
    backward    made in the backward only, since the forward itself does not need it
    unneeded    the backward gets what it needs from values that come after this one
    """

    node: str
    choice: PartitionChoice
    nbytes: int
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.node}: {self.choice} ({self.nbytes:,} bytes): {'; '.join(self.reasons)}"


@dataclass(frozen=True, slots=True)
class Cut:
    """What a smaller `memory_budget` would save and recompute (`flops` is an estimate of that)."""

    memory_budget: float
    saved: tuple[str, ...]
    cut_bytes: int
    recomputed: int
    flops: int


@dataclass(frozen=True, eq=False)
class Partition(Shown):
    """A joint graph cut in two.

    cut_bytes           bytes that are kept for the backward and that nobody else keeps (no inputs)
    memory_budget       the option it was made with
    bytes_if_all_saved  what eager mode keeps besides inputs: as autograd itself tells
                        (`capture/eager.py`), or where it cannot, every forward value that a
                        gradient formula reads
    bytes_if_min        the least that any budget can reach (`memory_budget=0`)
    cuts                what smaller budgets would keep, from budget 1 down to 0
    """

    forward: FxGraph
    backward: FxGraph
    saved: tuple[SavedValue, ...]
    recomputed: tuple[Recomputed, ...]
    decisions: tuple[PartitionDecision, ...]
    cut_bytes: int
    memory_budget: float
    bytes_if_all_saved: int
    bytes_if_min: int
    cuts: tuple[Cut, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Partition({len(self.saved)} saved, {len(self.recomputed)} recomputed, "
            f"{self.cut_bytes:,} bytes kept, eager keeps {self.bytes_if_all_saved:,})"
        )

    def __str__(self) -> str:
        saved = [f"  {v.name}: {v.nbytes:,} bytes, {v.why}" for v in self.saved if not v.is_input]
        inputs = ", ".join(v.name for v in self.saved if v.is_input)
        saved += [f"  inputs, in memory anyway: {inputs}"] if inputs else []
        again = (f"  {r.name} = {r.op}: {r.why}" for r in self.recomputed)
        return "\n".join([repr(self), "saved", *saved, "recomputed", *again])

    def about(self, node: str) -> PartitionDecision:
        """The decision for one node of the joint graph; raises UnknownName if there was none."""
        for decision in self.decisions:
            if decision.node == node:
                return decision
        raise UnknownName(
            f"nothing was decided for {node}",
            todo="only forward values that the backward depends on are decided",
        )
