"""Two compilations of one function compared, as additional panes of the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.notebook.language import say
from inductor_lab.widgets.graphs import schedule_picture
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.parts import decisions_view, kernel_block, module_paths, ops_to
from inductor_lab.widgets.shapes import Pane, ShownLine, View
from inductor_lab.widgets.views import (
    block,
    code_lines,
    diff_lines,
    empty_view,
    pane,
    row,
    table_view,
    text_view,
)

if TYPE_CHECKING:
    from inductor_lab.compiler.records import CompiledPart
    from inductor_lab.debug.explore.comparison import Comparison


def comparison_panes(comparison: Comparison, links: Links) -> dict[str, Pane]:
    """The numbers, and the changes of each part; `links` are those of the first document."""
    rows = [row(cells, mark="" if cells[1] == cells[2] else "warn") for cells in comparison.rows]
    panes = {
        "whatif": pane(
            "changes",
            [
                _code_diff(comparison, links),
                table_view("numbers", ("measure", ">original", ">with the change"), rows),
            ],
        )
    }
    several = len(comparison.parts) > 1
    for scope, _, new in comparison.parts:
        if new is None:
            continue
        title = say("{part} schedule", part=say(new.name)) if several else "schedule"
        count = ops_to(new.schedule.before.kernels, new.schedule.after.kernels)
        panes[f"whatif.{scope}"] = pane(title, _part_views(new, scope, links), count=count)
    return panes


def verdict(comparison: Comparison) -> str:
    """`1 → 2 kernels, 8.0 kB → 16.0 kB moved, compiled in 0.31 s`."""
    old, new = comparison.before.after, comparison.after.after
    took = say("compiled in {seconds:.2f} s", seconds=comparison.after.total_seconds)
    if old == new and not _differs(comparison):
        return say("no change: the same kernels ({took})", took=took)
    return say("{n} → {m} kernels, {before} → {after} moved, {took}", n=old.kernels, m=new.kernels,
               before=bytes_text(old.bytes), after=bytes_text(new.bytes), took=took)  # fmt: skip


def _differs(comparison: Comparison) -> bool:
    return any(_texts(old) != _texts(new) for _, old, new in comparison.parts)


def _texts(part: CompiledPart | None) -> list[str]:
    return [str(kernel.code) for kernel in part.kernels] if part is not None else []


def _code_diff(comparison: Comparison, links: Links) -> View:
    blocks = []
    for scope, old, new in comparison.parts:
        lines = diff_lines(_code(old, scope, links), _code(new, scope, links))
        if lines:
            title, language = say("{scope} code", scope=scope), _language(old, new)
            blocks.append(block(lines, title, first=0, language=language))
    if not blocks:
        return empty_view("code diff", "The generated code is the same.")
    return text_view("code diff", blocks)


def _code(part: CompiledPart | None, scope: str, links: Links) -> list[ShownLine]:
    if part is None:
        return []
    return [line for kernel in part.kernels for line in code_lines(kernel.code, links, scope)]


def _language(*parts: CompiledPart | None) -> str:
    """The language of the kernels of a part; all of them are for one device."""
    kernels = [kernel for part in parts if part is not None for kernel in part.kernels]
    return kernels[0].language if kernels else ""


def _part_views(part: CompiledPart, scope: str, links: Links) -> list[View]:
    picture = schedule_picture(part.schedule, links, scope, module_paths(part))
    blocks = [kernel_block(kernel, kernel.name, links, scope) for kernel in part.kernels]
    views: list[View] = [picture.view("graph")]
    views.append(text_view("code", blocks) if blocks else empty_view("code", "No kernels."))
    views.append(decisions_view(part.schedule, scope, links))
    return views
