"""Views: the ways in which a pane can show something, as plain JSON data.

    text     numbered lines in titled blocks, each line with the things it shows
    graph    a `Picture`
    table    columns and rows; a row may hold more rows, shown when it is opened
    lanes    lifetimes of buffers over the steps of a schedule
    budget   what each memory budget keeps for the backward
    bars     amounts, drawn to scale
    timeline phases over time
    steps    instructions with the symbolic stack and the graph so far
    guards   a form of inputs, and conditions over them that the page evaluates
    empty    a sentence that says what is missing and how to get it

`explorer.js` draws each kind; `plain.py` writes each as plain text.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from inductor_lab.capture.graph import FxGraph
from inductor_lab.codegen.kernel import Code
from inductor_lab.ir.program import LoopProgram
from inductor_lab.ir.text import program_lines
from inductor_lab.widgets.links import Links, Thing

View: TypeAlias = dict[str, Any]
ShownLine: TypeAlias = "list[Any]"
"""[text], [text, things] or [text, things, mark]; marks are `+`, `-` and `@` (a heading)."""

CONTEXT = 3


def pane(
    title: str,
    views: list[View],
    *,
    count: str = "",
    seconds: float | None = None,
    problem: str = "",
) -> View:
    """`count` and `seconds` stand beside the title in the rail; `problem` is a word for a dot."""
    return {
        "title": title, "views": views, "count": count, "seconds": seconds, "problem": problem
    }


def text_view(name: str, blocks: Sequence[View]) -> View:
    return {"kind": "text", "name": name, "blocks": list(blocks)}


def block(
    lines: Iterable[ShownLine], title: str = "", first: int = 1, language: str = "python"
) -> View:
    """Lines under a title, numbered from `first`; 0 leaves numbers out.

    `language` is one that `colours.js` knows, or "" for prose.
    """
    return {"title": title, "first": first, "language": language, "lines": list(lines)}


def table_view(name: str, columns: Sequence[str], rows: Iterable[View], note: str = "") -> View:
    """`columns` that start with `>` are numbers, set to the right."""
    return {"kind": "table", "name": name, "columns": list(columns), "rows": list(rows),
            "note": note}


def row(
    cells: Iterable[Any], things: Iterable[Thing] = (), more: Iterable[Any] = (), mark: str = ""
) -> View:
    """One row; `more` are the rows shown when it is opened; `mark` is ok, no or warn."""
    return {
        "cells": [str(cell) for cell in cells],
        "things": list(things),
        "more": [[str(cell) for cell in inner] for inner in more],
        "mark": mark,
    }


def empty_view(name: str, text: str) -> View:
    return {"kind": "empty", "name": name, "text": text}


def plain_lines(text: str) -> list[ShownLine]:
    return [[line] for line in text.rstrip("\n").split("\n")]


def fx_lines(graph: FxGraph, links: Links, scope: str) -> Iterator[ShownLine]:
    """The graph's text; a line that assigns a node shows that node.

    `capture/text.py` writes one line a node, in order, so one look at the next name is enough.
    """
    waiting = [node.name for node in graph.nodes if node.op != "output"]
    given = [node.name for node in graph.nodes if node.op == "placeholder"]
    for line in graph.text.rstrip("\n").split("\n"):
        code = line.strip()
        if code.startswith("def forward(") and code.endswith(":"):
            yield [line, links.find("node", scope, given)]
            waiting = waiting[len(given) :]
        elif waiting and code.startswith((f"{waiting[0]}:", f"{waiting[0]} =", f"{waiting[0]},")):
            yield [line, links.find("node", scope, [waiting.pop(0)])]
        else:
            yield [line]


def loop_lines(program: LoopProgram, links: Links, scope: str) -> list[ShownLine]:
    """The loop program's text, each line with its FX nodes."""
    return [
        [text.rstrip(), links.find("node", scope, sorted(origins))]
        for text, origins in program_lines(program)
    ]


def code_lines(code: Code, links: Links, scope: str) -> list[ShownLine]:
    """Generated code, each line with its FX nodes."""
    return [
        [line.text, links.find("node", scope, sorted(line.origins))] for line in code.lines
    ]


def diff_lines(before: Sequence[ShownLine], after: Sequence[ShownLine]) -> list[ShownLine]:
    """What changed, with some lines around it; `-` lines are the old, `+` lines the new."""
    old, new = [line[0] for line in before], [line[0] for line in after]
    shown: list[ShownLine] = []
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    for hunk in matcher.get_grouped_opcodes(CONTEXT):
        if shown:
            shown.append(["⋯", [], "@"])
        for tag, a0, a1, b0, b1 in hunk:
            if tag == "equal":
                shown += [_marked(line, " ") for line in after[b0:b1]]
            else:
                shown += [_marked(line, "-") for line in before[a0:a1]]
                shown += [_marked(line, "+") for line in after[b0:b1]]
    return shown


def _marked(line: ShownLine, mark: str) -> ShownLine:
    things = line[1] if len(line) > 1 else []
    return [line[0], things, mark]
