"""The tooltips of the explorer: terms from docs/glossary.md, fusion rules from docs/rules.md.

A heading that differs from its term is mapped to it by `HEADINGS`.  A rule that a user has added is
explained by the first paragraph of its docstring.
"""

from __future__ import annotations

import re
from functools import cache
from inspect import getdoc
from pathlib import Path

from inductor_lab.compiler.schedule.fusion import (  # noqa: F401  (their rules are registered on import)
    combo,
    legality,
    profit,
    profit_gpu,
)
from inductor_lab.compiler.schedule.fusion.rules import LEGALITY, PROFIT
from inductor_lab.notebook.language import Language, language, table

DOCS = Path(__file__).parents[1] / "docs"
_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| .+ \|$", re.MULTILINE)

HEADINGS = {
    "graph": "captured graph",
    "captured": "captured graph",
    "break": "graph break",
    "joint": "joint graph",
    "saved": "partition",
    "recomputed": "partition",
    "budget": "memory budget",
    "loops": "loop program",
    "code loops": "loop tree",
    "loops graph": "loop program",
    "schedule graph": "schedule",
    "host": "host program",
    "memory": "memory plan",
    "after planning": "memory plan",
    "without a plan": "memory plan",
    "pair": "producer, consumer",
    "relation": "producer, consumer",
    "saves": "traffic",
    "reads": "traffic",
    "writes": "traffic",
    "traffic saved by fusion": "traffic",
    "peaks": "step memory",
    "cuda graphs": "CUDA graph",
    "why not fused": "decision",
    "schedule passes": "memory pass",
    "rewrites pass": "rewrite",
    "of the roof": "roof",
    "fact code": "coverage",
    "assembly": "kernel",
    "machine code": "ladder",
    "source": "span",
    "steps": "bytecode",
    "compile id": "recompile",
}
"""Heading → term, where they differ; `"code loops"` is the heading "loops" of the pane "code"."""


@cache
def glossary() -> dict[str, str]:
    """Every term of docs/glossary.md with its meaning."""
    return _rows("glossary.md", "term")


@cache
def descriptions() -> dict[str, str]:
    """Every fusion rule, rewrite and loop-tree pass of docs/rules.md with its meaning."""
    return {**_rows("rules.md", "rule"), **_rows("rules.md", "pass")}


def pass_description(name: str) -> str:
    """What a pass of any level does, as `Pass.what` has it; "" for one that a user has added.

    >>> pass_description("tiles")
    'tile transposed reads'
    """
    meaning = _rows("rules.md", "pass").get(name, "").removesuffix(".")
    return meaning[:1].lower() + meaning[1:]


@cache
def _rows(file: str, kind: str) -> dict[str, str]:
    """The rows of the tables in a file whose first column is `kind`."""
    tables = (DOCS / file).read_text(encoding="utf-8").split(f"| {kind} | meaning | where |")[1:]
    rows = (row for text in tables for row in _ROW.findall(text.partition("\n\n")[0]))
    return {name: meaning.replace("`", "") for name, meaning in rows if name != "---"}


def description(name: str, function: object) -> str:
    """What a rule or a rewrite does, in the current language.

    For one that a user has added: the first paragraph of its docstring, as one line.
    """
    if name in descriptions():
        translated = table()["rules"] if language() == "zh" else {}
        return translated.get(name, descriptions()[name])
    return " ".join((getdoc(function) or "").partition("\n\n")[0].split())


def words() -> dict[str, str]:
    """Every term, heading and rule → its meaning, in the current language."""
    return _words(language())


@cache
def _words(spoken: Language) -> dict[str, str]:
    meanings = {**glossary(), **(table()["glossary"] if spoken == "zh" else {})}
    known = dict(meanings)
    for term, meaning in meanings.items():
        known.update(dict.fromkeys(term.split(", "), meaning))
    known.update({heading: known[term] for heading, term in HEADINGS.items()})
    for rules in (LEGALITY, PROFIT, combo.LEGALITY, combo.PROFIT):
        known.update({name: description(name, rule) for name, rule in rules.items()})
    return known


def meaning_of(heading: str, pane: str = "") -> str:
    """The meaning of a heading in the pane with this title; "" if it has none.  `words.js` does
    the same.

    >>> meaning_of(">passes", "schedule") == meaning_of("memory passes") != ""
    True
    """
    name, title = (re.sub(r"^>|\s+\d+$", "", text.strip().lower()) for text in (heading, pane))
    known = words()
    forms = (name, name.removesuffix("s"), name.removesuffix("es"))
    places = [f"{title} {form}" for form in forms] + [*forms]
    return next((known[place] for place in places if place in known), "")
