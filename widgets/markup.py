"""Pages as trees `[tag, attributes, *children]`: Python prints them, `bench.js` builds them.

One tree is the page of a report, the output of a converted notebook and the live view.  Text stays
text on both roads: nothing of a user's program is ever read as HTML.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any, TypeAlias

Tree: TypeAlias = list[Any]
"""`["p", {"class": "lab-note"}, "text", ["b", {}, "more"]]`."""


def element(tag: str, attributes: dict[str, Any] | None, *children: Tree | str | None) -> Tree:
    """One element; attributes are given as text, children that are None are left out."""
    given = {name: str(value) for name, value in (attributes or {}).items()}
    return [tag, given, *(child for child in children if child is not None)]


def written(tree: Tree | str) -> str:
    """The tree as HTML (or SVG) text."""
    if isinstance(tree, str):
        return escape(tree, quote=False)
    tag, attributes, *children = tree
    given = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    return f"<{tag}{given}>{''.join(map(written, children))}</{tag}>"


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Tree:
    """A table; columns that start with `>` hold numbers and are set to the right."""
    heads = tuple(columns)
    kinds = [{"class": "number"} if head.startswith(">") else {} for head in heads]
    head = [element("th", {**kind, "scope": "col"}, name.removeprefix(">"))
            for kind, name in zip(kinds, heads, strict=True)]  # fmt: skip
    body = [
        element("tr", {}, *(element("td", k, c) for k, c in zip(kinds, row, strict=True)))
        for row in rows
    ]
    return element("table", {}, element("thead", {}, element("tr", {}, *head)),
                   element("tbody", {}, *body))  # fmt: skip
