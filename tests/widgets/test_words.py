"""Headings and rules of the explorer are explained, by the glossary's own sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

import inductor_lab as lab
from inductor_lab.widgets.model import document
from inductor_lab.widgets.words import HEADINGS, glossary, meaning_of, words
from tests.widgets.reading import columns, rows

PLAIN = {
    "time", "text", "text after", "graph after", "diff", "all", "breaks", "compile time",
    "time in kernels", "time in library calls",
    "phases", "timeline", "try", "dynamo", "rewritten", "original", "created by",
    "guarded value", "line", "meaning", "reason as compiled", "replaced by",
    "choice", "condition", "node", "op", "reason", "reasons", "size", "value",
    "what happened", "where", "hint", "gb/s", "code",
}  # fmt: skip
"""Everyday words, and headings that need no explanation."""


def broken(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x @ w
    print("a graph break")
    return torch.softmax(y.cumsum(0), -1)


def headings(shown: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every heading with the title of the pane that it stands in."""
    yield from ((fact["label"], "fact") for fact in shown["facts"])
    for pane in shown["panes"].values():
        yield pane["title"], ""
        for view in pane["views"]:
            yield view["name"], pane["title"]
            yield from ((column, pane["title"]) for column in columns(view))


def test_every_heading_has_its_sentence() -> None:
    c = lab.inspect(broken, *(torch.randn(8, 8, requires_grad=True) for _ in range(2)))
    shown = document(c)
    silent = {h.lstrip(">").lower() for h, pane in headings(shown) if not meaning_of(h, pane)}
    assert silent - PLAIN == set()
    rules = {rule[0] for pane in shown["panes"].values() for view in pane["views"]
             if view["name"] == "decisions" for row in rows(view)
             for rule in row["more"] if not rule[0].startswith("earlier attempt")}  # fmt: skip
    assert len(rules) > 5 and rules <= set(shown["words"])


def test_sentences_are_the_glossarys() -> None:
    terms = set(glossary())
    assert set(HEADINGS.values()) <= terms | set(words())
    assert len(terms) > 60 and all("`" not in sentence for sentence in words().values())
    assert meaning_of("memory passes", "fact") == glossary()["memory pass"]
    assert meaning_of("consumer") == glossary()["producer, consumer"]
    assert meaning_of("loops", "code") == glossary()["loop tree"] != meaning_of("loops")
    assert meaning_of("captured 1") == glossary()["captured graph"]
    assert meaning_of("part") == glossary()["part"] and "backward" in glossary()["part"]
    assert meaning_of("abacus") == ""
    assert all(words()[rule] for rule in ("same_iteration_space", "bytes_saved"))
