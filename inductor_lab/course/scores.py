"""The local board: the points earned on this machine for each exercise, and the first guesses.

A JSON file in the user's data folder (`INDUCTOR_LAB_COURSE_FILE` names another one).  An update
writes a new file and renames it, so that an interrupted update does not damage the board.
"""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import platformdirs

from inductor_lab.course.exercise import exercises, in_order
from inductor_lab.course.language import language, say

VARIABLE = "INDUCTOR_LAB_COURSE_FILE"
KEPT = "inductor_lab"
"""In the metadata of an output: what the page about a class reads (`glance.py`)."""
QUESTION = "? "
"""Begins the name of a question of a tutorial."""
LONGEST = 100
"""So many letters of a guess are kept."""


def board_file() -> Path:
    """The path of the file with the scores."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else platformdirs.user_data_path("inductor_lab") / "course.json"


def scores() -> dict[str, dict[str, Any]]:
    """By exercise or question: best points, points possible, tries, when; {} if nothing was tried
    or the file cannot be read."""
    try:
        found = json.loads(board_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class Guess:
    """The first guess of a student for a question, named by its English label."""

    question: str
    text: str
    right: bool

    def as_data(self) -> dict[str, Any]:
        """What a notebook keeps of it."""
        return {"question": self.question, "text": self.text, "right": self.right}

    @classmethod
    def read(cls, data: Any) -> Guess | None:
        """The inverse of `as_data`; None for anything else."""
        match data:
            case {"question": str(question), "text": str(text), "right": bool(right)}:
                return cls(question, text[:LONGEST], right)
        return None


def record_guess(guess: Guess) -> None:
    """Record a guess, and keep it if it is the first for its question."""
    first = {"text": guess.text[:LONGEST], "right": guess.right}
    record(f"{QUESTION}{guess.question}", int(guess.right), 1, first)


def guesses() -> tuple[Guess, ...]:
    """The first guesses on this machine."""
    found = (Guess.read({"question": name.removeprefix(QUESTION), **entry["first"]})
             for name, entry in scores().items()
             if name.startswith(QUESTION) and isinstance(entry.get("first"), dict))  # fmt: skip
    return tuple(filter(None, found))


def record(name: str, points: int, possible: int, first: dict[str, Any] | None = None) -> None:
    """Record the best result of an exercise, and `first` of its first try; does nothing if the
    file cannot be written."""
    known = scores()
    first = known.get(name, {}).get("first", first)
    best = max(points, int(known.get(name, {}).get("points", 0)))
    tries = int(known.get(name, {}).get("tries", 0)) + 1
    when = f"{datetime.now():%Y-%m-%d %H:%M}"
    known[name] = {"points": best, "possible": possible, "tries": tries, "when": when}
    if first is not None:
        known[name]["first"] = first
    path = board_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_text(json.dumps(known, indent=1), encoding="utf-8")
        fresh.replace(path)
    except OSError:
        return


@dataclass(frozen=True)
class Board:
    """Rows of (name, title, points, possible, tries), for `print` and for a notebook.

    The notebook keeps the guesses in the metadata of the output, so nbgrader collects them.
    """

    rows: tuple[tuple[str, str, int, int, int], ...]
    guesses: tuple[Guess, ...] = ()

    @property
    def points(self) -> int:
        return sum(row[2] for row in self.rows)

    @property
    def possible(self) -> int:
        return sum(row[3] for row in self.rows)

    def __str__(self) -> str:
        lines = [f"{_mark(row)} {row[0]:5} {row[2]:2}/{row[3]:<2} {row[1]}" for row in self.rows]
        return "\n".join([*lines, points_text(self.points, self.possible)])

    __repr__ = __str__

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """No data, and the metadata; text and HTML are those of the other methods."""
        return {}, {KEPT: {"guesses": [guess.as_data() for guess in self.guesses]}}

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{_mark(r)}</td><td>{r[0]}</td><td style='text-align:left'>{html.escape(r[1])}"
            f"</td><td>{r[2]}/{r[3]}</td><td>{r[4]}</td></tr>"
            for r in self.rows
        )
        heads = say("<th></th><th></th><th>exercise</th><th>points</th><th>tries</th>")
        heads = heads.replace("<th>", "<th style='text-align:left'>", 3)
        return f"<table><tr>{heads}</tr>{cells}</table><p><b>{str(self).splitlines()[-1]}</b></p>"


def points_text(points: int, possible: int) -> str:
    """`2 of 3 points`, `0 of 1 point`."""
    if possible == 1:
        return say("{a} of 1 point", a=points)
    return say("{a} of {b} points", a=points, b=possible)


def board(lab: int | None = None) -> Board:
    """The exercises of one lab, or of all labs, with the earned points."""
    known, rows = scores(), []
    for name in in_order():
        if lab is None or name.partition(".")[0] == str(lab):
            asked, got = exercises()[name], known.get(name, {})
            earned, tries = int(got.get("points", 0)), int(got.get("tries", 0))
            rows.append((name, asked.title[language() == "zh"], earned, asked.points, tries))
    return Board(tuple(rows), guesses())


def _mark(row: tuple[str, str, int, int, int]) -> str:
    return "✓" if row[2] == row[3] else ("✗" if row[4] else "·")
