"""Unified diffs as markup: one column, or the old and the new text side by side.

The sign at the start of a line says what the colour says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

from inductor_lab.notebook.language import say
from inductor_lab.widgets.markup import Tree, element
from inductor_lab.widgets.svg import themed

_SHAPES = """
.lab-bench .lab-sides{overflow-x:auto;margin:4px 0 8px}
.lab-bench .lab-sides table{width:100%;min-width:560px;table-layout:fixed;border-collapse:collapse}
.lab-bench .lab-sides td,.lab-bench .lab-sides th{font:12px/1.5 var(--mono);text-align:left;
color:var(--fg);background:var(--bg);padding:0 8px;vertical-align:top;white-space:pre-wrap;
overflow-wrap:anywhere;width:50%;max-width:none;border:0}
.lab-bench .lab-sides th{color:var(--soft);background:var(--panel);padding:3px 8px}
.lab-bench .lab-sides td.lab-gap{color:var(--soft);background:var(--panel);text-align:center}
.lab-bench .lab-diff span{display:block;min-height:1.5em}
"""
STYLE = _SHAPES + themed(
    ".lab-bench",
    {".lab-sides td.lab-old": "background:#ffebe9", ".lab-sides td.lab-new": "background:#dafbe1",
     ".lab-diff .lab-old": "background:#ffebe9", ".lab-diff .lab-new": "background:#dafbe1"},
    {".lab-sides td.lab-old": "background:#3b1618", ".lab-sides td.lab-new": "background:#0f2d17",
     ".lab-diff .lab-old": "background:#3b1618", ".lab-diff .lab-new": "background:#0f2d17"},
)  # fmt: skip
_MARKS = {"-": "lab-old", "+": "lab-new"}


def diff_tree(text: str) -> Tree:
    """A unified diff, with the names of its files, in one column."""
    names, lines = text.splitlines()[:2], text.splitlines()[2:]
    shown = [element("span", {}, line) for line in names]
    shown += [element("span", _style(line), line) for line in lines]
    return element("pre", {"class": "lab-diff"}, *shown)


def _style(line: str) -> dict[str, str]:
    return {"class": _MARKS[line[:1]]} if line[:1] in _MARKS else {}


def sides_tree(lines: Iterable[str], heads: tuple[str, str]) -> Tree:
    """The lines of a unified diff (without the names of its files), old and new side by side."""
    head = element("tr", {}, *(element("th", {"scope": "col"}, name) for name in heads))
    table = element("table", {}, element("thead", {}, head),
                    element("tbody", {}, *_rows(lines)))  # fmt: skip
    return element("div", {"class": "lab-sides"}, table)


def _rows(lines: Iterable[str]) -> Iterator[Tree]:
    old: list[str] = []
    new: list[str] = []
    first = True
    for line in lines:
        sign, text = line[:1], line[1:]
        if sign == "-":
            old.append(text)
        elif sign == "+":
            new.append(text)
        else:
            yield from _changed(old, new)
            old, new = [], []
            if sign == "@" and not first:
                yield element("tr", {}, element("td", {"class": "lab-gap", "colspan": 2}, "⋯"))
            elif sign != "@":
                yield element("tr", {}, *(element("td", {}, f"  {text}") for _ in range(2)))
            first = False
    yield from _changed(old, new)


def _changed(old: list[str], new: list[str]) -> Iterator[Tree]:
    """Lines that differ: those of equal number are next to each other."""
    for before, after in zip_longest(old, new):
        yield element("tr", {}, _cell("-", before), _cell("+", after))


def _cell(sign: str, text: str | None) -> Tree:
    if text is None:
        return element("td", {"aria-label": say("no line")}, "")
    return element("td", {"class": _MARKS[sign]}, f"{sign} {text}")
