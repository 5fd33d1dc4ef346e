"""Labels are plain: each replaced text is gone everywhere, and its replacement is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from inductor_lab.notebook.language import table

ROOT = Path(__file__).parents[2]
REPLACED = {
    "{eager}{n} unfused → {fused}": ("one per op", "eager {n}, "),
    "{n} unfused → {m} fused": ("one kernel per op",),
    "{n} generated + {calls} library calls": (),
    "click to pin; click again to unpin": ("to keep it", "again to let go", "let go of"),
    "highlight related code in every stage": ("light up",),
    "choose a change…": ("change something",),
    "disable fusion rule: {rule}": ("without the rule {rule}",),
    "relevant guards of the first graph": ("those of the first graph that say something",),
    "reset": ("as it was",),
    "created by": ("asked for at",),
    "{n} ops recomputed ({flop} flop)": ("run again (", "run again instead"),
    "Inputs are excluded (they stay in memory anyway).": ("alive anyway", "do not count"),
    "No ops were decomposed.": ("taken apart",),
    " ({alone} without reuse)": ("if no storage were used again",),
    "Reported by TorchDynamo. Parent phases include their children.": (
        "As TorchDynamo tells it", "A phase that holds others"),
    "Reported by PyTorch. Parent phases include their children.": ("As torch tells it",),
    "Not reported by stock PyTorch.": ("Stock did not tell it",),
    "results": ("what came out",),
    "inconclusive: only {n} rounds": ("too few rounds to tell",),
    "speedups are medians of per-round ratios": ("the rounds' own ratios",),
    "spread is half the interquartile range": ("half the distance of the quartiles",),
    "guard failed: {condition}": ("does not hold: {condition}",),
    "renumber temporaries": ("number temps in order",),
    "inline single-use values": ("join values that are used once with their user",),
    "{what} in {stage} first appears at {node} (also in float64)": ("is born at",),
    "{value}: wrong: got {got}, expected {right} at {place}, {n} of {all} elements": (
        "{got} in place of",),
    "1 fused group matches its loop nests": ("groups agreeing with their nests",),
    "1 kernel matches its fused group": ("kernels agreeing with their groups",),
}  # fmt: skip
"""A text that is shown, in English → the texts that it replaced."""
ENGLISH = {
    "unknown option": ("perhaps ",),
    " must be ": (" is not possible",),
    "shape mismatch: ": ("do not fit",),
}
"""The same for errors, which have no translation."""
ANYWHERE = {"one per op", "one kernel per op", "change something", "asked for at", "is born at",
            "As TorchDynamo tells it", "what came out", "too few rounds to tell",
            "the rounds' own ratios", "names are there", "groups agreeing"}  # fmt: skip
"""Texts that no string of the compiler has either; others may be right elsewhere."""
NAMES = re.compile(r"\bstations?\b|(?<!\.)\bours\b", re.IGNORECASE)


@cache
def strings(folder: str) -> tuple[str, ...]:
    """All strings of the Python files in a folder that are not docstrings."""
    return tuple(text for path in (ROOT / folder).rglob("*.py") for text in _strings(path))


def _strings(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


@cache
def shown() -> str:
    """Strings of the explorer: Python, JavaScript and the table of both languages."""
    javascript = [path.read_text(encoding="utf-8") for path in (ROOT / "javascript").glob("*.js")]
    keys = [key for section in ("explorer", "sentences", "lines") for key in table()[section]]
    return "\n".join([*strings("widgets"), *javascript, *keys])


@pytest.mark.parametrize("label", REPLACED)
def test_a_label_is_plain(label: str) -> None:
    keys = [key for section in ("explorer", "sentences", "lines") for key in table()[section]]
    assert len([key for key in keys if key == label]) <= 1
    assert any(label in key for key in keys), "it is translated"
    for old in REPLACED[label]:
        assert old not in shown(), old


@pytest.mark.parametrize("text", ENGLISH)
def test_an_error_is_plain(text: str) -> None:
    found = strings("inductor_lab")
    assert any(text in each for each in found)
    for old in ENGLISH[text]:
        assert not any(old in each for each in strings("widgets")), old


def test_old_labels_are_nowhere_in_the_compiler() -> None:
    for text in strings("inductor_lab"):
        assert not any(old in text for old in ANYWHERE), text


def test_one_name_for_a_stage_and_for_this_compiler() -> None:
    for folder in ("widgets", "javascript"):
        for path in sorted((ROOT / folder).glob("*.*")):
            if path.suffix in (".py", ".js", ".css", ".ts"):
                text = path.read_text(encoding="utf-8")
                assert not NAMES.search(text), f"{path.name}: {NAMES.search(text)}"
