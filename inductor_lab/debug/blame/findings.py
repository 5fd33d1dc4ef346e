"""The findings about one captured graph, stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Generic

import torch

from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.debug.blame.blame_result import Born, Fault, StageRow, ValueRow, Verdict
from inductor_lab.debug.blame.first_nonfinite import first_nonfinite_in
from inductor_lab.debug.blame.float64_reference import Reference
from inductor_lab.debug.blame.lost_writes import Reads, written_reads
from inductor_lab.debug.blame.run_graphs import is_random
from inductor_lab.debug.blame.stages import GraphRun, run_graph
from inductor_lab.debug.blame.watch_call import S
from inductor_lab.debug.compare.compare_results import as_numbers, first_wrong, worst_ulp
from inductor_lab.debug.compare.precision import Judged
from inductor_lab.debug.compare.values import copies, widened
from inductor_lab.debug.isolate import Ended, Tell, run_isolated

CALLS = 3
"""Number of calls of the compiled graph: results that differ between calls are a race."""


class Findings(Generic[S]):
    """Rows, values, first NaN and inf, and notes of one graph; `whole` is how its code ended."""

    def __init__(self, site: S, limit: float) -> None:
        self.site, self.limit = site, limit
        self.rows: list[StageRow] = []
        self.values: list[ValueRow] = []
        self.births: list[Born] = []
        self.results: dict[str, Judged] = {}
        self.notes: list[str] = []
        self.whole: Ended | None = None

    @property
    def where(self) -> str:
        return f"g{self.site.number}"

    @property
    def failed(self) -> bool:
        """Does the complete compiled code have a wrong result?"""
        ended = self.whole is not None and self.whole.how != "returned"
        return ended or first_wrong(self.results) is not None

    def row(self, where: str, stage: str, verdict: Verdict, says: str = "",
            ulp: float | None = None) -> None:  # fmt: skip
        self.rows.append(StageRow(where, stage, verdict, says, ulp))

    @property
    def graphs(self) -> Sequence[FxGraph]:
        """The graphs that a node may come from, in order."""
        return [self.site.captured]

    def run(self) -> Fault | None:
        """Check every stage in order; returns the first fault."""
        raise NotImplementedError

    @cached_property
    def random(self) -> frozenset[str]:
        """The graph's nodes that draw random numbers."""
        return frozenset(node.name for node in self.site.module.graph.nodes if is_random(node))

    @cached_property
    def reference(self) -> Reference:
        site = self.site
        found = Reference.of(site.module, site.inputs, site.names, site.with_grad)
        if found.exact is None:
            self.notes.append(f"float64 cannot be the reference ({found.why}): eager is")
        return found

    @cached_property
    def captured(self) -> GraphRun:
        """Every value of the captured graph."""
        site = self.site
        plain = [v.detach() if isinstance(v, torch.Tensor) else v for v in copies(site.inputs)]
        wide = [v.detach() if isinstance(v, torch.Tensor) else v for v in widened(site.inputs)]
        return run_graph(site.captured, plain, wide, self.random)

    # ---- the compiled code as a whole ----------------------------------------------------------

    def call_compiled(self) -> None:
        site, reference = self.site, self.reference

        def work(tell: Tell) -> None:
            for _ in range(CALLS):
                tell({name: as_numbers(value) for name, value in site.run(None).items()})

        self.whole = run_isolated(work, self.limit)
        if self.whole.how == "returned" and not self.random:
            for got in self.whole.messages:
                judged = reference.judge(got)
                if not self.results or first_wrong(self.results) is None:
                    self.results = judged
        graph = self.site.captured
        self.births = list(first_nonfinite_in(graph, self.captured, "eager", self.where))

    @cached_property
    def reads(self) -> Reads:
        """The reads of written memory by nodes of the captured graph."""
        return written_reads(self.site.module, widened(self.site.inputs))

    # ---- faults that no stage explains ---------------------------------------------------------

    def unexplained(self) -> Fault | None:
        ended = self.whole
        assert ended is not None, "the compiled code was called"
        wrong = first_wrong(self.results)
        verdict: Verdict = "rounding"
        if all(judged.kind == "equal" for judged in self.results.values()):
            verdict = "right"
        if ended.how == "returned" and wrong is None:
            self.row(self.where, "compiled", verdict, "all together", worst_ulp(self.results))
            return None
        outcomes: dict[str, Verdict] = {
            "raised": "raises", "crashed": "crashes", "hung": "hangs", "returned": "wrong",
        }  # fmt: skip
        verdict = outcomes[ended.how]
        says = f"{wrong[0]}: {wrong[1]}" if wrong and ended.how == "returned" else str(ended)
        unknown = [f"{r.where} {r.stage} ({r.says})" for r in self.rows if r.verdict == "unknown"]
        self.row(self.where, "compiled", verdict, says)
        why = "every stage is right in isolation"
        if unknown:
            why = f"not checked: {', '.join(unknown)}"
        return Fault(verdict, self.where, "compiled", f"{says}; {why}")

