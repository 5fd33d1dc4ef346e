"""An ablation as a table: the time of the call with each pass disabled."""

from __future__ import annotations

from inductor_lab.bench.ablation import COLUMNS, HOW, Ablation
from inductor_lab.notebook.language import translate
from inductor_lab.widgets.markup import element, said_heads, table, written
from inductor_lab.widgets.page import bench_style


def ablation_html(found: Ablation) -> str:
    """HTML for a cell's output."""
    rows = ((*cells, translate(what)) for *cells, what in (row.cells for row in found.rows))
    page = element(
        "div",
        {"class": "lab-bench"},
        element("div", {"class": "lab-table"}, table(said_heads(COLUMNS), rows)),
        element("p", {"class": "lab-machine"}, translate(HOW)),
    )
    return f"<style>{bench_style()}</style>{written(page)}"
