"""The result of `lab.advise`: edits that reduce recompiles, each with its counts and its diff."""

from __future__ import annotations

from collections.abc import Iterator

from inductor_lab.debug.advice.advise import Advice, Verified
from inductor_lab.notebook.language import say, translate
from inductor_lab.widgets.markup import Tree, element, said_heads, table, written
from inductor_lab.widgets.page import bench_style, debug_style
from inductor_lab.widgets.text_diff import STYLE, diff_tree

COLUMNS = ("edit", ">compiles", ">calls in eager mode", "what it does")


def advice_html(found: Advice) -> str:
    """HTML for a cell's output; readable without a script."""
    body = element("div", {"class": "lab-bench"}, *_parts(found))
    return f"<style>{bench_style()}{debug_style()}{STYLE}</style>{written(body)}"


def _parts(found: Advice) -> Iterator[Tree]:
    yield element("h1", {}, say("recompiles of {name}", name=found.name))
    yield element("p", {"class": "lab-verdict"}, _verdict(found))
    if found.edits:
        rows = [(say("without an edit"), str(found.compiles), "", ""), *map(_row, found.edits)]
        grid = table(said_heads(COLUMNS), rows)
        yield element("div", {"class": "lab-table"}, grid)
    for number, each in enumerate(found.edits):
        shown = {"open": ""} if not number else {}
        counts = f"{', '.join(each.names)}: {found.compiles} → {each.compiles}"
        yield element("details", shown, element("summary", {}, counts), diff_tree(each.diff))
    if not found.refused:
        yield element("p", {"class": "lab-machine"}, _how(found))


def _verdict(found: Advice) -> str:
    if found.refused:
        return say("No edit was tried: {why}.", why=translate(found.refused))
    now = say("compiles: {n}, recompiles: {m}", n=found.compiles, m=found.recompiles)
    if not found.recompiles:
        return say("{now}: there is nothing to improve", now=now)
    if found.best is None:
        return say("{now}: no edit reduces them", now=now)
    return say("{now}; with the best edit: {n}", now=now, n=found.best.compiles)


def _row(each: Verified) -> tuple[str, ...]:
    what = " ".join(say("{sentence}.", sentence=translate(text)) for text in each.what)
    return ", ".join(each.names), str(each.compiles), str(each.eager_calls), what


def _how(found: Advice) -> str:
    ran = say("Edits tried: {n}. The program ran {m} times, each time in a process of its own.",
              n=found.tried, m=found.runs)  # fmt: skip
    calls = ", ".join(f"{name} × {n}" for name, n in found.calls.items())
    return f"{ran} {say('Calls in one run: {calls}.', calls=calls)}" if calls else ran
