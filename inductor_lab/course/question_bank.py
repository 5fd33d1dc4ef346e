"""The questions of the tutorials as a bank: `inductor-lab course questions`.

A question is a `course.predict` with the text before it.  Sources have the questions, the code that
they are about, and the explanation that follows.  `notebooks/source/questions.toml` has their
difficulty, from 1 (read it off) to 3 (derive it), and the answers, as they were when the tutorials
ran.  Neither is installed.

    course questions 5 --difficulty 3                       a list
    course questions 5 --format markdown -o exam.md         an exam; --answers: with answers
    course questions --format gift -o bank.gift             for Moodle, with answers
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.display import write_errors
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.course.build import SOURCES, preface, sources
from inductor_lab.course.language import Language, language, say
from inductor_lab.course.one_language import in_one_language
from inductor_lab.course.source import Block, Source
from inductor_lab.course.wrong_guesses import OTHER, explanations, own_label

FILE = Path(SOURCES, "questions.toml")
ASKS: Mapping[Language, str] = {"en": "**Predict", "zh": "**先猜后看"}
DEFAULT_DIFFICULTY = 2
_LEAD = re.compile(r"^\*\*(?:Predict|先猜后看)[.:。：]?\*\*[:：]?\s*")
_HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
_RECORDS = """
import json
from inductor_lab import course
_truths = []
course.predict = lambda question, guess, truth: _truths.append((question, truth))
"""
_TELLS = "print(json.dumps(_truths, default=str))"
Answer = bool | int | float | str | None
FORMATS = ("list", "markdown", "gift")


@dataclass(frozen=True)
class Question:
    """A question of a tutorial, in one language.

    label        the short text of its `course.predict`, in English: it names the question
    topic        the section of the chapter
    code         what the question is about; "" if the text is enough
    difficulty   from 1 to 3
    answer       None if it was never recorded
    explanation  the text that follows in the tutorial; a wrong guess has its own explanation
    notebook     the tutorial's name; `cell` is the question's cell, counted from 1
    """

    chapter: int
    number: int
    title: str
    topic: str
    label: str
    text: str
    code: str
    difficulty: int
    answer: Answer
    explanation: str
    notebook: str = ""
    cell: int = 0

    @property
    def name(self) -> str:
        return f"{self.chapter}.{self.number}"

    @property
    def spoken_label(self) -> str:
        """The label in the current language."""
        return own_label(self.label)

    @property
    def wrong_guesses(self) -> dict[str, str]:
        """Plausible wrong guess → why it is wrong."""
        return explanations(self.label)


# ---- reading -------------------------------------------------------------------------------------


def questions(folder: Path) -> list[Question]:
    """All questions in the current language.  Raises BadArguments where there are no sources."""
    notes = _notes(folder)
    return [question for source in sources(folder) if source.kind == "tutorial"
            for question in _of_source(source, notes.get(str(source.number), {}))]  # fmt: skip


def _notes(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    path = folder / FILE
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _of_source(source: Source, notes: Mapping[str, Mapping[str, Any]]) -> Iterator[Question]:
    spoken, number = language(), 0
    topic, text, code = "", "", list[str]()
    cell = len(preface(source, spoken))
    for place, block in enumerate(source.blocks):
        cell += block.kind in (spoken, "python")
        if block.kind == spoken:
            headings = _HEADING.findall(block.text)
            if headings:
                topic, code = headings[-1], []
            asked = block.text.rfind(ASKS[spoken])
            text = _LEAD.sub("", block.text[asked:]) if asked >= 0 else text
        if block.kind != "python":
            continue
        labels = list(_labels(block.text))
        own = in_one_language(block.text, spoken)
        code += [own] if not labels else []
        for label in labels:
            number += 1
            note = notes.get(label, {})
            yield Question(
                source.number, number, source.titles[spoken], topic, label, text,
                "\n\n".join([*code, *_definitions(own)]),
                note.get("difficulty", DEFAULT_DIFFICULTY), note.get("answer"),
                _following(source.blocks[place + 1 :], spoken), source.stem, cell,
            )  # fmt: skip


def _labels(code: str) -> Iterator[str]:
    """The English labels of the predictions in a cell."""
    if "course.predict(" not in code:  # it may have magics, which are no Python
        return
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "course.predict":
            label = node.args[0]
            yield ast.literal_eval(label.elts[0] if isinstance(label, ast.Tuple) else label)


def _definitions(code: str) -> list[str]:
    """The functions and classes that the cell of a question defines."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    found = (node for node in ast.parse(code).body if isinstance(node, kinds))
    return [ast.get_source_segment(code, node) or "" for node in found]


def _following(blocks: Sequence[Block], spoken: Language) -> str:
    """The text after a question, up to the next question or section."""
    for block in blocks:
        if block.kind == spoken:
            return re.split(r"\n## |\*\*Predict|\*\*先猜后看", f"\n{block.text}")[0].strip()
        if block.kind == "python" and "course.predict(" in block.text:
            break
    return ""


# ---- answers -------------------------------------------------------------------------------------


