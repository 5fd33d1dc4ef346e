"""Panes below the generated code: the Triton ladder for a target GPU, and CPU machine code."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from inductor_lab.compiler.base.errors import LabError
from inductor_lab.debug.explore.assembly import assembly
from inductor_lab.debug.explore.ladder_text import ladder_code
from inductor_lab.notebook.language import say
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.shapes import Block, Pane, View
from inductor_lab.widgets.views import block, code_lines, empty_view, pane, text_view

if TYPE_CHECKING:
    from inductor_lab.api.compilation import Compilation
    from inductor_lab.compiler.records import CompiledPart

LANGUAGES = {"triton": "triton", "ptx": "assembly", "amdgcn": "assembly"}
"""Stage of the ladder → language for syntax colours; the other stages are MLIR dialects."""


def low_level_panes(
    compilation: Compilation, ladder: str | None, with_assembly: bool, links: Links
) -> dict[str, Pane]:
    """One pane for each part of the compilation and each requested output."""
    panes: dict[str, Pane] = {}
    several = len(compilation.parts) > 1
    for number, graph in enumerate(compilation.graphs):
        for part in graph.parts:
            scope = f"g{number}.{part.name}"
            which = f" {say(part.name)}" if several else ""
            if ladder is not None:
                views = ladder_views(part, ladder, scope, links)
                panes[f"{scope}.ladder"] = pane(f"{ladder}{which}", views, count=len(views))
            if with_assembly:
                view, count = assembly_view(part, scope, links)
                title = say("assembly") + which if which else "assembly"
                panes[f"{scope}.assembly"] = pane(title, [view], count=count)
    return panes


def ladder_views(part: CompiledPart, target: str, scope: str, links: Links) -> list[View]:
    """One view for each stage, with a block for each kernel; failing kernels report the error."""
    blocks: dict[str, list[Block]] = defaultdict(list)
    refused: list[str] = []
    for kernel in part.all_kernels:
        try:
            stages = ladder_code(kernel, target)
        except LabError as error:
            refused.append(f"{kernel.name}: {error}")
            continue
        for stage, code in stages.items():
            shown = code_lines(code, links, scope)
            blocks[stage].append(block(shown, kernel.name, language=LANGUAGES.get(stage, "mlir")))
    views: list[View] = [text_view(stage, found) for stage, found in blocks.items()]
    if refused:
        views.append(empty_view("refused", "\n".join(refused)))
    return views or [empty_view("ladder", "No kernels: this part only calls libraries.")]


def assembly_view(part: CompiledPart, scope: str, links: Links) -> tuple[View, str]:
    """The instructions of every kernel, and their number."""
    try:
        found = assembly(part.kernels)
    except LabError as error:
        return empty_view("assembly", str(error)), ""
    if not found:
        return empty_view("assembly", "No C++ kernels in this part."), "0"
    blocks = [
        block(code_lines(code, links, scope), name, language="assembly")
        for name, code in found.items()
    ]
    return text_view("assembly", blocks), str(sum(len(code.lines) for code in found.values()))
