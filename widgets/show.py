"""One stage as a picture or as HTML for a notebook cell (used by `Shown` in the compiler)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from inductor_lab.api.compilation import Compilation
from inductor_lab.bench.bench_result import Measured
from inductor_lab.compiler.base.display import counted
from inductor_lab.compiler.codegen.kernel import Code, HostProgram, Kernel
from inductor_lab.debug.diff.rank_diff import RankDiff
from inductor_lab.debug.diff.run_diff import RunDiff
from inductor_lab.debug.explore.comparison import Comparison
from inductor_lab.debug.memory.step_memory import StepMemory
from inductor_lab.notebook.language import say, translate
from inductor_lab.notebook.so_far import SoFar
from inductor_lab.stock.compare import SideBySide
from inductor_lab.stock.stock_compilation import StockCompilation
from inductor_lab.stock.trace_log import TraceLog
from inductor_lab.widgets import bench
from inductor_lab.widgets.by_type import drawn_by
from inductor_lab.widgets.compare import comparison_panes, verdict
from inductor_lab.widgets.compressed import zipped
from inductor_lab.widgets.home import connect, in_kernel, view_bundle, wants_view
from inductor_lab.widgets.markup import written
from inductor_lab.widgets.mime import MIME_TYPE, mime_data
from inductor_lab.widgets.model import linked_document
from inductor_lab.widgets.page import script, style
from inductor_lab.widgets.partial import partial_html
from inductor_lab.widgets.plain import STYLE, plain_document
from inductor_lab.widgets.plots import picture_of
from inductor_lab.widgets.run_diff import rank_diff_html, run_diff_html
from inductor_lab.widgets.side_by_side import side_by_side_html
from inductor_lab.widgets.static_pictures import static_pictures
from inductor_lab.widgets.step_memory import memory_chart, memory_html
from inductor_lab.widgets.svg import picture_svg
from inductor_lab.widgets.trace import trace_html

if TYPE_CHECKING:
    from inductor_lab.notebook.calls import Explorers



def svg(value: Any) -> str | None:
    """The picture of a stage; None for stages that are text."""
    if isinstance(value, Measured):
        chart = bench.chart(value)
        return None if chart is None else written(chart)
    if isinstance(value, StepMemory):
        chart = memory_chart(value)
        return None if chart is None else written(chart)
    picture = None if isinstance(value, Compilation) else picture_of(value)
    return None if picture is None else picture_svg(picture)


def html(value: Any) -> str:
    """The picture, then the text; generated code with line numbers and, as tooltips, origins."""
    for kind, drawn in PAGES.items():
        if isinstance(value, kind):
            return drawn(value)
    tool = drawn_by(value, TOOL_PAGES)
    if tool is not None:
        return tool(value)
    picture = svg(value) or ""
    text = f"<details><summary>{say('text')}</summary><pre>{escape(str(value))}</pre></details>"
    if not picture:
        text = f"<pre>{escape(str(value))}</pre>"
    return _page(translate(repr(value)), picture + text)


def _page(title: str, body: str) -> str:
    head = f"<style>{STYLE}</style><div><code>{escape(title)}</code></div>"
    return f'<div class="lab-plain">{head}{body}</div>'


def _code(code: Code) -> str:
    width = len(str(len(code.lines)))
    shown = []
    for number, line in enumerate(code.lines, 1):
        origins = escape(", ".join(sorted(line.origins)), quote=True)
        tip = f' title="from {origins}"' if origins else ""
        gutter = f'<span class="lab-origin">{number:{width}d}  </span>'
        shown.append(f"<span{tip}>{gutter}{escape(line.text)}</span>")
    return "<pre>" + "\n".join(shown) + "</pre>"


def _explorer(compilation: Compilation | StockCompilation) -> str:
    """The explorer; it contains its plain form for pages without scripts."""
    return _explorer_with(compilation)[0]


def _explorer_with(compilation: Compilation | StockCompilation) -> tuple[str, str]:
    """The explorer as HTML, and its compressed document."""
    shown, links = linked_document(compilation)
    connection = connect(compilation, links)
    channel = json.dumps(connection.channel if connection else None)
    pictures = static_pictures(compilation) if isinstance(compilation, Compilation) else ()
    data = zipped(shown)
    return explorer_html(shown, channel, pictures, data), data


def mime_bundle(compilation: Compilation | StockCompilation) -> dict[str, Any] | None:
    """The output of a notebook: HTML, and data that our JupyterLab extension shows without trust.

    Where a front end isolates HTML: a widget, and static HTML (`home.view_bundle`).
    """
    if not in_kernel():
        return None
    if wants_view():
        return view_bundle(compilation) if isinstance(compilation, Compilation) else None
    page, data = _explorer_with(compilation)
    return {"text/html": page, MIME_TYPE: mime_data(data)}


def explorers(several: Explorers) -> str:
    """Explorers in tabs; without scripts, their plain forms one after the other."""
    return _explorers_with(several)[0]


def explorers_bundle(several: Explorers) -> dict[str, Any] | None:
    """The output of a notebook, as `mime_bundle` of one; the data has one document per tab."""
    if not in_kernel() or wants_view():
        return None
    page, data = _explorers_with(several)
    return {"text/html": page, MIME_TYPE: mime_data(data)}


def _explorers_with(several: Explorers) -> tuple[str, list[str]]:
    """The explorers as HTML, and their compressed documents."""
    found = [(linked_document(c), c) for c in several.compilations]
    connections = [connect(c, links) for (_, links), c in found]
    shown = [document for (document, _), _ in found]
    name = f"lab-{secrets.token_hex(6)}"
    channels = [each.channel if each else None for each in connections]
    data = [zipped(document) for document in shown]
    documents = ",".join(
        f'["{text}",{json.dumps(channel)},{json.dumps(document["title"])}]'
        for text, document, channel in zip(data, shown, channels, strict=True)
    )
    plain = "".join(map(plain_document, shown))
    page = (
        f'<style>{style()}</style><div id="{name}"><style>{STYLE}</style>{plain}</div>'
        f'<script type="module">\n{script()}\n'
        f'renderTabs(document.getElementById("{name}"), [{documents}]);\n</script>'
    )
    return page, data


def _comparison(comparison: Comparison) -> str:
    """The explorer of the first compilation, opened at the differences to the second."""
    shown, links = linked_document(comparison.before)
    panes = comparison_panes(comparison, links)
    shown["panes"].update(panes)
    shown["groups"].insert(0, {"title": "what if", "panes": list(panes)})
    first, *others = panes
    shown["open"] = [first, "source", *others[:1]]  # with one pane at a time: the changes
    return explorer_html({**shown, "subtitle": verdict(comparison)})


def explorer_html(
    shown: Mapping[str, Any],
    channel: str = "null",
    pictures: Iterable[tuple[str, str]] = (),
    data: str = "",
) -> str:
    """A document as HTML for a cell's output; `channel` is a JavaScript literal, `data` the
    compressed document."""
    name = f"lab-{secrets.token_hex(6)}"
    plain = f"<style>{STYLE}</style>{plain_document(shown, pictures)}"
    return (
        f'<style>{style()}</style><div id="{name}">{plain}</div>'
        f'<script type="module">\n{script()}\n'
        f'renderZipped(document.getElementById("{name}"), '
        f'"{data or zipped(shown)}", {channel});\n</script>'
    )


PAGES: dict[type, Callable[[Any], str]] = {
    Compilation: _explorer,
    StepMemory: memory_html,
    RunDiff: run_diff_html,
    RankDiff: rank_diff_html,
    SideBySide: side_by_side_html,
    TraceLog: trace_html,
    StockCompilation: _explorer,
    Comparison: _comparison,
    Measured: bench.html,
    SoFar: partial_html,
    Kernel: lambda value: _page(repr(value), _code(value.code)),
    HostProgram: lambda value: _page(repr(value), _code(value.code)),
    Code: lambda value: _page(counted(len(value.lines), "line"), _code(value)),
}
"""Special pages by type of value; other values are shown as a picture and text."""

TOOL_PAGES = {
    "bench.ablation.Ablation": "ablation.ablation_html",
    "debug.advice.advise.Advice": "advice.advice_html",
    "debug.backends.Backends": "debug.html",
    "debug.blame.blame_result.Blame": "debug.html",
    "debug.explore.steps.Steps": "debug.html",
    "debug.minify.minified.Minified": "debug.html",
    "debug.profile.Profile": "profile.profile_html",
    "debug.recompiles.watch_recompiles.Recompiles": "recompiles.recompiles_html",
    "distributed.join.Ranks": "ranks.ranks_html",
    "distributed.timeline.Timeline": "ranks.timeline_html",
    "notebook.calls.Explorers": "show.explorers",
}
"""Pages of the results of tools, by type."""
