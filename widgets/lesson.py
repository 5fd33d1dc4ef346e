"""A lesson as one HTML file: cells, outputs, annotated lines, and interactive offline explorers.

The content of a notebook may come from a student, so none of its scripts run: they are removed, and
the page's content security policy allows only the explorer's own script, by its hash.  Explorers
are redrawn from the documents in the notebook's outputs.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inductor_lab.compiler.base.display import write_text
from inductor_lab.compiler.base.errors import MissingPackage
from inductor_lab.widgets.compressed import unzipped, zipped
from inductor_lab.widgets.page import lesson_style, page, script, style
from inductor_lab.widgets.plain import STYLE, plain_document

if TYPE_CHECKING:
    from inductor_lab.course.lesson import Cell, Lesson, Note, Output

_DRAWN = re.compile(r'\brender(?:Zipped|(Tabs))\(document\.getElementById\("lab-[0-9a-f]+"\), ')
_SCRIPT = re.compile(r"<script\b.*?</script\s*>", re.DOTALL | re.IGNORECASE)
PICTURES = ("image/png", "image/jpeg")
_DRAW = """
const shown = new Map();
function drawn(place) {
  if (!shown.has(place)) {
    shown.set(place, renderZipped(place, place.nextElementSibling.textContent));
  }
  return shown.get(place);
}
const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (isIntersecting) drawn(target);
  }
}, { rootMargin: "400px" });
for (const place of document.querySelectorAll(".lesson-explorer")) seen.observe(place);
for (const button of document.querySelectorAll("[data-line]")) {
  if (button.tagName === "BUTTON") button.addEventListener("click", async () => {
    const place = document.getElementById(button.dataset.place);
    const explorer = await drawn(place);
    const { pane, line } = button.dataset;
    if (!explorer.doc.panes[pane]) return;
    const view = explorer.doc.panes[pane].views.findIndex((each) => each.kind === "text");
    const slot = explorer.show(pane, true, Math.max(view, 0));
    slot.view.goTo?.(Number(line));
    place.scrollIntoView({ block: "nearest" });
  });
}
"""


def documents_in(html: str) -> list[dict[str, Any]]:
    """The documents of the explorers in an output (see show.py)."""
    found: list[dict[str, Any]] = []
    for drawing in _DRAWN.finditer(html):
        try:
            data, _ = json.JSONDecoder().raw_decode(html, drawing.end())
        except ValueError:  # an output that was modified
            continue
        for each in [entry[0] for entry in data] if drawing[1] else [data]:
            with suppress(ValueError):
                found.append(unzipped(str(each)))
    return found


def write_lesson(lesson: Lesson, path: Path) -> Path:
    """Write the page; raises CannotWrite."""
    cells = [_section(cell, number) for number, cell in enumerate(lesson.cells)]
    return write_text(path, lesson_page(lesson.title, "", cells), "lesson")


def lesson_page(title: str, head: str, sections: Iterable[str]) -> str:
    """The page around the sections of its cells."""
    own = f"\n{script()}\n{_DRAW}"
    digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
    body = (
        f'<div class="lesson">{head}{"".join(sections)}</div>\n'
        f'<script type="module">{own}</script>'
    )
    styles = (STYLE, style(), lesson_style(), *_colours())
    return page(title, body, *styles, scripts=f"'sha256-{digest}'")


def _colours() -> Iterator[str]:
    """Styles for code, light and dark; both have the contrast of 4.5 that text needs."""
    for name, when in (("default", "light"), ("github-dark", "dark")):
        rules = _pygments("formatters").HtmlFormatter(style=name).get_style_defs(".lesson .code")
        yield f"@media (prefers-color-scheme: {when}) {{\n{rules}\n}}\n.lesson .code {{}}"


def _pygments(module: str) -> Any:
    return _library(f"pygments.{module}")


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingPackage(str(error.name)) from None


def _section(cell: Cell, number: int) -> str:
    inside = markdown_html(cell) if cell.kind == "markdown" else code_html(cell, number)
    return f'<section id="cell-{number}">{inside}</section>'


def markdown_html(cell: Cell) -> str:
    """The text of a Markdown cell; raw HTML is kept, scripts are removed."""
    text = _library("nbconvert.filters.markdown").markdown2html(cell.source)
    return f'<div class="markdown">{_SCRIPT.sub("", text)}</div>'


def code_html(cell: Cell, number: int) -> str:
    """The lines of a code cell with their annotations, and its outputs."""
    notes: dict[int, list[str]] = {}
    coloured = source_lines(cell.source)
    for note in cell.notes:
        if not note.pane:
            notes.setdefault(min(note.line, len(coloured)), []).append(note.text)
    lines = [
        _line(place, line, notes.get(place, ())) for place, line in enumerate(coloured, 1)
    ]
    code = f'<div class="code" tabindex="0" role="group">{"".join(lines)}</div>' if lines else ""
    return f"{code}{outputs_html(cell, number)}"


def _line(place: int, html: str, notes: Sequence[str]) -> str:
    beside = "".join(f'<p class="note">{escape(text)}</p>' for text in notes)
    kind = "row noted" if notes else "row"
    code = f'<span class="count">{place}</span><code>{html or " "}</code>'
    return f'<div class="{kind}">{code}{beside}</div>'


def source_lines(source: str) -> list[str]:
    """Python source as lines with syntax colours."""
    if not source.strip():
        return []
    lexer = _pygments("lexers").PythonLexer(stripnl=False)
    formatter = _pygments("formatters").HtmlFormatter(nowrap=True)
    html: str = _library("pygments").highlight(source, lexer, formatter)
    return html.rstrip("\n").split("\n")


def outputs_html(cell: Cell, number: int, of: str = "own") -> str:
    """The outputs of a cell; buttons link the teacher's annotations to lines of its explorers."""
    shown = [_output(output, f"{of}-{number}-{n}") for n, output in enumerate(cell.outputs)]
    places = [note for note in cell.notes if note.pane]
    names = [name for output, name in _explorers(cell, number, of) for _ in output]
    head = _places(places, names[-1]) if places and names else ""
    return f'<div class="outputs">{head}{"".join(shown)}</div>' if shown else ""


