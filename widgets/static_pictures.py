"""Pictures for pages without scripts."""

from __future__ import annotations

from inductor_lab.api.compilation import Compilation
from inductor_lab.notebook.language import translate
from inductor_lab.widgets.graphs import OPEN_UP_TO, schedule_picture
from inductor_lab.widgets.svg import picture_svg


def static_pictures(compilation: Compilation) -> list[tuple[str, str]]:
    """Title and SVG of each part's schedule, if it is small enough to be readable."""
    small = [(n, part) for n, graph in enumerate(compilation.graphs) for part in graph.parts
             if len(part.loops.buffers) <= OPEN_UP_TO]  # fmt: skip
    return [
        (
            translate(f"what was fused: graph {n} {part.name}"),
            picture_svg(schedule_picture(part.schedule)),
        )
        for n, part in small
    ]
