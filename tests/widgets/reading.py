"""What a view's tree says, as the tests ask for it."""

from __future__ import annotations

import re
from typing import Any

from inductor_lab.widgets.markup import inside, text_of
from inductor_lab.widgets.views import tree_of


def rows(view: Any) -> list[dict[str, Any]]:
    """The rows of a view's tables: cells, things, and the cells of the rows that each opens."""
    found: list[dict[str, Any]] = []
    for _, attributes, *cells in (tr for table in tables(view) for tr in table[3][2:]):
        if "hidden" in attributes:
            inner = inside(cells[0], "tr")
            found[-1]["more"] = [_texts(tr[2:]) for tr in inner]
        else:
            things = [int(thing) for thing in attributes["data-things"].split()]
            found.append({"cells": _texts(cells), "things": things, "more": []})
    return found


def columns(view: Any) -> list[str]:
    """The heads of a table; those of numbers start with `>`."""
    heads = (th for table in tables(view) for th in inside(table, "th"))
    return [">" * ("class" in th[1]) + text_of(th) for th in heads]


def tables(view: Any) -> list[Any]:
    """The tables of a view."""
    if view.get("kind") == "table":
        return list(inside(tree_of(view), "table"))
    return list(inside(view["tree"], "table")) if "tree" in view else []


def parts(view: Any, name: str) -> list[Any]:
    """The elements of a drawing that have this class."""
    (shown,) = inside(view["tree"], "svg")
    return [child for child in shown[2:] if child[1].get("class") == name]


def _texts(cells: list[Any]) -> list[str]:
    """Without the signs before them."""
    return ["".join(text_of(child) for child in cell[2:] if not _is_sign(child))
            for cell in cells if not _is_sign(cell)]  # fmt: skip


def _is_sign(tree: Any) -> bool:
    return not isinstance(tree, str) and "lab-sign" in tree[1].get("class", "")


def without_words(html: str) -> list[str]:
    """The pictures of a page that tell nothing to a reader who does not see them: no name, or no
    description where their parts are not read out.  What a script would draw is not looked at."""
    page = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    images = re.findall(r'<(?:img|canvas|object)(?![^>]* alt=")[^>]*>', page)
    depth, bare = 0, []
    for tag in re.finditer(r"<svg[^>]*>|</svg>", page):
        opens = tag[0] != "</svg>"
        if opens and depth == 0 and not _is_described(tag[0], page[tag.end() :]):
            bare.append(tag[0])
        depth += 1 if opens else -1
    return images + bare


def _is_described(head: str, inside: str) -> bool:
    name = re.search(r' aria-label="([^"]+)"', head)
    said = re.search(r"<desc>([^<]+)</desc>", inside.partition("</svg>")[0])
    read = ' role="group"' in head or (' role="img"' in head and said is not None)
    return read and name is not None and len(name[1].strip()) > 3
