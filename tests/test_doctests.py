"""Examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "inductor_lab": "inductor_lab",
    "widgets": "inductor_lab.widgets",
    "tests": "tests",
}


def modules() -> list[str]:
    """Those with examples."""
    found = []
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "\n    >>> " in path.read_text(encoding="utf-8"):
                names = path.relative_to(ROOT / folder).with_suffix("").parts
                found.append(".".join((package, *names)).removesuffix(".__init__"))
    return found


@pytest.mark.parametrize("name", modules())
def test_examples_are_right(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted and not outcome.failed


def test_modules_with_examples_are_found() -> None:
    assert "inductor_lab.compiler.base.errors" in modules()
