"""The compile time: a timeline of all phases, and the time of each phase."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inductor_lab.compiler.base.observer import Phase
from inductor_lab.compiler.step_time import Spent, StepTime, duration
from inductor_lab.notebook.language import say
from inductor_lab.saved.trace import chrome_trace
from inductor_lab.stock.stock_compilation import StockCompilation
from inductor_lab.widgets.markup import Tree, about, element
from inductor_lab.widgets.replayed import cuda_graph_views
from inductor_lab.widgets.shapes import OfferedFile, Pane, TreeView, View
from inductor_lab.widgets.svg import WIDTH, drawing, width_of
from inductor_lab.widgets.views import empty_view, note_tree, pane, tree_view

if TYPE_CHECKING:
    from inductor_lab.compiler.records import CompiledPart, Record

ROW, TRACK_HEAD = 20.0, 20.0
NARROW = 24.0
"""Pixels: narrower bars have no text."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Tracks with the same style class, and its meaning."""

    role: str
    meaning: str
    tracks: frozenset[str]


UNTIMED = (
    "The kernels were not timed. c.profile() times each kernel and each of your lines; in a live "
    'explorer, press "bench".'
)


def time_pane(compilation: Record) -> Pane:
    """Compile time by phase, of inductor_lab and of TorchDynamo."""
    own = {k: v for k, v in compilation.seconds.items() if k != "total"}
    total = seconds_text(compilation.total_seconds)
    views: list[View] = []
    if compilation.phases:
        views.append(timeline_view(compilation.name, compilation.phases))
    if own:
        note = say("{total} in total. Parent phases include their children.", total=total)
        views.append(bars_view("phases", own, note))
    if compilation.capture.seconds:
        note = say("Reported by TorchDynamo. Parent phases include their children.")
        views.append(bars_view("dynamo", compilation.capture.seconds, note))
    steps = [step for part in compilation.parts for step in part.times]
    if steps:
        spent = Spent.of(steps)
        note = say(
            "{total} in total: {kernels} in kernels, {libraries} in library calls. "
            "Each is measured inside the running program.", total=duration(spent.seconds),
            kernels=duration(spent.kernels), libraries=duration(spent.libraries),
        )  # fmt: skip
        views.append(bars_view("kernels", _seconds_by_name(steps), note, duration))
    elif compilation.parts:
        views.append(empty_view("kernels", UNTIMED))
    views += cuda_graph_views(compilation)
    if not views:
        return pane("time", [empty_view("timeline", "This compilation was not timed.")])
    return pane("time", views, seconds=compilation.total_seconds)


def _seconds_by_name(steps: Sequence[StepTime]) -> dict[str, float]:
    """Seconds by name; steps with the same name (library calls, equal kernels of two graphs) are
    added up, and their number is shown: `mm ×3`."""
    found: dict[str, list[float]] = {}
    for step in steps:
        found.setdefault(step.name, []).append(step.seconds)
    return {f"{name} ×{len(took)}" if len(took) > 1 else name: sum(took)
            for name, took in found.items()}  # fmt: skip


def timeline_view(
    name: str, phases: Iterable[Phase], title: str = "", kinds: Iterable[Kind] = (),
    note: str = "From the start of the call to its end.",
) -> TreeView:
    """Bars over time, one block of rows for each track; a phase is below its parent phase.

    Tracks of a kind have its colours; a legend above them explains the kinds.
    """
    phases = list(phases)
    shown = element(
        "div", {"class": "lab-timeline", "role": "group", "aria-label": say("timeline")},
        note_tree(note),
        _timeline(title or name, phases, tuple(kinds)),
    )  # fmt: skip
    return tree_view("timeline", shown, [_trace_file(title or name, phases)])


def _trace_file(name: str, phases: Iterable[Phase]) -> OfferedFile:
    return {
        "label": say("save as Chrome trace"),
        "tip": say("file for ui.perfetto.dev and chrome://tracing"),
        "name": f"{name}.trace.json",
        "type": "application/json",
        "data": chrome_trace(name, phases),
    }


def _timeline(title: str, phases: Sequence[Phase], kinds: Sequence[Kind]) -> Tree:
    """A drawing with the width of its container: horizontal positions are percentages."""
    tracks: dict[str, list[Phase]] = {}
    for phase in phases:
        tracks.setdefault(phase.track, []).append(phase)
    end = max((phase.start + phase.seconds for phase in phases), default=0) or 1.0
    role = {track: kind.role for kind in kinds for track in kind.tracks}
    body = list(_legend(kinds))
    top = ROW + 8 if kinds else 0.0
    for track, found in tracks.items():
        rows = rows_of(found)
        if track:
            place = {"x": "0", "y": f"{top + 14:g}"}
            body.append(element("text", {"class": "head", **place}, say(track)))
        top += TRACK_HEAD if track else 4
        body += [_bar(phase, top + row * ROW, end, role.get(track, "bar"))
                 for row, phase in zip(rows, found, strict=True)]  # fmt: skip
        top += (max(rows) + 1) * ROW + 8
    attributes = drawing(say("time of {title}", title=title))
    return element("svg", {**attributes, "width": "100%", "height": f"{top:g}"}, *body)


