"""The memory of one step of the inspected call (`lab.memory`) as a pane of the explorer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.debug.explore.what_if import call_of
from inductor_lab.debug.memory.measure import measure_step
from inductor_lab.debug.memory.runs import Step
from inductor_lab.debug.memory.step_memory import MemoryRun, StepMemory
from inductor_lab.notebook.language import say
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.markup import Tree
from inductor_lab.widgets.shapes import Pane, View
from inductor_lab.widgets.step_memory import (
    HOLDERS,
    holder_rows,
    line_name,
    memory_chart,
    run_row,
)
from inductor_lab.widgets.views import Row, empty_view, pane, row, table_view, tree_of, tree_view

if TYPE_CHECKING:
    from inductor_lab.compiler.records import Record
    from inductor_lab.stock.stock_compilation import StockCompilation

NARROW = 560.0
"""Pixels: the width of the chart in a pane."""
LIMIT = 36.0
"""Time limit in seconds for each run; all runs together take at most eight times as long, a little
less than the page waits."""
NOTE = (
    "Bytes alive in one step, measured in processes of their own; {size} exist before it. "
    "lab.memory(f, x) also tries changes that lower a peak."
)
PEAKS = ("compiler", ">peak", ">kept for backward", "peak at", "line")


def measured_memory(compilation: Record | StockCompilation) -> StepMemory:
    """Measure the inspected call with the options of this compilation, without suggestions."""
    call = call_of(compilation)
    with torch.set_grad_enabled(call.with_grad):
        return measure_step(Step(call.fn, call.args, call.kwargs), call.options, limit=LIMIT)


def memory_pane(compilation: Record | StockCompilation, links: Links) -> Pane:
    """The curves and peaks, and for each run a table of who keeps the bytes at its peak."""
    target = compilation.call.options.target if compilation.call is not None else None
    if target is not None:
        said = say("Compiled for {target} without running: there is no step to measure.",
                   target=target)  # fmt: skip
        return pane("step memory", [empty_view("peaks", said)])
    found = measured_memory(compilation)
    measured = [run for run in found.runs if not run.failure]
    if not measured:
        why = found.runs[0].failure
        said = say("The memory of this step was not measured: {why}.", why=why)
        return pane("step memory", [empty_view("peaks", said)])
    views = [_peaks_view(found, links), *(_holders_view(run, links) for run in measured)]
    return pane("step memory", views)


def _peaks_view(found: StepMemory, links: Links) -> View:
    rows = []
    for run in found.runs:
        who, peak, kept, _, phase, line = run_row(run)
        rows.append(_row((who, peak, kept, phase, line), run.peak_place, links, run.failure))
    before = max(run.base_bytes for run in found.runs)
    shown = table_view("peaks", PEAKS, rows, say(NOTE, size=bytes_text(before)))
    chart = memory_chart(found, NARROW)
    if chart is None:
        return shown
    tree = tree_of(shown)
    tree.insert(3, _in_explorer(chart))
    return tree_view("peaks", tree)


def _in_explorer(chart: Tree) -> Tree:
    """A chart with the colours of the explorer's theme, which may differ from the notebook's."""
    tag, attributes, *children = chart
    classes = f"{attributes['class']} lab-drawing"
    return [tag, {**attributes, "class": classes}, *(c for c in children if c[0] != "style")]


def _holders_view(run: MemoryRun, links: Links) -> View:
    rows = [_row(cells, place, links) for cells, place in holder_rows(run)]
    title = say("{name} at its peak", name=run.who)
    return table_view(run.who, HOLDERS, rows, f"{title}: {bytes_text(run.peak_bytes)}")


def _row(cells: Sequence[str], place: Span | None, links: Links, failure: str = "") -> Row:
    """A row whose last cell names a line: its code is in the pane of the source."""
    known = [] if place is None else links.find("source", place.file, [str(place.line)])
    line = "" if place is None else line_name(place)
    return row((*cells[:-1], line), known, mark="warn" if failure else "")
