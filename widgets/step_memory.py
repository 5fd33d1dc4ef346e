"""The result of `lab.memory`: three curves on one axis, and tables of who keeps the bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import PurePath

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.debug.memory.step_memory import (
    KINDS,
    Holder,
    MemoryRun,
    Point,
    StepMemory,
    Suggestion,
    thinned,
)
from inductor_lab.notebook.language import say
from inductor_lab.widgets.charts import WIDTH, chart_page, curve_names, side_axis, text_at
from inductor_lab.widgets.markup import Tree, element, said_heads, table, written
from inductor_lab.widgets.page import bench_style
from inductor_lab.widgets.scales import Scale
from inductor_lab.widgets.shapes import Pane
from inductor_lab.widgets.views import empty_view, pane

LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 80.0, 150.0, 30.0, 30.0, 320.0
PHASES = {"forward": 3.0, "backward": 3.0, "update": 1.0}
"""Phase → its share of the axis, if any curve has it."""
RUNS = ("compiler", ">peak", ">kept for backward", ">before the step", "peak at", "line")
HOLDERS = (">bytes", "kept as", "name", "why", "line")
MOST_HOLDERS = 8
UNMEASURED = (
    'A live explorer measures this with its button "step memory"; a saved page or file cannot '
    "run the call."
)


def unmeasured_pane() -> Pane:
    """The pane before a measurement."""
    return pane("step memory", [empty_view("peaks", UNMEASURED)])


def memory_html(found: StepMemory) -> str:
    """HTML for a cell's output; readable without a script."""
    body = element("div", {"class": "lab-bench lab-memory"}, *_parts(found))
    return f"<style>{bench_style()}</style>{written(body)}"


def memory_chart(found: StepMemory, width: float = WIDTH) -> Tree | None:
    """The curves of all runs on one axis; None if nothing was measured."""
    runs = [run for run in found.runs if not run.failure and run.points]
    if not runs:
        return None
    title = say("bytes alive in one step of {name}", name=found.name)
    up = Scale(0, max(run.peak_bytes for run in runs), HEIGHT - BOTTOM, TOP)
    right = width - RIGHT
    spans = _phase_spans(runs, right)
    body = list(side_axis(up, LEFT, right, lambda value: bytes_text(int(value))))
    for phase, (start, end) in spans.items():
        edge = f"M{start:.1f} {TOP}V{HEIGHT - BOTTOM}"
        body.append(element("path", {"class": "grid", "d": edge}))
        body.append(text_at((start + end) / 2, HEIGHT - 10, say(phase), "sub", "middle"))
    ends: list[tuple[float, int, str]] = []
    for number, run in enumerate(runs):
        places = list(_places(run, spans, up))
        line = "".join(f"H{x:.1f}V{y:.1f}" for x, y in places)
        first = f"M{LEFT:.1f} {up.at(run.base_bytes):.1f}"
        body.append(element("path", {"class": f"curve s{number}", "d": first + line}))
        x, y = min(places, key=lambda place: place[1])
        tip = say("{name}: peak {size}", name=run.who, size=bytes_text(run.peak_bytes))
        body.append(element("circle", {"class": f"dot s{number}", "cx": f"{x:.1f}", "r": "5",
                                       "cy": f"{y:.1f}"}, element("title", {}, tip)))  # fmt: skip
        ends.append((places[-1][1], number, run.who))
    body += curve_names(ends, right + 16)
    return chart_page(title, HEIGHT, body, width)


def _phase_spans(runs: Sequence[MemoryRun], right: float) -> dict[str, tuple[float, float]]:
    """The part of the axis, which ends at `right`, of each phase that some run has."""
    there = {point.phase for run in runs for point in run.points}
    shares = {phase: share for phase, share in PHASES.items() if phase in there}
    width, at, found = right - LEFT, LEFT, {}
    for phase, share in shares.items():
        end = at + width * share / sum(shares.values())
        found[phase] = (at, end)
        at = end
    return found


def _places(
    run: MemoryRun, spans: Mapping[str, tuple[float, float]], up: Scale
) -> Iterator[tuple[float, float]]:
    """The points of a curve; the events of a phase have equal distances."""
    for phase, points in groupby(thinned(run.points), key=lambda point: point.phase):
        here: list[Point] = list(points)
        start, end = spans[phase]
        for number, point in enumerate(here, 1):
            yield start + (end - start) * number / (len(here) + 1), up.at(point.nbytes)


def _parts(found: StepMemory) -> Iterator[Tree]:
    yield element("h1", {}, say("bytes alive in one step of {name}", name=found.name))
    chart = memory_chart(found)
    if chart is not None:
        yield chart
    yield element("div", {"class": "lab-table"}, table(said_heads(RUNS), map(run_row, found.runs)))
    for run in found.runs:
        if not run.failure and run.holders:
            yield from _holders(run)
    for each in found.suggestions:
        yield from _suggestion(each)


def run_row(run: MemoryRun) -> tuple[str, ...]:
    """The cells of `RUNS`."""
    if run.failure:
        return (run.who, "-", "-", "-", run.failure, "")
    sizes = map(bytes_text, (run.peak_bytes, run.kept_bytes, run.base_bytes))
    return (run.who, *sizes, say(run.peak_phase), _line(run.peak_place))


def _holders(run: MemoryRun) -> Iterator[Tree]:
    yield element("h2", {}, say("{name} at its peak", name=run.who))
    rows = (cells for cells, _ in holder_rows(run))
    yield element("div", {"class": "lab-table"}, table(said_heads(HOLDERS), rows))


def holder_rows(run: MemoryRun) -> Iterator[tuple[tuple[str, ...], Span | None]]:
    """The cells of `HOLDERS` and the place of the largest holders; the others are added up."""
    for holder in run.holders[:MOST_HOLDERS]:
        yield _holder_row(holder), holder.place
    more = run.holders[MOST_HOLDERS:]
    if more:
        size = bytes_text(sum(holder.nbytes for holder in more))
        yield (size, say("{n} more", n=len(more)), "", "", ""), None


def _holder_row(holder: Holder) -> tuple[str, ...]:
    return (bytes_text(holder.nbytes), say(KINDS[holder.kind]), holder.name,
            holder.why or ("" if holder.before else holder.maker), _line(holder.place))  # fmt: skip


def _suggestion(each: Suggestion) -> Iterator[Tree]:
    change = say("tried: {name} lowers the peak of {who} from {before} to {after}",
                 name=each.name, who=each.who, before=bytes_text(each.before_bytes),
                 after=bytes_text(each.after_bytes))  # fmt: skip
    yield element("p", {"title": each.what}, change)
    yield element("pre", {}, each.diff or each.what)


def _line(place: Span | None) -> str:
    return "" if place is None else f"{line_name(place)}  {place.code}"


def line_name(place: Span) -> str:
    """`train.py:12`."""
    return f"{PurePath(place.file).name}:{place.line}"
