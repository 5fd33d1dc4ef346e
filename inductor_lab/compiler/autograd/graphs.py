"""The joint graph, and its partition: which values are saved for the backward, and which
recomputed."""

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
    """A value that the forward saves for the backward."""

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
    """The decision on one forward value that the backward needs, directly or indirectly.

    saved       the forward saves it
    input       saved too, but it is an input of the graph, which stays in memory anyway
    recomputed  computed a second time, in the backward
    backward    computed only in the backward, because the forward does not need it
    unneeded    the backward only needs values that are computed from it
    """

    node: str
    choice: PartitionChoice
    nbytes: int
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.node}: {self.choice} ({self.nbytes:,} bytes): {'; '.join(self.reasons)}"


@dataclass(frozen=True, slots=True)
class Cut:
    """The values that a smaller `memory_budget` would save and recompute (`flops` is an
    estimate)."""

    memory_budget: float
    saved: tuple[str, ...]
    cut_bytes: int
    recomputed: int
    flops: int


@dataclass(frozen=True, eq=False)
class Partition(Shown):
    """The partition of a joint graph into forward and backward.

    cut_bytes           bytes that are kept only for the backward (no inputs)
    memory_budget       the option
    bytes_if_all_saved  bytes that eager mode keeps besides inputs: as autograd itself reports them
                        (`capture/eager.py`); if it cannot, every forward value that a gradient
                        formula reads
    bytes_if_min        the smallest number of bytes for any budget (`memory_budget=0`)
    cuts                the values that smaller budgets would keep, from budget 1 down to 0
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
        """The decision on one node of the joint graph; raises UnknownName if there is none."""
        for decision in self.decisions:
            if decision.node == node:
                return decision
        raise UnknownName(
            f"there is no decision on {node}",
            todo="there are decisions only on forward values that the backward depends on",
        )
