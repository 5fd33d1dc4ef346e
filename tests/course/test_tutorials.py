"""Every tutorial has its sections, and names only files and functions that exist."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab
from inductor_lab.course.language import Language
from inductor_lab.course.source import Source
from tests.course.test_notebooks import SOURCES, TUTORIALS

LABS = {source.number: source for source in SOURCES if source.kind == "lab"}
TORCH = Path(torch.__file__).parent
PACKAGE = Path(inductor_lab.__file__).parent
FOLDERS = (TORCH.parent, TORCH / "_inductor", PACKAGE, PACKAGE / "compiler")
"""Folders from which a path in a text may start."""
WRITTEN = {"minifier_launcher.py", "repro.py"}
"""Files that torch writes; chapter 10 asserts their names."""
FRAME: dict[Language, tuple[str, str, str]] = {
    "en": ("you will be able to", "ur own example", "Then open the lab"),
    "zh": ("你将能够", "本章自己的例子", "然后打开实验"),
}
every_tutorial = pytest.mark.parametrize("source", TUTORIALS, ids=lambda s: s.stem)


def text(source: Source, *kinds: str) -> str:
    return "\n".join(block.text for block in source.blocks if block.kind in kinds)


def parts(source: Source) -> dict[str, str]:
    """The parts of a tutorial that teach, by their heading, with their code."""
    before, _, _ = text(source, "en", "python").partition("\n## What the real one does")
    _, *found = re.split(r"^## ", before, flags=re.MULTILINE)
    return {part.splitlines()[0]: part for part in found}


@every_tutorial
def test_each_part_asks_twice_before_it_explains(source: Source) -> None:
    found = parts(source)
    assert len(found) >= 3 and all(re.match(r"\d · ", heading) for heading in found)
    for heading, part in found.items():
        asked = part.count("course.predict(")
        assert asked == part.count("\nguess = None\n") >= 2, heading
        assert asked == len(re.findall(r"\*\*Predict[.:]\*\*", part)), heading
    chinese = text(source, "zh").count("**先猜后看。**")
    assert chinese == sum(part.count("course.predict(") for part in found.values())


@every_tutorial
def test_answers_of_predictions_are_computed(source: Source) -> None:
    """The third argument of `predict` is computed, never a number or a text."""
    cells = [block.text for block in source.blocks if block.kind == "python"]
    trees = [ast.parse(cell) for cell in cells if "course.predict(" in cell]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    asked = [call for call in calls if ast.unparse(call.func) == "course.predict"]
    assert len(asked) >= 6
    for call in asked:
        question, guess, answer = call.args
        english, chinese = ast.literal_eval(question)
        assert english and re.search("[\u4e00-\u9fff]", chinese)
        assert ast.unparse(guess) == "guess" and not isinstance(answer, ast.Constant), english
    for tree in trees:
        last = tree.body[-1]
        assert isinstance(last, ast.Expr) and last.value in asked, "a cell shows its last value"


@every_tutorial
def test_a_tutorial_has_all_its_sections(source: Source) -> None:
    for language, (able, own, leads) in FRAME.items():
        first = next(block.text for block in source.blocks if block.kind == language)
        _, promised, after = first.partition(able)
        assert promised and after.count("\n- ") >= 3, "what one will be able to do"
        assert own in first and re.search(r"`softmax\(\w @ \w\)`", first), "example and thread"
        last = [block.text for block in source.blocks if block.kind == language][-1]
        assert last.startswith(("## Summary", "## 小结")) and last.count("\n- ") >= 3
        exercises = re.findall(r"^\d\. .*[?.？。]$", last, re.MULTILINE)
        assert len(exercises) == 3, "three exercises"
        named = re.search(rf"{leads} \*\*(\d+) · (.+?)\*\*", last)
        assert named and int(named[1]) == source.number, "its lab"
        title = re.split(": |：", LABS[source.number].titles[language], maxsplit=1)[1]
        assert title.lower().startswith(named[2].lower()), title
    code = text(source, "python")
    assert "softmax" in code and "assert" in code


@every_tutorial
def test_names_in_a_tutorial_exist(source: Source) -> None:
    artifacts = torch._logging._internal.log_registry
    logs = artifacts.artifact_names | artifacts.log_alias_to_log_qnames.keys()
    for token in set(re.findall(r"`([^`\n]+)`", text(source, "en", "zh"))) - WRITTEN:
        if re.fullmatch(r"[\w./]+\.py|torch/[\w/.]+", token):
            assert any((folder / token).exists() for folder in FOLDERS), token
        elif re.fullmatch(r"torch(\.\w+)+", token):
            assert reached(token) is not None, token
        elif logged := re.fullmatch(r'TORCH_LOGS="([\w,]+)"', token):
            assert set(logged[1].split(",")) <= logs, token


def reached(dotted: str) -> Any:
    """A module or an attribute by its name; raises ImportError for what does not exist."""
    first, *rest = dotted.split(".")
    found, path = importlib.import_module(first), first
    for name in rest:
        path = f"{path}.{name}"
        found = getattr(found, name) if hasattr(found, name) else importlib.import_module(path)
    return found


def test_an_unknown_name_is_found() -> None:
    with pytest.raises(ImportError):
        reached("torch._inductor.no_such_module")