def _explorers(cell: Cell, number: int, of: str) -> Iterator[tuple[list[Any], str]]:
    for n, output in enumerate(cell.outputs):
        yield documents_in(output.data.get("text/html", ""))[:1], f"{of}-{number}-{n}-0"


def _places(notes: Sequence[Note], name: str) -> str:
    rows = [
        f'<li><button type="button" data-place="{name}" data-pane="{escape(note.pane)}" '
        f'data-line="{note.line}">{escape(note.pane)}/{note.line}</button>{escape(note.text)}</li>'
        for note in notes
    ]
    return f'<ul class="places">{"".join(rows)}</ul>'


def _output(output: Output, name: str) -> str:
    html = output.data.get("text/html", "")
    documents = documents_in(html)
    if documents:
        return "".join(_explorer(data, f"{name}-{n}") for n, data in enumerate(documents))
    if html:
        return f'<div class="drawn">{_SCRIPT.sub("", html)}</div>'
    if "image/svg+xml" in output.data:
        return f'<div class="drawn">{_SCRIPT.sub("", output.data["image/svg+xml"])}</div>'
    for mime in PICTURES:
        if mime in output.data:
            address = f"data:{mime};base64,{output.data[mime].replace(chr(10), '')}"
            about = escape(output.text or mime, quote=True)
            return f'<div class="drawn"><img alt="{about}" src="{escape(address)}"></div>'
    kind = "said failed" if output.failed else "said"
    return f'<pre class="{kind}" tabindex="0">{escape(output.text)}</pre>' if output.text else ""


def _explorer(document: dict[str, Any], name: str) -> str:
    plain = plain_document(document)
    return (
        f'<div class="lesson-explorer" id="{name}">{plain}</div>'
        f'<script type="text/plain">{zipped(document)}</script>'
    )