def _legend(kinds: Iterable[Kind]) -> Iterator[Tree]:
    """A small bar of each kind with its meaning."""
    left = 0.0
    for kind in kinds:
        place = {"x": f"{left:g}", "y": "1", "width": "22", "height": f"{ROW - 6:g}"}
        yield element("rect", {"class": kind.role, "rx": "2", **place})
        left += 28
        yield element("text", {"x": f"{left:g}", "y": "13"}, kind.meaning)
        left += width_of(kind.meaning) + 22


def _bar(phase: Phase, top: float, end: float, role: str) -> Tree:
    """The bar of a phase with its name, which is cut to the width of the bar."""
    took = seconds_text(phase.seconds)
    share = phase.seconds / end
    place = {"x": f"{100 * phase.start / end:.3f}%", "y": f"{top:g}", "height": f"{ROW - 2:g}",
             "width": f"{max(100 * share, 0.001):.3f}%"}  # fmt: skip
    name = element("text", {"x": "4", "y": "13"}, f"{phase.name} {took}")
    return element(
        "g", {**about(()), "class": "lab-phase", "data-phase": phase.name},
        element("title", {}, f"{phase.name}: {took}"),
        element("rect", {"class": role, "rx": "2", **place}),
        *([element("svg", place, name)] if share * WIDTH > NARROW else []),
    )  # fmt: skip


def flame_view(compilation: Record | StockCompilation) -> TreeView:
    """One flame graph of all phases of TorchDynamo, AOTAutograd and inductor_lab, each below its
    parent, with the rewrite passes and the code generation of each kernel as leaves."""
    own = () if isinstance(compilation, StockCompilation) else _within(compilation)
    phases = [replace(phase, track="") for phase in (*compilation.phases, *own)]
    phases.sort(key=lambda phase: (phase.start, -phase.seconds))
    return timeline_view(compilation.name, phases, f"compiling {compilation.name}")


def _within(compilation: Record) -> Iterator[Phase]:
    """Passes and kernels, one after the other from the start of their parent phase."""
    for name, of_part in (("rewrite", _passes), ("codegen", _kernels)):
        for direction in ("forward", "backward"):
            step = f"{direction}.{name}"
            found = (phase for phase in compilation.phases if phase.name == step)
            parts = (part for part in compilation.parts if part.name == direction)
            for phase, part in zip(found, parts, strict=False):
                start = phase.start
                for what, seconds in of_part(part):
                    yield Phase(what, phase.track, start, seconds)
                    start += seconds


def _passes(part: CompiledPart) -> Iterable[tuple[str, float]]:
    return ((step.name, step.seconds) for step in part.rewrites.steps)


def _kernels(part: CompiledPart) -> Iterable[tuple[str, float]]:
    return ((kernel.name, kernel.seconds) for kernel in part.kernels)


def rows_of(phases: Iterable[Phase]) -> list[int]:
    """The row of each phase of a track: below all its parent phases."""
    ends: list[float] = []
    rows = []
    for phase in phases:
        while ends and phase.start >= ends[-1]:
            ends.pop()
        rows.append(len(ends))
        ends.append(phase.start + phase.seconds)
    return rows


def bars_view(
    name: str,
    seconds: Mapping[str, float],
    note: str,
    format_time: Callable[[float], str] | None = None,
) -> TreeView:
    """One bar for each phase, in execution order, to scale, with formatted seconds."""
    format_time = format_time or seconds_text
    most = max([*seconds.values(), 1e-12])
    bars = (
        element(
            "div", {**about(()), "class": "lab-bar"},
            element("span", {}, phase),
            element("span", {"class": "lab-bar-track"},
                    element("span", {"style": f"width:{100 * took / most:.2f}%"})),
            element("span", {"class": "number"}, format_time(took)),
        )
        for phase, took in seconds.items()
    )  # fmt: skip
    title = say("{name}, bars", name=say(name))
    whole = {"class": "lab-bars", "role": "group", "aria-label": title}
    return tree_view(name, element("div", whole, note_tree(note), *bars))


def seconds_text(seconds: float) -> str:
    """`12.8 ms`, `1.31 s`."""
    if seconds >= 0.99995:
        return f"{seconds:.2f} s"
    return f"{1000 * seconds:.1f} ms" if seconds >= 0.99995e-3 else f"{1e6 * seconds:.1f} µs"
