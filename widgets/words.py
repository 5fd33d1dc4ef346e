"""What the words of the explorer mean, for whoever points at one: from docs/glossary.md alone.

Terms keep the glossary's sentence.  A heading that is spelled otherwise leads to its term
(`HEADINGS`); fusion rules and passes over loop trees are explained by the code that they are.
"""

from __future__ import annotations

import re
from functools import cache
from inspect import getdoc
from pathlib import Path

from inductor_lab.compiler.codegen.cpu.passes import PASSES
from inductor_lab.compiler.schedule.fusion import legality, profit  # noqa: F401  (their rules enter the tables)
from inductor_lab.compiler.schedule.fusion.rules import LEGALITY, PROFIT
from inductor_lab.notebook.language import Language, language, table, translate

GLOSSARY = Path(__file__).parents[1] / "docs" / "glossary.md"
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
    """Every term with its sentence, as docs/glossary.md has them."""
    rows = _ROW.findall(GLOSSARY.read_text(encoding="utf-8"))
    return {term: meaning.replace("`", "") for term, meaning in rows
            if term not in ("term", "---")}  # fmt: skip


def words() -> dict[str, str]:
    """Whatever may be pointed at → its sentence, in the language that is spoken."""
    return _words(language())


@cache
def _words(spoken: Language) -> dict[str, str]:
    """Terms, and rules and passes as their code tells them."""
    meanings = {**glossary(), **(table()["glossary"] if spoken == "zh" else {})}
    known = dict(meanings)
    for term, meaning in meanings.items():
        known.update(dict.fromkeys(term.split(", "), meaning))
    known.update({heading: known[term] for heading, term in HEADINGS.items()})
    known.update({step.name: translate(step.what) for step in PASSES if step.name not in known})
    for rules in (LEGALITY, PROFIT):
        known.update({name: translate(_said_by(rule)) for name, rule in rules.items()})
    return known


def _said_by(rule: object) -> str:
    """The first paragraph of a rule's docstring, as one line."""
    return " ".join((getdoc(rule) or "").partition("\n\n")[0].split())


def meaning_of(heading: str, pane: str = "") -> str:
    """What a heading means, in the pane with this title; "" if it needs no words.  `words.js` does
    the same.

    >>> meaning_of(">passes", "schedule") == meaning_of("memory passes") != ""
    True
    """
    name, title = (re.sub(r"^>|\s+\d+$", "", text.strip().lower()) for text in (heading, pane))
    known = words()
    forms = (name, name.removesuffix("s"), name.removesuffix("es"))
    places = [f"{title} {form}" for form in forms] + [*forms]
    return next((known[place] for place in places if place in known), "")
