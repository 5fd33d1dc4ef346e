"""The local board: the points earned on this machine for each exercise.

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


def record(name: str, points: int, possible: int) -> None:
    """Record the best result of an exercise; does nothing if the file cannot be written."""
    known = scores()
    best = max(points, int(known.get(name, {}).get("points", 0)))
    tries = int(known.get(name, {}).get("tries", 0)) + 1
    when = f"{datetime.now():%Y-%m-%d %H:%M}"
    known[name] = {"points": best, "possible": possible, "tries": tries, "when": when}
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
    """Rows of (name, title, points, possible, tries), for `print` and for a notebook."""

    rows: tuple[tuple[str, str, int, int, int], ...]

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
    return Board(tuple(rows))


def _mark(row: tuple[str, str, int, int, int]) -> str:
    return "✓" if row[2] == row[3] else ("✗" if row[4] else "·")
