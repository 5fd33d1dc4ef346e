"""The predictions of a class: what students guessed in the tutorial of a lab, question by question.

`course.predict` keeps the first guess for each question.  The last cell of a lab, `course.board`,
writes them into the metadata of its output.  nbgrader collects the notebook with its outputs:
`submitted/STUDENT/LAB`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.errors import UnreadableFile
from inductor_lab.course.language import say
from inductor_lab.course.question_bank import Question, questions
from inductor_lab.course.scores import KEPT, Guess
from inductor_lab.course.wrong_guesses import explanation


@dataclass(frozen=True)
class Tally:
    """A guess, who made it, and why it is wrong: "" if it is right or has no explanation."""

    text: str
    right: bool
    students: tuple[str, ...]
    explanation: str


@dataclass(frozen=True)
class Prediction:
    """A question and the guesses of a class, the most frequent first.

    where  the notebook, and its cell, counted from 1
    """

    question: Question
    tallies: tuple[Tally, ...]

    @property
    def where(self) -> str:
        notebook = f"tutorials/{self.question.notebook}.ipynb"
        return say("{notebook}, cell {n}", notebook=notebook, n=self.question.cell)

    @property
    def made(self) -> int:
        """How many students guessed."""
        return sum(len(tally.students) for tally in self.tallies)

    @property
    def right(self) -> int:
        """How many of them were right."""
        return sum(len(tally.students) for tally in self.tallies if tally.right)

    @property
    def wrong(self) -> list[Tally]:
        """The wrong guesses, the most frequent first."""
        return [tally for tally in self.tallies if not tally.right]

    def __str__(self) -> str:
        asked = self.question
        share = say("{s} guessed right", s=f"{self.right}/{self.made}")
        lines = [f"  {asked.name} {asked.spoken_label} ({self.where}): {share}"]
        lines += [f"    {len(tally.students)} × {tally.text}  {tally.explanation}".rstrip()
                  for tally in self.wrong]  # fmt: skip
        return "\n".join(lines)


def read_predictions(folder: Path, lab: str, sources: Path) -> tuple[Prediction, ...]:
    """The questions of the lab's chapter that anybody answered: FOLDER/submitted/STUDENT/LAB.

    Raises BadArguments without sources, UnreadableFile for a damaged notebook.
    """
    made: dict[str, dict[str, Guess]] = {}
    for path in sorted((folder / "submitted").glob(f"*/{lab}/*.ipynb")):
        for guess in _guesses(path):
            made.setdefault(guess.question, {}).setdefault(path.parts[-3], guess)
    return tuple(Prediction(asked, _tallies(asked, made[asked.label]))
                 for asked in questions(sources)
                 if asked.label in made and f"{asked.chapter:02}" == lab.partition("_")[0])


def _guesses(path: Path) -> Iterator[Guess]:
    """Those of the last board in a notebook."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        kept = [output.get("metadata", {}).get(KEPT, {}) for output in outputs]
        boards = [one["guesses"] for one in kept if "guesses" in one]
        yield from filter(None, map(Guess.read, boards[-1] if boards else ()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        what = f"it is no notebook: {type(problem).__name__}: {problem}"
        raise UnreadableFile(what, str(path), "nbgrader collect") from problem


def _tallies(asked: Question, made: dict[str, Guess]) -> tuple[Tally, ...]:
    groups: dict[tuple[Any, bool], list[tuple[str, str]]] = {}
    for student, guess in made.items():
        groups.setdefault((_value(guess.text), guess.right), []).append((student, guess.text))
    found = []
    for (_, right), group in groups.items():
        text = group[0][1]
        why = "" if right else explanation(asked.label, text)
        found.append(Tally(text, right, tuple(student for student, _ in group), why))
    return tuple(sorted(found, key=lambda one: (-len(one.students), one.text)))


def _value(text: str) -> float | str:
    """Equal for guesses that mean the same: 2 and 2.0, True and true."""
    try:
        return float(text)
    except ValueError:
        return text.strip().lower()
