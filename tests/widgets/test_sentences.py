"""What the compiler says of its decisions has its Chinese in the table, sentence by sentence."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import inductor_lab as lab
from inductor_lab.compiler.accelerators import LISTS
from inductor_lab.compiler.schedule.fusion import combo
from inductor_lab.compiler.schedule.fusion.rules import LEGALITY, PROFIT
from inductor_lab.notebook.language import table, translate
from inductor_lab.widgets.switches import switches
from inductor_lab.widgets.words import descriptions, words

PACKAGE = Path(__file__).parents[2] / "inductor_lab" / "compiler"
REWRITES = LISTS["rewrite"]
PASSES = {name: step for level, table in LISTS.items() if level != "rewrite"
          for name, step in table.items()}  # fmt: skip
DECIDE = ("schedule/fusion/legality.py", "schedule/fusion/profit.py",
          "schedule/fusion/profit_gpu.py", "schedule/fusion/combo.py",
          "autograd/recompute.py", "autograd/partition.py", "autograd/budget.py",
          "autograd/user_partition.py")  # fmt: skip
"""Files whose sentences are reasons."""
ELSEWHERE = {
    "{} is a reduction", "{} is a scan", "{} is a scatter",
    "No shares of the roof: {}.", "copies of {}",
    "this machine is too noisy to say what it can do: after {} measurements {} still differ "
    "by a factor of {}",
}  # fmt: skip
"""`{buffer} is a {kind}` of combo.py, for each kind of nest that it says that of; and why a
benchmark has no roofs (`bench/machine.py`, `bench/bench_result.py`)."""


def template(node: ast.expr, known: dict[str, str]) -> str:
    """A text as it is written, `{}` in the place of each value; "" for what is no text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=ast.Name(id=name)) if name in known:
            return known[name]
        case ast.FormattedValue():
            return "{}"
        case ast.JoinedStr():
            return "".join(template(part, known) for part in node.values)
    return ""


def written(path: Path) -> Iterator[str]:
    """The sentences of a file; a name that another sentence holds stands for its own text."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    parts = (part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values)
    values = (part.value for part in parts if isinstance(part, ast.FormattedValue))
    held = {value.id for value in values if isinstance(value, ast.Name)}
    known: dict[str, str] = {}
    skipped: set[ast.AST] = set()
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.JoinedStr() as said):
                if name in held:
                    known[name] = template(said, {})
                    skipped.update(ast.walk(said))
            case ast.Assign(value=ast.Call()) | ast.Raise() | ast.Assert():
                skipped.update(ast.walk(node))
            case ast.Expr(value=ast.Constant() as docstring):
                skipped.add(docstring)
            case ast.JoinedStr():
                skipped.update(part for part in ast.walk(node) if part is not node)
            case ast.BinOp(op=ast.Add()) | ast.Attribute():
                skipped.update(ast.walk(node))
    for node in nodes:
        if isinstance(node, ast.expr) and node not in skipped and " " in template(node, known):
            yield template(node, known)


def test_every_reason_is_in_the_table() -> None:
    said = {text for name in DECIDE for text in written(PACKAGE / name)} - {"{} is a {}"}
    translated = {re.sub(r"\{\w+\}", "{}", text) for text in table()["sentences"]}
    assert sorted(said - translated) == []
    of_passes = {step.what for step in PASSES.values()}
    assert sorted(of_passes - translated) == []
    library = {name for name in translated if not name.count(" ") or len(name.split()) < 4}
    steps = {text for text in translated if text.endswith(" roof")}
    assert sorted(translated - said - of_passes - ELSEWHERE - library - steps) == []


def test_rules_rewrites_and_passes_have_one_description_each() -> None:
    """docs/rules.md describes all of them: for the docs, for tooltips and for the what-if list."""
    rules = {**LEGALITY, **PROFIT, **combo.LEGALITY, **combo.PROFIT}
    passes = {step.name: step.what for step in PASSES.values()}
    found = descriptions()
    assert set(found) == {*rules, *REWRITES, *passes}
    rewrites = {step.name: step.what for step in REWRITES.values()}
    shown = {name: text[0].lower() + text[1:-1] for name, text in found.items()
             if name in passes or name in REWRITES}  # fmt: skip
    assert shown == passes | rewrites
    assert set(table()["rules"]) == {*rules, *REWRITES}
    assert all(words()[rule] == found[rule] for rule in rules)
    for group in switches():
        for label, _, meaning in group["changes"]:
            name = label.rpartition(" ")[2]
            assert meaning == found.get(name, "one kernel for each operator"), label
            assert len(meaning) < 110, label


def test_every_value_is_in_both_languages() -> None:
    def values(text: str) -> set[str]:
        return {name for _, name, *_ in string.Formatter().parse(text) if name}

    for english, chinese in table()["sentences"].items():
        assert values(english) - {"s"} == values(chinese), english
        assert re.search("[\u4e00-\u9fff]", chinese), english


@pytest.fixture
def chinese() -> Iterator[None]:
    lab.language("zh")
    yield
    lab.language("en")


@pytest.mark.parametrize("sentence, said", [
    ("only 1 independent point would process 4,096 elements of buf5",
     "只有 1 个独立的点处理 buf5 的 4,096 个元素"),
    ("recomputed to meet the memory budget, although: mm is an expensive op; "
     "3 flops versus 4 bytes",
     "为满足内存预算而重算，尽管：mm 是开销大的算子；3 次浮点运算换 4 字节"),
    ("a rule of the user's says no", "a rule of the user's says no"),
])  # fmt: skip
def test_a_sentence_is_translated_with_its_values(
    chinese: None, sentence: str, said: str
) -> None:
    assert translate(sentence) == said
    lab.language("en")
    assert translate(sentence) == sentence
