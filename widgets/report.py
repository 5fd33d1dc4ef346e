"""One HTML file with everything in it: data, script and style; nothing is fetched from anywhere."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_lab.display import write_text
from inductor_lab.widgets.ladder import low_level_panes
from inductor_lab.widgets.model import add_group, linked_document
from inductor_lab.widgets.page import json_for_html, script, style
from inductor_lab.widgets.plain import STYLE, plain_document

if TYPE_CHECKING:
    from inductor_lab.compilation import Compilation

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>body{{margin:0}}{plain_style}</style>
<style>{style}</style>
</head>
<body>
<div id="lab" class="lab-page">{plain}</div>
<script type="application/json" id="lab-document">{data}</script>
<script type="module">
{script}
render(
  document.getElementById("lab"),
  JSON.parse(document.getElementById("lab-document").textContent),
);
</script>
</body>
</html>
"""


def report_html(
    compilation: Compilation, ladder: str | None = None, assembly: bool = False
) -> str:
    """The page as text, with the panes below the code that are asked for."""
    shown, links = linked_document(compilation)
    add_group(shown, "machine code", low_level_panes(compilation, ladder, assembly, links))
    return _PAGE.format(
        title=escape(f"{compilation.name} - inductor_lab"),
        plain_style=STYLE,
        style=style(),
        plain=plain_document(shown),
        data=json_for_html(shown),
        script=script(),
    )


def write_report(
    compilation: Compilation, path: Path, ladder: str | None = None, assembly: bool = False
) -> Path:
    """Write the page to `path`; raises CannotWrite."""
    page = report_html(compilation, ladder, assembly)
    return write_text(path, page, "report")
