"""Give each student a version of each component, and judge what they answer.

    rank  student  points
       1  ada          11
       2  bob           3
    ada
      ✓ memory: a and b overlap, and both are alive in step 1
      ✗ fusion: correct for this input

A student's answers are literals in `answers.py`.  They are parsed and never executed.  The versions
are drawn again from the secret and the student's name, so a changed file changes nothing.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.display import write_errors
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.course.duels.bank import Suspect, Topic, bank
from inductor_lab.course.duels.components import COMPONENTS
from inductor_lab.course.language import language, say
from inductor_lab.debug.isolate import run_isolated
from inductor_lab.notebook.columns import padded

ANSWERS = "answers.py"
CORRECT = "correct"
EXPOSED, RIGHTLY_CORRECT = 2, 1
"""Points for an input that exposes a bug, and for "correct" about a correct component."""
LONGEST = 20_000
"""Letters of a file of answers."""
LIMIT = 10.0
"""Seconds for an answer."""


@dataclass(frozen=True)
class Answered:
    """The result of one answer: its points, and why.  `solution` is for instructors."""

    topic: str
    points: int
    why: str
    solution: str


@dataclass(frozen=True)
class Student:
    """The answers of one student."""

    name: str
    answers: tuple[Answered, ...]

    @property
    def points(self) -> int:
        return sum(one.points for one in self.answers)


def drawn(topics: Sequence[Topic], secret: str, student: str) -> Iterator[tuple[Topic, Suspect]]:
    """A version of each component.  Two of three have a bug."""
    draw = random.Random(f"{secret} duel {student}")
    for topic in topics:
        correct = draw.random() < 1 / 3
        yield topic, draw.choice(topic.of_kind(correct=correct))


# ---- giving out ----------------------------------------------------------------------------------


def give(folder: Path, students: Sequence[str], secret: str, notebooks: Path) -> list[Path]:
    """Write a folder for each student; returns the folders.  Raises BadArguments if one exists."""
    topics = bank(notebooks)
    places = [folder / student for student in students]
    for place in places:
        if place.exists():
            raise BadArguments(say("{f} already exists", f=place), todo=say("name another folder"))
    for place, student in zip(places, students, strict=True):
        with write_errors(place, "duel"):
            place.mkdir(parents=True)
            for name, text in _files(list(drawn(topics, secret, student))).items():
                (place / name).write_text(text, encoding="utf-8")
    return places


def _files(pairs: Sequence[tuple[Topic, Suspect]]) -> dict[str, str]:
    parts = [
        say("# Duels"),
        say("Each file has a component of a compiler. It keeps its promise below, or it has a bug. "
            "Find a legal input that exposes the bug, and write it into {f}. If there is no bug, "
            "write \"correct\". An input that exposes a bug earns {a} points, a right \"correct\" "
            "{b} point.", f=ANSWERS, a=EXPOSED, b=RIGHTLY_CORRECT),
        say("Answers are literals: numbers, texts, lists, tuples, dicts. They are not executed."),
    ]  # fmt: skip
    for topic, _ in pairs:
        parts += [f"## {topic.name}.py: {topic.title}", topic.text]
    lines = "\n".join(f'    "{topic.name}": None,' for topic, _ in pairs)
    heading = say("# An input that exposes the bug, or \"correct\".")
    files = {f"{topic.name}.py": suspect.code for topic, suspect in pairs}
    readme = "\n\n".join(parts) + "\n"
    return files | {"README.md": readme, ANSWERS: f"{heading}\nanswers = {{\n{lines}\n}}\n"}


# ---- judging -------------------------------------------------------------------------------------


def check(folder: Path, secret: str, notebooks: Path) -> list[Student]:
    """The students whose folders are in `folder`, the best first.  Raises BadArguments if there is
    none."""
    topics = bank(notebooks)
    places = sorted(path.parent for path in folder.glob(f"*/{ANSWERS}"))
    if not places:
        what = say("{f} has no folder with a file {a}", f=folder, a=ANSWERS)
        raise BadArguments(what, todo=say("name the folder with a folder for each student"))
    found = [_student(place, topics, secret) for place in places]
    return sorted(found, key=lambda one: -one.points)


def _student(place: Path, topics: Sequence[Topic], secret: str) -> Student:
    answers, unreadable = _read(place / ANSWERS)
    judged = (_answered(topic, suspect, answers.get(topic.name), unreadable)
              for topic, suspect in drawn(topics, secret, place.name))  # fmt: skip
    return Student(place.name, tuple(judged))


def _read(path: Path) -> tuple[Mapping[Any, Any], str]:
    """The literal that a file assigns to `answers`, or why there is none."""
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(LONGEST + 1)
    if len(text) > LONGEST:
        return {}, say("the file has more than {n:,} letters", n=LONGEST)
    try:
        lines = [node for node in ast.parse(text).body if isinstance(node, ast.Assign)]
        values = [node.value for node in lines if ast.unparse(node).startswith("answers = ")]
        found = ast.literal_eval(values[-1])
    except (ValueError, TypeError, SyntaxError, IndexError, MemoryError, RecursionError):
        return {}, say("`answers` is not a literal")
    return (found, "") if isinstance(found, dict) else ({}, say("`answers` is not a dict"))


def _answered(topic: Topic, suspect: Suspect, answer: Any, unreadable: str) -> Answered:
    points, why = _judged(topic, suspect, answer) if not unreadable else (0, unreadable)
    solution = say("correct")
    if suspect.why is not None:
        solution = f"{suspect.why[language() == 'zh']} {suspect.input}"
    return Answered(topic.name, points, why, f"{suspect.name}: {solution}")


def _judged(topic: Topic, suspect: Suspect, answer: Any) -> tuple[int, str]:
    if answer is None:
        return 0, say("no answer")
    if answer == CORRECT:
        if suspect.why is not None:
            return 0, say("it is not correct")
        return RIGHTLY_CORRECT, say("it is correct")
    given = answer if type(answer) is tuple else (answer,)
    if not COMPONENTS[topic.name].legal(given):
        return 0, say("this is not a legal input")
    wrong = exposed(topic, suspect, given)
    return (EXPOSED, wrong) if wrong else (0, say("it is right for this input"))


def exposed(topic: Topic, suspect: Suspect, given: Any) -> str | None:
    """What a suspect gets wrong on a legal input; None if nothing.

    It runs in a copy of this process.  An input on which it does not end exposes nothing.
    """

    def work(_: Any) -> str | None:
        names: dict[str, Any] = {}
        exec(compile(suspect.code, f"{topic.name}.py", "exec"), names)
        return COMPONENTS[topic.name].exposed(names[topic.function], given)

    ended = run_isolated(work, LIMIT)
    return ended.value if ended.how == "returned" else None


def table(students: Sequence[Student], *, solutions: bool) -> str:
    """The ranks, then the answers of each student; with solutions only for instructors."""
    rows = [(say("rank"), say("student"), say("points"))]
    for one in students:
        rank = 1 + sum(other.points > one.points for other in students)
        rows.append((str(rank), one.name, str(one.points)))
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    lines = ["  ".join(padded(cell, width, right=k != 1)
                       for k, (cell, width) in enumerate(zip(row, widths, strict=True)))
             for row in rows]  # fmt: skip
    for one in students:
        lines.append(one.name)
        for answer in one.answers:
            mark = "✓" if answer.points else "✗"
            lines.append(f"  {mark} {answer.topic}: {answer.why}")
            lines += [f"      {answer.solution}"] if solutions else []
    return "\n".join(lines)
