"""The class at a glance: what students got wrong in a lab, from the notebooks that were graded.

    inductor-lab course glance COURSE 05_fusion -o glance.html

Answers that fail for the same reason are one misconception: the sentences of the check are equal,
but for numbers, names and code.  Each is shown with its smallest counterexample.  The guesses in
the tutorial come from what students submitted (`predictions.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.errors import BadArguments, UnreadableFile
from inductor_lab.course.exercise import exercises, in_order
from inductor_lab.course.language import language, say
from inductor_lab.course.nbgrader import CHECK
from inductor_lab.course.own_exercises import of_course
from inductor_lab.course.predictions import Prediction, read_predictions
from inductor_lab.course.scores import KEPT

_DETAILS = re.compile(r"`[^`]*`|'[^']*'|\[[^\]]*\]|\([^)]*\)|[-+]?\d[\d.,e+-]*|\b[a-z]\d*\b")


@dataclass(frozen=True)
class Answer:
    """The graded answer of a student to an exercise.

    message  why it lost its points, "" if it did not; `case` is the counterexample
    """

    student: str
    exercise: str
    points: int
    message: str = ""
    case: str = ""


@dataclass(frozen=True)
class Misconception:
    """Answers to an exercise that are wrong for the same reason, the smallest case first."""

    answers: tuple[Answer, ...]

    @property
    def smallest(self) -> Answer:
        return self.answers[0]

    def __str__(self) -> str:
        line = self.smallest.message.partition("\n")[0]
        return f"{len(self.answers)} × {line}"


@dataclass(frozen=True)
class Class:
    """The answers of a class to the exercises of one lab, and its guesses in the tutorial."""

    lab: str
    students: tuple[str, ...]
    answers: tuple[Answer, ...]
    predictions: tuple[Prediction, ...]

    @property
    def exercises(self) -> list[str]:
        """Their names, in the order of the lab."""
        there = {answer.exercise for answer in self.answers}
        return [name for name in in_order() if name in there]

    def of(self, exercise: str) -> list[Answer]:
        """The answers to one exercise."""
        return [answer for answer in self.answers if answer.exercise == exercise]

    def right(self, exercise: str) -> int:
        """How many students have all points of it."""
        points = exercises()[exercise].points
        return sum(answer.points == points for answer in self.of(exercise))

    def misconceptions(self, exercise: str) -> list[Misconception]:
        """What is wrong in the answers to it, the most frequent first."""
        groups: dict[str, list[Answer]] = {}
        for answer in self.of(exercise):
            if answer.message:
                groups.setdefault(_DETAILS.sub("…", answer.message), []).append(answer)
        found = [Misconception(tuple(sorted(group, key=lambda one: (len(one.case), one.student))))
                 for group in groups.values()]  # fmt: skip
        return sorted(found, key=lambda one: -len(one.answers))

    def points(self, student: str) -> int:
        """What a student earned in this lab."""
        return sum(answer.points for answer in self.answers if answer.student == student)

    def guesses(self, student: str) -> int:
        """How many questions of the tutorial a student predicted."""
        return sum(student in tally.students for one in self.predictions for tally in one.tallies)

    def __str__(self) -> str:
        lines = [say("{lab}: {n} students", lab=self.lab, n=len(self.students))]
        for name in self.exercises:
            title = exercises()[name].title[language() == "zh"]
            share = f"{self.right(name)}/{len(self.of(name))}"
            lines.append(f"  {name} {title}: {say('right: {s}', s=share)}")
            lines += [f"    {each}" for each in self.misconceptions(name)]
        lines += [say("predictions")] if self.predictions else []
        return "\n".join([*lines, *map(str, self.predictions)])


def read_class(folder: Path, lab: str, sources: Path) -> Class:
    """Read what nbgrader has graded, FOLDER/autograded/STUDENT/LAB, and the guesses in FOLDER/
    submitted/STUDENT/LAB.

    Raises BadArguments if nothing was graded there, or there are no sources; UnreadableFile for a
    damaged notebook.
    """
    paths = sorted((folder / "autograded").glob(f"*/{lab}/*.ipynb"))
    if not paths:
        there = sorted({path.parent.name for path in folder.glob("autograded/*/*/*.ipynb")})
        what = say("no graded notebook of {lab} in {f}", lab=lab, f=folder)
        graded = say("graded labs: {names}", names=", ".join(there)) if there else ""
        raise BadArguments(what, todo=graded or f"nbgrader autograde {lab}")
    of_course(folder)
    answers = [answer for path in paths for answer in _answers(path)]
    students = tuple(dict.fromkeys(path.parts[-3] for path in paths))
    return Class(lab, students, tuple(answers), read_predictions(folder, lab, sources))


def _answers(path: Path) -> Iterator[Answer]:
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            source = cell["source"]
            check = CHECK.search("".join(source) if isinstance(source, list) else source)
            if check and check[1] in exercises() and cell["cell_type"] == "code":
                yield _answer(path.parts[-3], check[1], cell["outputs"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        what = f"it is no graded notebook: {type(problem).__name__}: {problem}"
        raise UnreadableFile(what, str(path), "nbgrader autograde") from problem


def _answer(student: str, exercise: str, outputs: list[dict[str, Any]]) -> Answer:
    points, kept = 0, {"message": say("not graded"), "case": ""}
    for output in outputs:
        kept = output.get("metadata", {}).get(KEPT, kept)
        if output["output_type"] == "execute_result":
            text = output["data"]["text/plain"]
            points = int("".join(text) if isinstance(text, list) else text)
    return Answer(student, exercise, points, str(kept["message"]), str(kept["case"]))
