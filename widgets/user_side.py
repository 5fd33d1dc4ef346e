"""Panes about the user's code: source, guards, graph breaks, bytecode, symbols."""

from __future__ import annotations

from itertools import groupby

from inductor_lab.compiler.capture.capture import Bytecode, Capture, GraphBreak, readable_source
from inductor_lab.compiler.capture.source import SourceFile
from inductor_lab.widgets.guards import guard_views
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.shapes import Block, Pane, View
from inductor_lab.widgets.views import (
    block,
    diff_lines,
    empty_view,
    pane,
    plain_lines,
    row,
    table_view,
    text_view,
)


def source_view(source: SourceFile, links: Links) -> View:
    """The function's source, then the linked lines in other places.

    Call it last: it shows the lines that the other panes link to.  Lines without source text
    (`<string>`, a dataclass's methods) are not shown.
    """
    lines = source.text.rstrip("\n").split("\n") if source.text.strip() else []
    blocks = []
    if lines:
        numbered = enumerate(lines, source.first_line)
        shown = [[text, [links.line(source.file, n)]] for n, text in numbered]
        blocks.append(block(shown, source.file, source.first_line))
    own = range(source.first_line, source.first_line + len(lines))
    elsewhere = sorted(
        {(s.file, s.line): (thing, s) for thing, s in links.spans.items()
         if s.code and not (s.file == source.file and s.line in own)}.items()
    )
    last_file = source.file if lines else ""
    for _, run in groupby(enumerate(elsewhere), key=lambda e: (e[1][0][0], e[1][0][1] - e[0])):
        found = [(span, thing) for _, (_, (thing, span)) in run]
        file = found[0][0].file
        title = file if file != last_file else "⋯"
        blocks.append(
            block([[s.code, [thing]] for s, thing in found], title, found[0][0].line)
        )
        last_file = file
    if not blocks:
        return empty_view("text", "The source of this function is not available.")
    return text_view("text", blocks)


def user_panes(capture: Capture, links: Links) -> dict[str, Pane]:
    """Guards, breaks, bytecode and symbols, by pane id."""
    breaks = len(capture.breaks)
    return {
        "guards": pane("guards", guard_views(capture, links), count=len(capture.guards)),
        "breaks": pane(
            "graph breaks",
            [breaks_view(capture, links)],
            count=breaks,
            problem="graph break" if breaks else "",
        ),
        "bytecode": pane("bytecode", bytecode_views(capture)),
        "symbols": pane(
            "symbols",
            [symbols_view(capture, links)],
            count=len(capture.symbols),
            problem="recompiled" if capture.recompiles else "",
        ),
    }


def breaks_view(capture: Capture, links: Links) -> View:
    """Each graph break with its reason and hints; a row opens to the explanation and the stack."""
    if not capture.breaks:
        text = "No graph breaks: the whole function was captured."
        return empty_view("breaks", text)
    rows = [
        row((b.span or "", b.reason, " ".join(b.hints)), links.source_of(b.span),
            _break_detail(b), "warn")
        for b in capture.breaks
    ]
    return table_view("breaks", ("where", "reason", "hint"), rows)


def _break_detail(found: GraphBreak) -> list[tuple[str, str, str]]:
    stack = [("called from", str(span), span.code) for span in found.user_stack]
    link = [("documentation", found.link, "")] if found.link else []
    return [("what happened", found.explanation, ""), *link, *stack]


def bytecode_views(capture: Capture) -> list[View]:
    """Python's bytecode, the bytecode rewritten by TorchDynamo, and the diff."""
    if not capture.bytecode:
        return [empty_view("rewritten", "Dynamo recorded no bytecode for this call.")]
    return [
        text_view("rewritten", [_listing(b, b.rewritten) for b in capture.bytecode]),
        text_view("original", [_listing(b, b.original) for b in capture.bytecode]),
        text_view("diff", [_listing_diff(b) for b in capture.bytecode]),
    ]


def _listing(code: Bytecode, text: str) -> Block:
    return block(plain_lines(text), f"{code.function}  {code.compile_id}")


def _listing_diff(code: Bytecode) -> Block:
    lines = diff_lines(plain_lines(code.original), plain_lines(code.rewritten))
    return block(lines, f"{code.function}  {code.compile_id}", first=0)


def symbols_view(capture: Capture, links: Links) -> View:
    """Dynamic sizes and the reasons of recompiles."""
    rows = [
        row((s.name, readable_source(s.source), s.hint, s.range, s.span or ""),
            links.source_of(s.span))
        for s in capture.symbols
    ]
    rows += [
        row(("recompile", readable_source(r.reason), "", "", r.compile_id), mark="warn")
        for r in capture.recompiles
    ]
    if not rows:
        return empty_view(
            "symbols", "All sizes are static: no dynamic shapes and no recompiles in this call."
        )
    return table_view("symbols", ("symbol", "meaning", ">value", "range", "created by"), rows)
