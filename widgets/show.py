"""One station as a picture or as HTML for a notebook cell (`Shown` in the compiler asks for it)."""

from __future__ import annotations

import json
import secrets
from html import escape
from typing import Any

from inductor_lab.bench.result import Measured
from inductor_lab.codegen.kernel import Code, HostProgram, Kernel
from inductor_lab.compilation import Compilation
from inductor_lab.so_far import SoFar
from inductor_lab.what_if import Comparison
from inductor_lab.widgets import bench
from inductor_lab.widgets.compare import comparison_panes, verdict
from inductor_lab.widgets.live import connect
from inductor_lab.widgets.markup import written
from inductor_lab.widgets.model import linked_document
from inductor_lab.widgets.page import json_for_html, script, style
from inductor_lab.widgets.partial import partial_html
from inductor_lab.widgets.plain import STYLE, plain_document
from inductor_lab.widgets.plots import picture_of
from inductor_lab.widgets.svg import picture_svg


def svg(value: Any) -> str | None:
    """The picture of a station; None for those that are text."""
    if isinstance(value, Measured):
        chart = bench.chart(value)
        return None if chart is None else written(chart)
    picture = None if isinstance(value, Compilation) else picture_of(value)
    return None if picture is None else picture_svg(picture)


def html(value: Any) -> str:
    """The picture, then the text; generated code with line numbers and, as tooltips, origins."""
    match value:
        case Compilation():
            return _explorer(value)
        case Comparison():
            return _comparison(value)
        case Measured():
            return bench.html(value)
        case SoFar():
            return partial_html(value)
        case Kernel() | HostProgram():
            return _page(repr(value), _code(value.code))
        case Code():
            return _page(f"{len(value.lines)} lines", _code(value))
    picture = svg(value) or ""
    text = f"<details><summary>text</summary><pre>{escape(str(value))}</pre></details>"
    if not picture:
        text = f"<pre>{escape(str(value))}</pre>"
    return _page(repr(value), picture + text)


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


def _explorer(compilation: Compilation) -> str:
    """The explorer itself, with its plain form inside for readers without scripts."""
    shown, links = linked_document(compilation)
    connection = connect(compilation, links)
    channel = json.dumps(connection.channel if connection else None)
    return explorer_html(shown, channel)


def _comparison(comparison: Comparison) -> str:
    """The explorer of the first compilation, opened at what is different in the second."""
    shown, links = linked_document(comparison.before)
    panes = comparison_panes(comparison, links)
    shown["panes"].update(panes)
    shown["groups"].insert(0, {"title": "what if", "panes": list(panes)})
    shown["open"] = ["source", *list(panes)[:2]]
    return explorer_html({**shown, "subtitle": verdict(comparison)})


def explorer_html(shown: dict[str, Any], channel: str = "null") -> str:
    """A document as HTML for a cell's output; `channel` is a JavaScript literal."""
    name = f"lab-{secrets.token_hex(6)}"
    plain = f"<style>{STYLE}</style>{plain_document(shown)}"
    return (
        f'<style>{style()}</style><div id="{name}">{plain}</div>'
        f'<script type="module">\n{script()}\n'
        f'render(document.getElementById("{name}"), {json_for_html(shown)}, {channel});\n</script>'
    )
