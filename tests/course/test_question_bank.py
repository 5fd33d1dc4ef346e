"""The question bank: all predictions of the tutorials, with answers for instructors only."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from inductor_lab import course
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.course.build import copy_for_students, sources
from inductor_lab.course.command import command
from inductor_lab.course.question_bank import (
    FILE,
    Question,
    chosen,
    gift,
    listing,
    markdown,
    questions,
    record,
)
from inductor_lab.course.questions import Revealed
from inductor_lab.course.wrong_guesses import OTHER, table

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
FIRST = Question(5, 3, "Fusion: all", "2 · A/B", "kernels of f", "How many {kernels}?\nCount: all.",
                 "y = {1: x}", 2, 3, "Three, since x = 1.")  # fmt: skip
SOURCE = """---
kind: tutorial
number: 1
name: x
en: Title
zh: 标题
---
:::en
## 1 · First

**Predict.** How many?
:::
:::zh
## 1 · 第一

**先猜后看。** 多少？
:::
```python
guess = None

def f(x):
    return x + 1

course.predict(("lines", "行数"), guess, 6 * 7)
course.predict(("is it", "是吗"), guess, f(1) == 2)
```
:::en
It is so.

**Predict.** Next?
:::
:::zh
就是这样。

**先猜后看。** 下一个？
:::
```python
course.predict(("word", "词"), guess, "a")
```
"""


@pytest.fixture(autouse=True)
def english() -> None:
    course.speak("en")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "01_x.md").write_text(SOURCE, encoding="utf-8")
    return tmp_path


def test_every_prediction_has_a_difficulty_and_an_answer() -> None:
    """If it fails: `inductor-lab course questions --record CHAPTER`, then set the difficulty."""
    found = questions(NOTEBOOKS)
    assert len(found) > 120
    assert [one.name for one in found if one.answer is None] == []
    notes = tomllib.loads((NOTEBOOKS / FILE).read_text(encoding="utf-8"))
    known = {(chapter, label) for chapter, labels in notes.items() for label in labels}
    assert known == {(str(one.chapter), one.label) for one in found}
    assert {one.difficulty for one in found} == {1, 2, 3}


@pytest.mark.parametrize("spoken", ["en", "zh"])
def test_every_question_has_text_and_topic(spoken: str) -> None:
    course.speak(spoken)
    found = questions(NOTEBOOKS)
    assert len({one.name for one in found}) == len(found)
    for one in found:
        assert len(one.text) > 8 and one.topic and "Predict" not in one.text, one
        assert "先猜后看" not in one.text and "course.predict" not in one.code, one
        assert bool(re.search("[一-鿿]", one.text)) == (spoken == "zh"), one.text
    assert sum(bool(one.explanation) for one in found) > 70


@pytest.mark.parametrize("spoken", ["en", "zh"])
def test_every_question_explains_a_wrong_guess(spoken: str) -> None:
    """In its own language; and no guess that is explained is right."""
    course.speak(spoken)
    found = questions(NOTEBOOKS)
    assert [one.name for one in found if not one.wrong_guesses] == []
    assert set(table()) == {one.label for one in found}, "labels are unique"
    for one in found:
        for guess, why in one.wrong_guesses.items():
            assert not Revealed(one.label, guess, one.answer).right, (one.name, guess)
            assert bool(re.search("[一-鿿]", why)) == (spoken == "zh"), why
            assert guess == OTHER or _has_the_type_of(one.answer, guess), (one.name, guess)


def _has_the_type_of(answer: object, guess: str) -> bool:
    if isinstance(answer, bool):
        return guess in ("True", "False")
    if isinstance(answer, str):
        return True
    return bool(re.fullmatch(r"-?\d+(\.\d+)?", guess))


def test_explanations_know_the_chinese_labels_of_the_sources() -> None:
    cells = [block.text for source in sources(NOTEBOOKS) if source.kind == "tutorial"
             for block in source.blocks if "course.predict(" in block.text]  # fmt: skip
    nodes = [node for cell in cells for node in ast.walk(ast.parse(cell))]
    calls = [node for node in nodes
             if isinstance(node, ast.Call) and ast.unparse(node.func) == "course.predict"]
    labels = dict(map(ast.literal_eval, (call.args[0] for call in calls)))
    assert {label: entry["zh"] for label, entry in table().items()} == labels
    assert len(set(labels.values())) == len(labels) == len(calls)


def test_questions_of_a_source(small: Path) -> None:
    first, second, third = questions(small)
    assert (first.name, first.topic, first.label) == ("1.1", "1 · First", "lines")
    assert first.text == second.text == "How many?" and third.text == "Next?"
    assert first.code == "def f(x):\n    return x + 1" and third.code == ""
    assert second.explanation == "It is so." and third.explanation == ""
    course.speak("zh")
    assert questions(small)[0].text == "多少？" and questions(small)[1].explanation == "就是这样。"


def test_answers_are_recorded_and_difficulties_are_kept(small: Path) -> None:
    pytest.importorskip("nbclient")
    (small / FILE).write_text('[1]\n"lines" = { difficulty = 3, answer = 0 }\n"old" = {}\n'
                              '[2]\n"other" = { difficulty = 1, answer = "x" }\n')  # fmt: skip
    assert record(small, [1]) == [small / FILE]
    notes = tomllib.loads((small / FILE).read_text(encoding="utf-8"))
    assert notes == {
        "1": {"lines": {"difficulty": 3, "answer": 42}, "is it": {"difficulty": 2, "answer": True},
              "word": {"difficulty": 2, "answer": "a"}},
        "2": {"other": {"difficulty": 1, "answer": "x"}},
    }  # fmt: skip


def test_questions_are_chosen() -> None:
    found = questions(NOTEBOOKS)
    assert {one.chapter for one in chosen(found, ["5", "6.2"], "", [])} == {5, 6}
    assert len(chosen(found, ["6.2"], "", [])) == 1
    hard = chosen(found, [], "", [3])
    assert 0 < len(hard) < len(found) and {one.difficulty for one in hard} == {3}
    assert all("kernel" in f"{one.title}{one.topic}{one.label}".lower()
               for one in chosen(found, [], "Kernel", []))  # fmt: skip
    with pytest.raises(BadArguments, match="no question fits"):
        chosen(found, ["99"], "", [])


def test_answers_are_shown_only_when_asked_for() -> None:
    assert "= 3" not in listing([FIRST], answers=False) and "= 3" in listing([FIRST], answers=True)
    exam, solved = (markdown([FIRST], answers=answers) for answers in (False, True))
    assert "Three" not in exam and "Answer" not in exam and "**Answer:** 3" in solved
    assert exam == "## 5.3 A/B\n\nHow many {kernels}?\nCount: all.\n\n```python\ny = {1: x}\n```\n"


def test_solutions_explain_wrong_guesses() -> None:
    bank = chosen(questions(NOTEBOOKS), ["1.2", "2.3"], "", [])
    exam, solved = (markdown(bank, answers=answers) for answers in (False, True))
    assert "Wrong guesses" not in exam and "- 3: You counted `n`." in solved
    assert "- other answers: There are four for tensors." in solved


def test_gift() -> None:
    assert gift([FIRST]) == (
        "$CATEGORY: $course$/inductor_lab/5 Fusion: all\n\n"
        "// [id:inductor_lab 5.3] [tag:difficulty 2]\n"
        r"::5.3 kernels of f::[markdown]How many \{kernels\}?\nCount\: all.\n\n```python\ny \= "
        r"\{1\: x\}\n```{#=3####Three, since x \= 1.}" + "\n"
    )
    made = {True: "{TRUE}", False: "{FALSE}", 0.5: "{#=0.5}", "a{b": "{=a\\{b}", None: "{}",
            "a*b": "{=a\\\\*b}"}  # fmt: skip
    for answer, text in made.items():
        one = Question(1, 1, "", "", "", "", "", 1, answer, "")
        assert gift([one]).rstrip().endswith(f"[markdown]{text}")


def test_all_questions_are_legal_gift() -> None:
    """Each block has one pair of braces, and no empty line."""
    blocks = gift(questions(NOTEBOOKS)).strip().split("\n\n")
    asked = [block for block in blocks if not block.startswith("$CATEGORY: ")]
    assert len(asked) == len(questions(NOTEBOOKS)) and len(blocks) - len(asked) == 13
    for block in asked:
        comment, text = block.split("\n")
        bare = re.sub(r"\\.", "", text)
        assert comment.startswith("// [id:") and bare.count("{") == bare.count("}") == 1, block
        assert bare.endswith("}") and bare.count("::") == 2


def read_gift(block: str) -> tuple[str, dict[str, float], dict[str, str], str]:
    """The kind, the grade and the feedback of each answer, and the general feedback of a question,
    as Moodle reads them (question/format/gift)."""
    text = re.sub(r"\\(.)", lambda one: f"<{ord(one[1])}>", block.rpartition("\n")[2])
    inside = text[text.index("{") + 1 : text.index("}")]
    inside, _, general = inside.rpartition("####") if "####" in inside else (inside, "", "")
    grades, feedback = dict[str, float](), dict[str, str]()
    kind = "numerical" if inside.startswith("#") else "short"
    if inside.partition("#")[0] in ("TRUE", "FALSE"):
        kind, (right, _, why) = "boolean", inside.partition("#")
        wrong = {"TRUE": "FALSE", "FALSE": "TRUE"}[right]
        grades, feedback, inside = {right: 1, wrong: 0}, {wrong: why}, ""
    elif kind == "numerical":
        inside, _, other = inside[1:].partition("~#")
        grades, feedback = ({"*": 0}, {"*": other}) if other else ({}, {})
    assert kind == "numerical" or "~" not in inside, "a multiple choice"
    assert "->" not in inside, "a question of pairs"
    for part in inside.split("=")[1:]:
        grade = re.match("%([0-9]+)%", part)
        answer, _, why = part[grade.end() if grade else 0 :].strip().partition("#")
        grades[_plain(answer)] = int(grade[1]) / 100 if grade else 1
        feedback[_plain(answer)] = why
    return kind, grades, {one: _plain(why) for one, why in feedback.items()}, _plain(general)


def _plain(text: str) -> str:
    return re.sub("<([0-9]+)>", lambda one: "\n" if one[1] == "110" else chr(int(one[1])), text)


@pytest.mark.parametrize("spoken", ["en", "zh"])
def test_wrong_guesses_have_their_explanation_in_gift(spoken: str) -> None:
    course.speak(spoken)
    found = questions(NOTEBOOKS)
    blocks = [one for one in gift(found).strip().split("\n\n") if not one.startswith("$CAT")]
    for one, block in zip(found, blocks, strict=True):
        kind, grades, feedback, general = read_gift(block)
        assert general == one.explanation
        right = str(one.answer).upper() if kind == "boolean" else str(one.answer)
        assert [answer for answer, grade in grades.items() if grade == 1] == \
            [right.replace("*", r"\*")], one.name  # fmt: skip
        for guess, why in one.wrong_guesses.items():
            given = guess.upper() if kind == "boolean" else guess.replace("*", r"\*")
            others = {"TRUE": "FALSE", "FALSE": "TRUE"}.get(right, "*")
            answer = others if guess == OTHER else given
            assert (grades[answer], feedback[answer]) == (0, why), (one.name, guess)


def test_the_command(tmp_path: Path) -> None:
    where = ("--folder", str(NOTEBOOKS))
    assert command(["questions", "5", *where]).endswith("10 questions")
    exam = tmp_path / "exam.md"
    said = command(["questions", "5.1", "--format", "markdown", "-o", str(exam), *where])
    assert said.startswith(str(exam))
    assert exam.read_text(encoding="utf-8").startswith("## 5.1 Bytes")
    assert command(["questions", "5", "--language", "zh", *where]).endswith("10 道题")


def test_what_students_install_has_neither_questions_nor_answers(tmp_path: Path) -> None:
    copy_for_students(tmp_path / "mine")
    with pytest.raises(BadArguments, match="no sources"):
        command(["questions", "--folder", str(tmp_path / "mine")])
    assert not list((tmp_path / "mine").rglob("*.toml"))
