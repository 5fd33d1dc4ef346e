"""The code of docs/extending.md runs from top to bottom, without changes."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from inductor_lab.widgets import views

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTIONS = ("An operator", "A rewrite", "A fusion rule", "A pass", "A view")
IN_ANOTHER_TEST = "A lab"
"""tests/course/test_own_lab.py has it."""


def code_of_page() -> str:
    """Return the code at the same line numbers as in the page, so that errors name its lines."""
    text = PAGE.read_text(encoding="utf-8").partition(f"## {IN_ANOTHER_TEST}\n")[0]
    lines = [""] * len(text.splitlines())
    for found in BLOCK.finditer(text):
        first = text.count("\n", 0, found.start(1))
        inside = found[1].splitlines()
        lines[first : first + len(inside)] = inside
    return "\n".join(lines) + "\n"


def test_the_code_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(views.PART_VIEWS, "schedule", {})
    path = tmp_path / "extending.py"
    path.write_text(code_of_page(), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("extending", path)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_each_section_has_code_with_assertions() -> None:
    text = PAGE.read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert tuple(headings) == (*SECTIONS, IN_ANOTHER_TEST)
    for section in text.split("\n## ")[1:-1]:
        assert any("assert" in block for block in BLOCK.findall(section)), section[:20]
