"""Where the compile time went: a timeline of all phases, and sums by phase."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inductor_lab.bench.roofline import Spent, StepTime, duration
from inductor_lab.compiler.base.observer import Phase
from inductor_lab.notebook.language import say
from inductor_lab.saved.trace import chrome_trace
from inductor_lab.stock.stock_compilation import StockCompilation
from inductor_lab.widgets.markup import Tree, about, element
from inductor_lab.widgets.shapes import OfferedFile, Pane, TreeView
from inductor_lab.widgets.svg import WIDTH, drawing, width_of
from inductor_lab.widgets.views import empty_view, note_tree, pane, tree_view

if TYPE_CHECKING:
    from inductor_lab.compiler.records import CompiledPart, Record

ROW, TRACK_HEAD = 20.0, 20.0
NARROW = 24.0
"""Pixels of a bar that has no room for a word."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Tracks that are drawn alike: their class in the style, and what it stands for."""

    role: str
    meaning: str
    tracks: frozenset[str]


def time_pane(compilation: Record) -> Pane:
    """Compile time by phase, ours and Dynamo's own."""
    ours = {k: v for k, v in compilation.seconds.items() if k != "total"}
    total = seconds_text(compilation.total_seconds)
    views = [timeline_view(compilation.name, compilation.phases)] if compilation.phases else []
    if ours:
        note = say("{total} in all. A phase that holds others counts their time too.", total=total)
        views.append(bars_view("phases", ours, note))
    if compilation.capture.seconds:
        note = say("As TorchDynamo tells it.")
        views.append(bars_view("dynamo", compilation.capture.seconds, note))
    steps = [step for part in compilation.parts for step in part.times]
    if steps:
        spent = Spent.of(steps)
        note = say(
            "{total} in all: {kernels} in kernels, {libraries} in library calls. Each is measured "
            "inside of the running program.", total=duration(spent.seconds),
            kernels=duration(spent.kernels), libraries=duration(spent.libraries),
        )  # fmt: skip
        views.append(bars_view("kernels", _named_apart(steps), note, duration))
    if not views:
        return pane("time", [empty_view("timeline", "This compilation was not timed.")])
    return pane("time", views, seconds=compilation.total_seconds)


def _named_apart(steps: Sequence[StepTime]) -> dict[str, float]:
    """Seconds by name; those of one name (calls of a library, kernels of two graphs that do the
    same) are added up, and say how many they are."""
    found: dict[str, list[float]] = {}
    for step in steps:
        found.setdefault(step.name, []).append(step.seconds)
    return {f"{name} ×{len(took)}" if len(took) > 1 else name: sum(took)
            for name, took in found.items()}  # fmt: skip


def timeline_view(
    name: str, phases: Iterable[Phase], title: str = "", kinds: Iterable[Kind] = (),
    note: str = "From the start of the call to its end.",
) -> TreeView:
    """Bars over time, one block of rows for each track; a phase stands below the one it is in.

    Tracks of a kind have its colour and outline, which a legend above them names.
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
        "tip": say("a file that ui.perfetto.dev and chrome://tracing open"),
        "name": f"{name}.trace.json",
        "type": "application/json",
        "data": chrome_trace(name, phases),
    }


def _timeline(title: str, phases: Sequence[Phase], kinds: Sequence[Kind]) -> Tree:
    """A drawing as wide as there is room: places along it are shares of its width."""
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
    told = drawing(say("time of {title}", title=title))
    return element("svg", {**told, "width": "100%", "height": f"{top:g}"}, *body)


def _legend(kinds: Iterable[Kind]) -> Iterator[Tree]:
    """A small bar of each kind, and what it stands for."""
    left = 0.0
    for kind in kinds:
        place = {"x": f"{left:g}", "y": "1", "width": "22", "height": f"{ROW - 6:g}"}
        yield element("rect", {"class": kind.role, "rx": "2", **place})
        left += 28
        yield element("text", {"x": f"{left:g}", "y": "13"}, kind.meaning)
        left += width_of(kind.meaning) + 22


def _bar(phase: Phase, top: float, end: float, role: str) -> Tree:
    """A phase with its name in it, cut off where the bar ends, and left out of a narrow one."""
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
    """One flame of everybody's phases: TorchDynamo's, AOTAutograd's and ours, each below the one
    whose time it is part of; below ours the passes over graphs, and the writing of each kernel."""
    ours = () if isinstance(compilation, StockCompilation) else _within(compilation)
    phases = [replace(phase, track="") for phase in (*compilation.phases, *ours)]
    phases.sort(key=lambda phase: (phase.start, -phase.seconds))
    return timeline_view(compilation.name, phases, f"compiling {compilation.name}")


def _within(compilation: Record) -> Iterator[Phase]:
    """Passes and kernels, one after the other from the start of the phase that they are in."""
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
    """The row of each phase of a track: below all those whose time it is a part of."""
    ends: list[float] = []
    rows = []
    for phase in phases:
        while ends and phase.start >= ends[-1]:
            ends.pop()
        rows.append(len(ends))
        ends.append(phase.start + phase.seconds)
    return rows


def bars_view(
    name: str, seconds: Mapping[str, float], note: str, told: Callable[[float], str] | None = None
) -> TreeView:
    """One bar for each phase, in the order they ran, drawn to scale; `told` writes its seconds."""
    told = told or seconds_text
    most = max([*seconds.values(), 1e-12])
    bars = (
        element(
            "div", {**about(()), "class": "lab-bar"},
            element("span", {}, phase),
            element("span", {"class": "lab-bar-track"},
                    element("span", {"style": f"width:{100 * took / most:.2f}%"})),
            element("span", {"class": "number"}, told(took)),
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
