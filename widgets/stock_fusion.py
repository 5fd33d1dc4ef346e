"""Why stock did not fuse pairs of nodes: a view of the pane of its schedule.

The answers are those of `c.why_not_fused()`.
"""

from __future__ import annotations

from collections.abc import Iterator

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.schedule.schedule import Decision
from inductor_lab.debug.explore.fused_parts import StockSide
from inductor_lab.notebook.language import say, translate
from inductor_lab.stock.decide import StockSchedule
from inductor_lab.stock.stock_compilation import StockPart
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.shapes import View
from inductor_lab.widgets.views import Row, empty_view, row, table_view

NAME = "why not fused"
MOST_NODES = 400
"""Maximum number of scheduler nodes whose pairs are all listed."""
TOO_MANY = "This part has {n} scheduler nodes: ask c.why_not_fused(a, b) about two of them."
ALL_FUSED = "Every pair of nodes that share data is in one loop nest."
NOTE = "Pairs that share data. Open a row to see what the rule means and what would have to change."


def why_not_fused_view(part: StockPart, scope: str, links: Links) -> View:
    """One row for each pair that shares data and is not in one loop nest."""
    if len(part.ir_before) > MOST_NODES:
        return empty_view(NAME, say(TOO_MANY, n=f"{len(part.ir_before):,}"))
    side = StockSide(scope, part, StockSchedule.of(part))
    rows = [_row(side, decision, scope, links) for decision in side.schedule.decisions()
            if not decision.fused]  # fmt: skip
    if not rows:
        return empty_view(NAME, ALL_FUSED)
    return table_view(NAME, ("pair", "rule", "reason", ">saves"), rows, NOTE)


def _row(side: StockSide, decision: Decision, scope: str, links: Links) -> Row:
    pair = decision.producer, decision.consumer
    nodes = [side.nodes[buffer] for buffer in pair]
    rules = ", ".join(verdict.rule for verdict in decision.verdicts)
    reasons = "; ".join(verdict.reason or "" for verdict in decision.verdicts)
    cells = (" + ".join(nodes), rules, reasons, bytes_text(decision.bytes_saved))
    return row(cells, links.find("buffer", scope, nodes), _details(side, decision), mark="no")


def _details(side: StockSide, decision: Decision) -> Iterator[tuple[str, str]]:
    for verdict in decision.verdicts:
        meaning, cure = side.explain(verdict)
        if meaning:
            yield "means", translate(meaning)
        if cure:
            yield "to fuse", translate(cure)
    here, there = (side.kernel(buffer) or say("no kernel")
                   for buffer in (decision.producer, decision.consumer))  # fmt: skip
    apart = say("both in {kernel}, in separate loops", kernel=here)
    yield "kernels", apart if here == there else f"{here}, {there}"