def record(folder: Path, chapters: Sequence[int]) -> list[Path]:
    """Run the tutorials (all, if none is named), and write the answers into `questions.toml`.

    Raises LabError if a cell fails.
    """
    from inductor_lab.course.times import executed

    notes = _notes(folder)
    for source in sources(folder):
        if source.kind == "tutorial" and (not chapters or source.number in chapters):
            cells = executed(source, _RECORDS, _TELLS).cells
            truths = json.loads(cells[-1].outputs[-1].text)
            known = notes.get(str(source.number), {})
            notes[str(source.number)] = {
                label: {"difficulty": known.get(label, {}).get("difficulty", DEFAULT_DIFFICULTY),
                        "answer": truth}
                for label, truth in truths
            }  # fmt: skip
    lines = ["# Written by `inductor-lab course questions --record`; difficulties are set by hand."]
    for chapter in sorted(notes, key=int):
        lines += ["", f"[{chapter}]"]
        lines += [f"{json.dumps(label)} = {{ difficulty = {note['difficulty']}, "
                  f"answer = {json.dumps(note['answer'])} }}"
                  for label, note in notes[chapter].items()]  # fmt: skip
    path = folder / FILE
    with write_errors(path, "answers"):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [path]


# ---- choosing and writing ------------------------------------------------------------------------


def chosen(
    found: Sequence[Question], names: Sequence[str], topic: str, difficulties: Sequence[int],
) -> list[Question]:  # fmt: skip
    """Those of chapters ("5") or with names ("5.3"), with a word in their topic or label, and of
    these difficulties; nothing given means all.  Raises BadArguments if there is none."""
    kept = [
        one for one in found
        if (not names or one.name in names or str(one.chapter) in names)
        and topic.lower() in f"{one.title} {one.topic} {one.label}".lower()
        and (not difficulties or one.difficulty in difficulties)
    ]  # fmt: skip
    if not kept:
        known = ", ".join(dict.fromkeys(str(one.chapter) for one in found))
        raise BadArguments(say("no question fits"), todo=say("chapters: {c}", c=known))
    return kept


def listing(found: Sequence[Question], *, answers: bool) -> str:
    """A line for each question: its name, difficulty and label, by chapter and topic."""
    lines, before = list[str](), ("", "")
    for one in found:
        head = f"{one.chapter} {one.title}", one.topic
        lines += [head[0]] if head[0] != before[0] else []
        lines += [f"  {one.topic}"] if head != before else []
        before = head
        answer = f" = {_shown(one.answer)}" if answers else ""
        lines.append(f"    {one.name:5} {'*' * one.difficulty:3} {one.label}{answer}")
    return "\n".join([*lines, say("{n} questions", n=len(found))])


def _shown(answer: Answer) -> str:
    return say("not recorded") if answer is None else str(answer)


def markdown(found: Sequence[Question], *, answers: bool) -> str:
    """A page with the questions; with answers and explanations only for instructors."""
    parts = list[str]()
    for one in found:
        parts += [f"## {one.name} {one.topic.partition('· ')[2] or one.topic}", one.text]
        parts += [f"```python\n{one.code}\n```"] if one.code else []
        if answers:
            wrong = (f"- {say('other answers') if guess == OTHER else guess}: {why}"
                     for guess, why in one.wrong_guesses.items())  # fmt: skip
            parts += [say("**Answer:** {a}", a=_shown(one.answer)), one.explanation,
                      say("**Wrong guesses:**"), "\n".join(wrong)]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def gift(found: Sequence[Question]) -> str:
    """The questions in Moodle's GIFT format, a category for each chapter, with answers.

    A wrong guess gets its explanation as feedback; the text that follows in the tutorial is the
    general feedback.  A question without a recorded answer becomes an essay.
    """
    parts, chapter = list[str](), 0
    for one in found:
        if one.chapter != chapter:
            chapter = one.chapter
            title = one.title.replace("/", " ")
            parts.append(f"$CATEGORY: $course$/inductor_lab/{chapter} {title}")
        code = f"\n\n```python\n{one.code}\n```" if one.code else ""
        explained = f"####{_escaped(one.explanation)}" if one.explanation else ""
        parts.append(f"// [id:inductor_lab {one.name}] [tag:difficulty {one.difficulty}]\n"
                     f"::{_escaped(f'{one.name} {one.label}')}::[markdown]"
                     f"{_escaped(one.text + code)}{{{_gift_answer(one)}{explained}}}")
    return "\n\n".join(parts) + "\n"


def _gift_answer(one: Question) -> str:
    """The right answer and the wrong ones, each with its feedback."""
    known = {guess: f"#{_escaped(why)}" for guess, why in one.wrong_guesses.items()}
    other = known.pop(OTHER, "")
    match one.answer:
        case None:
            return ""
        case bool():  # the feedback of the other one
            return f"{str(one.answer).upper()}{known.get(str(not one.answer), other)}"
        case int() | float():
            start, rest = "#", f"~{other}"
        case str():
            start, rest = "", f"=%0%*{other}"
    right = f"={_literal(str(one.answer))}"
    wrong = [f"=%0%{_literal(guess)}{why}" for guess, why in known.items()]
    return start + " ".join([right, *wrong, *([rest] if other else [])])


def _literal(answer: str) -> str:
    """An answer in which no character has a meaning, for GIFT or as a wildcard."""
    return _escaped(answer.replace("*", r"\*"))


def _escaped(text: str) -> str:
    """A text in which no character has a meaning for GIFT; a question has no empty line."""
    return re.sub(r"([~=#{}:\\])", r"\\\1", text).replace("\n", r"\n")


def written(found: Sequence[Question], form: str, *, answers: bool) -> str:
    """The questions in one of the formats.  GIFT always has the answers."""
    if form == "gift":
        return gift(found)
    return (markdown if form == "markdown" else listing)(found, answers=answers)

