"""Markup as trees `[tag, attributes, *children]`, built once and used in three places.

A page builds a tree and makes it interactive (`javascript/view.js`), `written` prints it as HTML or
SVG, and `svg.drawing_svg` extracts its drawing as a standalone picture.  Text is always escaped:
nothing in a user's program is parsed as HTML.

Some attributes are for interactive pages; the other two uses omit them:

    data-things   the things of an element (`Links`): hover previews them, a click pins them, arrow
                  keys and search reach the element; "" for an element without known things
    data-term     a term of the glossary; "" if the term is the text of the element
    data-pair     "forbid buf0 buf3 g0.forward": the request that a click sends
    data-steps    "0 2": the element exists only in these steps of a slider; see `at_step`
    data-step     "2": a click moves the slider to this step
    hidden        a row of a table that opens from the row above it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, TypeAlias

from inductor_lab.notebook.language import say

Tree: TypeAlias = list[Any]
"""`["p", {"class": "lab-note"}, "text", ["b", {}, "more"]]`."""

LIVE = ("data-things", "data-term", "data-pair", "data-steps", "data-step", "hidden")
"""Attributes that only an interactive page uses."""


def element(tag: str, attributes: dict[str, Any] | None, *children: Tree | str | None) -> Tree:
    """One element; attribute values are converted to text, None children are omitted."""
    given = {name: str(value) for name, value in (attributes or {}).items()}
    return [tag, given, *(child for child in children if child is not None)]


def about(things: Iterable[int]) -> dict[str, str]:
    """The attribute with the things of an element.

    >>> about([3, 12])
    {'data-things': '3 12'}
    """
    return {"data-things": " ".join(map(str, things))}


def written(tree: Tree | str) -> str:
    """The tree as HTML (or SVG) text."""
    if isinstance(tree, str):
        return escape(tree, quote=False)
    tag, attributes, *children = tree
    given = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items()
                    if name not in LIVE)  # fmt: skip
    return f"<{tag}{given}>{''.join(map(written, children))}</{tag}>"


def at_step(tree: Tree, step: int) -> Tree:
    """The tree at this step of its slider.

    >>> at_step(["p", {}, ["b", {"data-steps": "0 1"}, "few"], ["b", {}, "all"]], 2)
    ['p', {}, ['b', {}, 'all']]
    """
    return [*tree[:2], *(child if isinstance(child, str) else at_step(child, step)
                         for child in tree[2:] if _is_at(child, step))]  # fmt: skip


def _is_at(tree: Tree | str, step: int) -> bool:
    steps = None if isinstance(tree, str) else tree[1].get("data-steps")
    return steps is None or str(step) in steps.split()


def inside(tree: Tree | str, tag: str) -> Iterator[Tree]:
    """All outermost elements with this tag, in order."""
    if isinstance(tree, str):
        return
    if tree[0] == tag:
        yield tree
        return
    for child in tree[2:]:
        yield from inside(child, tag)


def text_of(tree: Tree | str) -> str:
    """All text of a tree.

    >>> text_of(element("p", {}, "x ", element("b", {}, "is"), " y"))
    'x is y'
    """
    return tree if isinstance(tree, str) else "".join(map(text_of, tree[2:]))


def said_heads(columns: Iterable[str]) -> tuple[str, ...]:
    """The heads of a table in the current language; a leading `>` is kept."""
    return tuple((">" if c.startswith(">") else "") + say(c.removeprefix(">")) for c in columns)


def tips(tree: Tree) -> Iterator[Tree]:
    """The tooltips of a drawing: the titles of its parts."""
    return inside(tree, "title")


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Tree:
    """A table; columns that start with `>` are numbers and right-aligned."""
    heads = tuple(columns)
    kinds = [number(head) for head in heads]
    body = [
        element("tr", {}, *(element("td", k, c) for k, c in zip(kinds, row, strict=True)))
        for row in rows
    ]
    return element("table", {}, head_row(heads), element("tbody", {}, *body))


def head_row(columns: Iterable[str]) -> Tree:
    """The heads of a table."""
    heads = (element("th", {**number(name), "scope": "col"}, name.removeprefix(">"))
             for name in columns)  # fmt: skip
    return element("thead", {}, element("tr", {}, *heads))


def number(column: str) -> dict[str, str]:
    """The attributes of a cell in a column with this head."""
    return {"class": "number"} if column.startswith(">") else {}
