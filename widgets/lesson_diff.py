"""Compare a student's run of a lesson with the teacher's: cells, outputs and compilations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inductor_lab.compiler.base.display import write_text
from inductor_lab.notebook.language import say
from inductor_lab.widgets.lesson import (
    code_html,
    documents_in,
    lesson_page,
    markdown_html,
    outputs_html,
)
from inductor_lab.widgets.shapes import ShownLine
from inductor_lab.widgets.views import diff_lines

if TYPE_CHECKING:
    from inductor_lab.course.lesson import Cell, Lesson, Pair

TIMED = ("compile time", "time in kernels", "time in library calls")
"""Facts that differ between runs."""
_KINDS = {"+": "added", "-": "removed", "@": "gap"}


def write_difference(own: Lesson, found: Sequence[Pair], path: Path) -> Path:
    """Write the comparison with the teacher's run; raises CannotWrite."""
    head, sections = difference_sections(found)
    title = say("{own}, compared with the teacher's run", own=own.title)
    head = f"<header><h1>{escape(title)}</h1>{head}</header>"
    return write_text(path, lesson_page(title, head, sections), "lesson")


def difference_sections(found: Sequence[Pair]) -> tuple[str, list[str]]:
    """The header, with a link to each cell that differs, and a section for each cell."""
    sections: list[str] = []
    links: dict[str, list[str]] = {"source": [], "outputs": [], "compilations": []}
    for number, pair in enumerate(found):
        wrong = compilations(pair)
        html, marks = _section(pair, number, wrong)
        sections.append(html)
        for mark in marks:
            links[mark].append(f'<a href="#cell-{number}">{number + 1}</a>')
    headings = {
        "source": "Cells whose source differs:",
        "outputs": "Cells whose outputs differ:",
        "compilations": "Cells whose compilations differ:",
    }
    rows = [
        f"<nav>{escape(say(headings[kind]))} {' '.join(cells) or escape(say('none'))}</nav>"
        for kind, cells in links.items()
    ]
    legend = say("Green lines (+) are the student's, red ones (-) the teacher's.")
    return f"{''.join(rows)}<p>{escape(legend)}</p>", sections


def compilations(pair: Pair) -> list[tuple[list[tuple[str, str, str]], list[ShownLine]]]:
    """For each explorer of a cell that differs: facts as (name, the teacher's, the student's), and
    lines of code."""
    both = zip_longest(_documents(pair.own), _documents(pair.given))
    found = []
    for own, given in both:
        facts = _facts_that_differ(own or {}, given or {})
        lines = diff_lines(_code(given or {}), _code(own or {}))
        if facts or lines:
            found.append((facts, lines))
    return found


def _documents(cell: Cell | None) -> list[dict[str, Any]]:
    outputs = cell.outputs if cell is not None else ()
    return [data for output in outputs
            for data in documents_in(output.data.get("text/html", ""))]  # fmt: skip


def _facts_that_differ(
    own: Mapping[str, Any], given: Mapping[str, Any]
) -> list[tuple[str, str, str]]:
    first = {fact["label"]: fact["value"] for fact in given.get("facts", ())}
    second = {fact["label"]: fact["value"] for fact in own.get("facts", ())}
    names = [name for name in {**first, **second} if name not in TIMED]
    rows = [(name, first.get(name, ""), second.get(name, "")) for name in names]
    return [row for row in rows if row[1] != row[2]]


def _code(document: Mapping[str, Any]) -> list[ShownLine]:
    """The lines of all generated kernels."""
    panes = document.get("panes", {})
    return [
        [line[0]]
        for name, pane in panes.items()
        if name.endswith(".code")
        for view in pane["views"][:1]
        for block in view.get("blocks", ())
        for line in block["lines"]
    ]


def _section(pair: Pair, number: int, wrong: Sequence[Any]) -> tuple[str, list[str]]:
    """The cell as HTML, and the kinds of its differences."""
    cell = pair.own or pair.given
    assert cell is not None, "a pair has a cell"
    marks: list[str] = []
    parts: list[str] = []
    if pair.changed:
        marks.append("source")
        parts.append(_badge(_why(pair)))
        before = [[line] for line in (pair.given.source if pair.given else "").splitlines()]
        after = [[line] for line in (pair.own.source if pair.own else "").splitlines()]
        parts.append(_lines(diff_lines(before, after)))
        if pair.own is not None:
            parts.append(outputs_html(pair.own, number))
    elif cell.kind == "markdown":
        parts.append(markdown_html(cell))
    else:
        parts.append(code_html(cell, number))
    if pair.differs and pair.given is not None and pair.own is not None:
        marks.append("outputs")
        lines = diff_lines([[x] for x in pair.given.said], [[x] for x in pair.own.said])
        parts.append(_fold(say("The outputs differ; measured times are left out"), _lines(lines)))
    for facts, lines in wrong:
        parts.append(_compilation(facts, lines))
    if wrong:
        marks.append("compilations")
    if (pair.differs or wrong) and pair.given is not None:
        parts.append(_fold(say("The teacher's outputs"), outputs_html(pair.given, number, "given")))
    return f'<section id="cell-{number}">{"".join(parts)}</section>', marks


def _why(pair: Pair) -> str:
    if pair.own is None:
        return say("not in the student's notebook")
    return say("not in the teacher's notebook" if pair.given is None else "changed")


def _compilation(facts: Sequence[tuple[str, str, str]], lines: Sequence[ShownLine]) -> str:
    heads = ("", "teacher", "student")
    head = "".join(f"<th>{escape(say(name)) if name else ''}</th>" for name in heads)
    rows = "".join(
        f'<tr class="no"><th scope="row">{escape(say(name))}</th>'
        f"<td>{escape(first)}</td><td>{escape(second)}</td></tr>"
        for name, first, second in facts
    )
    table = f'<table class="facts"><tr>{head}</tr>{rows}</table>' if facts else ""
    code = _fold(say("The generated code differs"), _lines(lines)) if lines else ""
    return f"{_badge(say('compilation differs'))}{table}{code}"


def _badge(text: str) -> str:
    return f'<span class="badge no">{escape(text)}</span>'


def _fold(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{body}</details>" if body else ""


def _lines(lines: Sequence[ShownLine]) -> str:
    return f'<div class="code" tabindex="0" role="group">{"".join(_rows(lines))}</div>'


def _rows(lines: Sequence[ShownLine]) -> Iterator[str]:
    for text, _, mark in lines:
        kind = f"row {_KINDS.get(mark, '')}".strip()
        shown = "" if mark in (" ", "@") else mark
        yield (f'<div class="{kind}"><span class="mark">{shown}</span>'
               f"<code>{escape(text) or ' '}</code></div>")  # fmt: skip
