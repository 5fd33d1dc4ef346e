"""Every view as SVG text, for use outside of notebooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from inductor_lab.api.arguments import checked
from inductor_lab.api.compilation import Compilation
from inductor_lab.compiler.autograd.graphs import JointGraph, Partition
from inductor_lab.compiler.base.display import Svg
from inductor_lab.compiler.base.errors import UnknownName, unknown_name
from inductor_lab.compiler.capture.capture import Capture
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.ir.program import LoopProgram
from inductor_lab.compiler.records import CompiledPart
from inductor_lab.compiler.rewrite.rewrites import Rewrites, Step
from inductor_lab.compiler.schedule.schedule import Schedule
from inductor_lab.stock.stock_compilation import StockCompilation
from inductor_lab.widgets.budget import budget_svg
from inductor_lab.widgets.by_type import drawn_by
from inductor_lab.widgets.graphs import (
    fx_picture,
    program_picture,
    schedule_picture,
)
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.markup import inside, text_of
from inductor_lab.widgets.memory import memory_views
from inductor_lab.widgets.picture import Picture
from inductor_lab.widgets.svg import drawing_svg, picture_svg
from inductor_lab.widgets.time import flame_view, timeline_view
from inductor_lab.widgets.views import PART_VIEWS


@checked
def plot(value: Any, view: str = "graph") -> Svg:
    """One view of a stage; raises UnknownName if the stage has no such view."""
    if isinstance(value, CompiledPart):
        added = {name: make for pane in PART_VIEWS.values() for name, make in pane.items()}
        if view in added:
            return Svg(drawing_svg(added[view](value, "", Links())))
        return plot(value.schedule, view)
    kinds = dict(PICTURES.get(type(value), {}))
    timeline = drawn_by(value, TIMELINES)
    if timeline is not None:
        kinds["timeline"] = timeline
    picture = picture_of(value)
    if view == "graph" and picture is not None:
        return Svg(picture_svg(picture))
    if view in kinds:
        return Svg(kinds[view](value))
    known = [*(["graph"] if picture is not None else []), *kinds]
    what, todo = unknown_name("view", view, known)
    raise UnknownName(
        f"{type(value).__name__}: {what}",
        todo=todo if known else "it has no picture: print its text",
    )


def picture_of(value: Any) -> Picture | None:
    """The graph of a stage; None for stages that are text, and for several graphs."""
    match value:
        case FxGraph():
            return fx_picture(value)
        case LoopProgram():
            return program_picture(value)
        case Schedule():
            return schedule_picture(value)
        case JointGraph():
            return picture_of(value.graph)
        case Partition():
            return picture_of(value.forward)
        case Step():
            return picture_of(value.after)
        case Rewrites():
            return picture_of(value.steps[-1]) if value.steps else None
        case Capture():
            return picture_of(value.graphs[0]) if len(value.graphs) == 1 else None
        case Compilation():
            return picture_of(value.parts[0].schedule) if len(value.parts) == 1 else None
    return None


def _memory(schedule: Schedule) -> str:
    view = memory_views(schedule, "", Links())[0]
    if not any(inside(view["tree"], "svg")):
        raise UnknownName("there is nothing to draw", todo=text_of(view["tree"]))
    return drawing_svg(view)


PICTURES: Mapping[type, Mapping[str, Callable[[Any], str]]] = {
    Schedule: {"memory": _memory},
    Partition: {"budget": budget_svg},
    Compilation: {
        "time": lambda value: drawing_svg(timeline_view(value.name, value.phases)),
        "flame": lambda value: drawing_svg(flame_view(value)),
    },
    StockCompilation: {
        "flame": lambda value: drawing_svg(flame_view(value)),
    },
}
"""Additional pictures, by the type of the value and the name of the view."""

TIMELINES = {
    "debug.recompiles.watch_recompiles.Recompiles": "recompiles.recompiles_svg",
    "debug.profile.Profile": "profile.profile_svg",
}
"""The view "timeline" of tools, by the type of their results."""
