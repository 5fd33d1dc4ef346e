"""Sentences of tools have their Chinese: stock's fusion rules, CUDA graphs, advice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import inductor_lab as lab
from inductor_lab.notebook.language import table, translate
from inductor_lab.stock.fusion_rules import RULES
from tests.widgets.test_sentences import template

PACKAGE = Path(lab.__file__).parent
CHINESE = re.compile("[\u4e00-\u9fff]")


def tree_of(name: str) -> ast.Module:
    return ast.parse((PACKAGE / name).read_text(encoding="utf-8"))


def of_edits() -> Iterator[str]:
    """What each edit does: the second of three yielded values, or the last value of a tuple."""
    tree = tree_of("debug/advice/edits.py")
    for node in ast.walk(tree):
        match node:
            case ast.Yield(value=ast.Tuple(elts=[_, what, _])):
                yield template(what, {})
            case ast.Assign(targets=[ast.Name(id="what")], value=what):
                yield template(what, {})
            case ast.Tuple(elts=[*_, ast.Constant(value=str()), ast.Constant(value=str(what))]):
                yield what if " " in what else ""


def of_cuda_graphs() -> Iterator[str]:
    found = tree_of("compiler/runtime/cuda_graph_reasons.py").body
    for function in found:
        if isinstance(function, ast.FunctionDef) and function.name in ("not_requested", "why_not"):
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    value = node.value
                    value = value.orelse if isinstance(value, ast.IfExp) else value
                    yield template(value, {})


def of_refusals() -> Iterator[str]:
    for node in ast.walk(tree_of("debug/advice/advise.py")):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "refuse":
            yield template(node.args[1], {})


SENTENCES = {
    "meanings of rules": [rule.meaning for rule in RULES],
    "cures of rules": [rule.cure for rule in RULES],
    "edits": [each for each in of_edits() if each],
    "CUDA graphs": [each for each in of_cuda_graphs() if each],
    "refusals": [each for each in of_refusals() if each],
}


@pytest.fixture
def chinese() -> Iterator[None]:
    lab.language("zh")
    yield
    lab.language("en")


@pytest.mark.parametrize("kind", SENTENCES)
def test_every_sentence_is_translated(chinese: None, kind: str) -> None:
    found = [each.replace("{}", "x") for each in SENTENCES[kind]]
    assert len(found) > 5
    english = re.compile(r"[a-z]{3,} [a-z]{3,} [a-z]{3,}")
    assert [each for each in found if not CHINESE.search(translate(each))] == []
    assert [said for said in map(translate, found) if english.search(said)] == []


def test_no_translation_is_unused(chinese: None) -> None:
    every = [each.replace("{}", "x") for found in SENTENCES.values() for each in found]
    every += ['mode is "default"; mode="reduce-overhead" requests CUDA graphs (x)',
              "unknown: a saved file has no mode"]  # fmt: skip
    parts = [re.escape(text) for text in table()["tools"]]
    patterns = [re.compile(re.sub(r"\\\{\w+\\\}", ".*", part)) for part in parts]
    unused = [p.pattern for p in patterns if not any(p.search(each) for each in every)]
    assert unused == []
