"""The static form of a document: its source and generated code as plain, escaped HTML.

A page shows it before its script runs, and when scripts are not allowed.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from inductor_lab.notebook.language import say
from inductor_lab.widgets.markup import written
from inductor_lab.widgets.svg import themed
from inductor_lab.widgets.views import tree_of

LIGHT = {
    "": "color:#1b1f24;background:#fff",
    "pre": "color:#1b1f24;background:#fff",
    "code": "color:#1b1f24;background:#fff",
    ".lab-origin": "color:#57606a",
}
DARK = {
    "": "color:#e6edf3;background:#0d1117",
    "pre": "color:#e6edf3;background:#0d1117",
    "code": "color:#e6edf3;background:#0d1117",
    ".lab-origin": "color:#9da7b3",
}
SHAPES = """
.lab-plain{font:13px/1.5 system-ui,sans-serif;padding:8px 12px}
.lab-plain pre{font:12.5px/1.5 ui-monospace,Menlo,Consolas,monospace;margin:4px 0 14px}
.lab-plain pre{overflow:auto}
.lab-plain td,.lab-plain th{text-align:left;vertical-align:top;padding:2px 12px 2px 0}
.lab-plain .number{text-align:right}
.lab-plain img{max-width:100%}
"""
STYLE = SHAPES + themed(".lab-plain", LIGHT, DARK)
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that make an SVG file invalid: control characters and lone surrogates."""


def plain_document(document: Mapping[str, Any], pictures: Iterable[tuple[str, str]] = ()) -> str:
    """Title, facts, graph breaks, source, pictures (title and SVG) and code of a document, without
    a script.  The loop trees next to the code are left out: their diffs need colours."""
    facts = " · ".join(_fact_text(say(fact["label"]), fact["value"]) for fact in document["facts"])
    parts = [
        f"<h1>{escape(document['title'])} {escape(document['subtitle'])}</h1>",
        f"<p>{escape(facts)}</p>",
    ]
    parts += _breaks(document["panes"].get("breaks", {"views": []}))
    codes = [name for name in document["panes"] if name.endswith(".code")]
    for name in ["source", *codes]:
        if name in codes[:1]:
            parts += [f"<h2>{escape(title)}</h2>{image(title, svg)}" for title, svg in pictures]
        for view in document["panes"][name]["views"]:
            if view["kind"] == view["name"] == "text":
                parts += _blocks(name, view)
    return f'<div class="lab-plain">{"".join(parts)}</div>'


def image(title: str, svg: str) -> str:
    """A picture as an image.

    Front ends remove the styles and shapes of an SVG element in HTML that they do not trust, and
    keep its words.  They show an image as it is.  Characters that XML does not allow become U+FFFD.
    """
    data = b64encode(NOT_IN_XML.sub("\ufffd", svg).encode()).decode()
    return f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{data}">'


def _fact_text(label: str, value: str) -> str:
    """`2 graphs` for a count; `peak memory: 4.0 kB` for any other value."""
    if value.replace(",", "").isdigit():
        return f"{value} {label}"
    return say("{label}: {value}", label=label, value=value)


def _breaks(pane: Mapping[str, Any]) -> Iterator[str]:
    """The table of graph breaks, if there are any."""
    for view in pane["views"]:
        if view["kind"] == "table":
            yield f"<h2>{escape(say(view['name']))}</h2>{written(tree_of(view))}"


def _blocks(name: str, view: Mapping[str, Any]) -> Iterator[str]:
    for block in view["blocks"]:
        lines = "\n".join(escape(line[0]) for line in block["lines"])
        yield f"<h2>{escape(say(name))} {escape(block['title'])}</h2><pre>{lines}</pre>"
