"""What is found out about one captured graph, stage by stage."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.debug.blame.blame_result import Born, StageRow, ValueRow, Verdict
from inductor_lab.debug.blame.watch_call import Site
from inductor_lab.debug.compare.compare_results import first_wrong
from inductor_lab.debug.compare.precision import Judged
from inductor_lab.debug.isolate import Ended


class Findings:
    """Rows, values, births and notes of one graph; `whole` is how its compiled code ended."""

    def __init__(self, site: Site, limit: float) -> None:
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
        """Is something wrong with the compiled code as a whole?"""
        ended = self.whole is not None and self.whole.how != "returned"
        return ended or first_wrong(self.results) is not None

    def row(self, where: str, stage: str, verdict: Verdict, says: str = "",
            ulp: float | None = None) -> None:  # fmt: skip
        self.rows.append(StageRow(where, stage, verdict, says, ulp))

    @property
    def graphs(self) -> Sequence[FxGraph]:
        """Those that a node may have come from, the first one first."""
        joint = self.site.compiler.joint
        return [self.site.captured, *([joint.graph] if joint else [])]
