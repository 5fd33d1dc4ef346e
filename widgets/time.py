"""Where the compile time went: a timeline of all phases, and sums by phase."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from inductor_lab.bench.roofline import StepTime
from inductor_lab.observer import Phase
from inductor_lab.stock.result import StockCompilation
from inductor_lab.widgets.views import View, empty_view, pane

if TYPE_CHECKING:
    from inductor_lab.compilation import Compilation
    from inductor_lab.records import CompiledPart


def time_pane(compilation: Compilation) -> View:
    """Compile time by phase, ours and Dynamo's own."""
    ours = {k: v for k, v in compilation.seconds.items() if k != "total"}
    if not ours:
        return pane("time", [empty_view("timeline", "This compilation was not timed.")])
    total = seconds_text(compilation.total_seconds)
    views = [timeline_view(compilation.name, compilation.phases)] if compilation.phases else []
    note = f"{total} in all. A phase that holds others counts their time too."
    views.append(bars_view("phases", ours, note))
    if compilation.capture.seconds:
        views.append(bars_view("dynamo", compilation.capture.seconds, "As TorchDynamo tells it."))
    steps = [step for part in compilation.parts for step in part.times]
    if steps:
        whole = seconds_text(sum(step.seconds for step in steps))
        note = f"{whole} in all, each measured inside of the running program."
        views.append(bars_view("kernels", _named_apart(steps), note))
    return pane("time", views, seconds=compilation.total_seconds)


def _named_apart(steps: Sequence[StepTime]) -> dict[str, float]:
    """Seconds by name; a library that is called several times has its calls added up."""
    seconds: dict[str, float] = {}
    for step in steps:
        seconds[step.name] = seconds.get(step.name, 0.0) + step.seconds
    return seconds


def timeline_view(name: str, phases: Iterable[Phase]) -> View:
    """Bars over time, one block of rows for each track; a phase stands below the one it is in.

    bar  [row, name, start in seconds, seconds, text]
    """
    tracks: dict[str, list[Phase]] = {}
    for phase in phases:
        tracks.setdefault(phase.track, []).append(phase)
    shown = [{"title": track, "bars": list(_bars(found))} for track, found in tracks.items()]
    return {"kind": "timeline", "name": "timeline", "title": name, "tracks": shown}


def flame_view(compilation: Compilation | StockCompilation) -> View:
    """One flame of everybody's phases: TorchDynamo's, AOTAutograd's and ours, each below the one
    whose time it is part of; below ours the passes over graphs, and the writing of each kernel."""
    ours = () if isinstance(compilation, StockCompilation) else _within(compilation)
    phases = [replace(phase, track="") for phase in (*compilation.phases, *ours)]
    phases.sort(key=lambda phase: (phase.start, -phase.seconds))
    view = timeline_view(compilation.name, phases)
    return {**view, "title": f"compiling {compilation.name}"}


def _within(compilation: Compilation) -> Iterator[Phase]:
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


def _bars(phases: Iterable[Phase]) -> Iterator[list[object]]:
    ends: list[float] = []
    for phase in phases:
        while ends and phase.start >= ends[-1]:
            ends.pop()
        start, took = round(phase.start, 6), round(phase.seconds, 6)
        yield [len(ends), phase.name, start, took, seconds_text(phase.seconds)]
        ends.append(phase.start + phase.seconds)


def bars_view(name: str, seconds: Mapping[str, float], note: str) -> View:
    """One bar for each phase, in the order they ran."""
    rows = [
        {"label": phase, "value": took, "text": seconds_text(took)}
        for phase, took in seconds.items()
    ]
    return {"kind": "bars", "name": name, "rows": rows, "note": note}


def seconds_text(seconds: float) -> str:
    """`12.8 ms`, `1.31 s`."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{1000 * seconds:.1f} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.1f} µs"
