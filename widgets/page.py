"""The front end as one text: the ES modules beside this file joined to one, and the style sheet;
and the frame of a page that has it all inside."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from inductor_lab.widgets.pack import packed

MODULES = (
    "dom",
    "pack",
    "theme",
    "links",
    "selection",
    "present",
    "words",
    "roving",
    "export",
    "colours",
    "edit",
    "text",
    "table",
    "guards",
    "memory",
    "steps",
    "time",
    "place",
    "graph",
    "trail",
    "keys",
    "live",
    "whatif",
    "explorer",
    "tabs",
)
"""In an order in which each needs only those before it; no two share a top-level name."""

_IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(async )?(function|class|const))", re.MULTILINE)


@cache
def script() -> str:
    """All modules as one, with `render(root, document)` for what follows it; no exports, since
    anywidget would take a `render` that is exported for its own."""
    texts = [_EXPORT.sub("", _IMPORT.sub("", _read(f"{name}.js"))) for name in MODULES]
    return "\n".join(texts)


@cache
def widget_script() -> str:
    """The same for anywidget: `initialize` announces a model, `render` draws its document."""
    return (
        f"{script()}\n"
        "export default {\n"
        "  initialize({ model }) { announce(model); },\n"
        "  render({ model, el }) {\n"
        '    const root = document.createElement("div");\n'
        "    el.append(root);\n"
        '    render(root, model.get("document"), model.get("channel"));\n'
        "  },\n"
        "};\n"
    )


@cache
def connection_script() -> str:
    """Only what joins a model to an explorer that is drawn already."""
    text = _EXPORT.sub("", _read("live.js"))
    return f"{text}\nexport default {{ initialize({{ model }}) {{ announce(model); }} }};\n"


@cache
def style() -> str:
    return _read("explorer.css")


@cache
def bench_script() -> str:
    """What a benchmark's page needs: `build`, `addButtons` and `follow`."""
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", _read(f"{m}.js"))) for m in ("dom", "bench"))


@cache
def bench_widget_script() -> str:
    """The same for anywidget: a running benchmark."""
    widget = "{ render({ model, el }) { return follow(model, el); } }"
    return f"{bench_script()}\nexport default {widget};\n"


@cache
def steps_widget_script() -> str:
    """For anywidget: a call that is stepped through."""
    text = _EXPORT.sub("", _IMPORT.sub("", _read("debug.js")))
    widget = "{ render({ model, el }) { return steps(model, el); } }"
    return f"{bench_script()}\n{text}\nexport default {widget};\n"


@cache
def debug_style() -> str:
    """Beside the style of a benchmark."""
    return _read("debug.css")


@cache
def bench_style() -> str:
    return _read("bench.css")


def page(title: str, body: str, *styles: str) -> str:
    """An HTML file that fetches nothing, around `body`."""
    sheets = "\n".join(f"<style>{text}</style>" for text in ("body{margin:0}", *styles))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{escape(title)} - inductor_lab</title>
{sheets}
</head>
<body>
{body}
</body>
</html>
"""


def document_for_html(document: Mapping[str, Any]) -> str:
    """A document as `render` takes it, packed, to stand inside a `<script>` element."""
    return json_for_html(packed(document))


def json_for_html(data: Mapping[str, Any]) -> str:
    """JSON that can stand inside a `<script>` element: no `<`, and no line separators."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _read(name: str) -> str:
    return files("inductor_lab.widgets").joinpath(name).read_text(encoding="utf-8")
