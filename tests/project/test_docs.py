"""Links from the docs to files lead to files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.project.test_sizes import lines_of_code

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")])
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def links(page: Path) -> list[str]:
    found = LINK.findall(page.read_text(encoding="utf-8"))
    return [link for link in found if "://" not in link and not link.startswith("mailto:")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert [link for link in links(page) if not (page.parent / link).exists()] == []


CORE = 8_000
ROW = re.compile(r"^\| \[([^]]+)\]\([^)]*\) \| (\d+) \|", re.MULTILINE)


def test_a_weekend_is_enough_for_the_core() -> None:
    """The road of docs/reading.md: its length, and that it says about how long each file is."""
    rows = ROW.findall((ROOT / "docs" / "reading.md").read_text(encoding="utf-8"))
    actual = {name: lines_of_code(ROOT / "inductor_lab" / name) for name, _ in rows}
    assert len(actual) == len(rows) > 40
    assert sum(actual.values()) <= CORE
    wrong = {name: (said, actual[name]) for name, said in rows
             if abs(int(said) - actual[name]) > max(15, actual[name] / 5)}  # fmt: skip
    assert wrong == {}


def test_the_glossary_has_each_term_once() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| (.+) \|$", text, re.MULTILINE)
    terms = [term for term, *_ in rows if term not in ("term", "---")]
    assert len(terms) == len(set(terms)) > 50
    assert all(LINK.search(where) for term, _, where in rows if term not in ("term", "---"))


COUNT = re.compile(r"\b(five|six|seven|eight|nine|ten) (phases|stations) ?", re.IGNORECASE)


def test_the_phases_are_counted_in_one_way() -> None:
    """As the picture in docs/architecture.md has them, wherever they are counted."""
    picture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawn = re.findall(r"^   [│▼] (\w+)/ ", picture, re.MULTILINE)
    assert len(drawn) == 7 and all((ROOT / "inductor_lab" / name).is_dir() for name in drawn)
    folders = [ROOT / name for name in ("docs", "inductor_lab", "widgets", "notebooks/source")]
    texts = [*(ROOT / "javascript").glob("*.js")]
    texts += [p for f in folders for p in f.rglob("*") if p.suffix in (".md", ".py", ".js")]
    said = {found[1].lower() for path in [*texts, ROOT / "README.md"]
            for found in COUNT.finditer(path.read_text(encoding="utf-8"))}  # fmt: skip
    assert said == {"seven"}
