"""The labs as assignments of nbgrader: `inductor-lab course nbgrader FOLDER`.

FOLDER/nbgrader_config.py               written once, then the teacher's own
FOLDER/secret_seed                      written once: graded cases are drawn from it
FOLDER/source/01_capture/01_capture.ipynb
FOLDER/exercises/strides.py             the teacher's own exercises (`own_exercises.py`)
FOLDER/source/20_strides/strides.py     for the students' own checks

An exercise becomes two cells.  The student's holds the stub, and below it the solution between two
marks, where nbgrader cuts it out.  The check's is locked.  When it is graded, `nbgrader_judge.py`
writes the points there: nbgrader takes a number that a cell returns as its grade.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

from inductor_lab.compiler.base.display import write_errors
from inductor_lab.compiler.base.errors import UnreadableFile
from inductor_lab.course.build import Cell, file_text, sources, write_changed
from inductor_lab.course.exercise import exercises
from inductor_lab.course.language import LANGUAGES, Language
from inductor_lab.course.own_exercises import FOLDER as OWN_FOLDER
from inductor_lab.course.own_exercises import own_exercises
from inductor_lab.course.source import Block, Source

CONFIG = "nbgrader_config.py"
CONFIG_TEXT = '''\
"""Written once by `inductor-lab course nbgrader`; yours to change."""

from pathlib import Path

from inductor_lab.course.nbgrader_judge import use

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "inductor_lab"
# The stub stands above the solution, so nothing takes the solution's place.
c.ClearSolutions.code_stub = {"python": ""}
# Submitted code runs in confined processes, and is judged with the secret of this folder.
use(c, Path(__file__).parent)
# Folders that submitted code cannot read, besides this one: add the exchange.
c.Judge.hidden = []
'''
SECRET = "secret_seed"
"""The file with a course's secret, next to its configuration."""
CHECK = re.compile(r'course\.check\("([\d.]+)", (\w+)\)')
"""A call of the check: the exercise, and what the student called the solution."""


def export(
    folder: Path, into: Path, language: Language, modules: Sequence[Path] = ()
) -> list[Path]:
    """Write the labs of the sources below `folder` as an nbgrader course; returns the new paths.

    `modules` are files with exercises of the teacher.  An existing configuration is kept.  Raises
    BadArguments if there are no sources, and UnreadableFile for a lab with an exercise that is not
    checked exactly once.
    """
    own = {path: own_exercises(path) for path in modules}
    labs = [source for source in sources(folder) if source.kind == "lab"]
    files = [(f"source/{lab.stem}/{lab.stem}.ipynb", assignment(lab, language)) for lab in labs]
    for path, names in own.items():
        text = path.read_text(encoding="utf-8")
        used = [lab.stem for lab in labs if any(one.startswith(f"{lab.number}.") for one in names)]
        places = [OWN_FOLDER, *(f"source/{stem}" for stem in used)]
        files += [(f"{place}/{path.name}", text) for place in places]
    if not (into / CONFIG).exists():
        files.insert(0, (CONFIG, CONFIG_TEXT))
    written = write_changed(into, files)
    if not (into / SECRET).exists():
        with write_errors(into / SECRET, "secret"):
            opened = os.open(into / SECRET, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(opened, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(16))
        written.append(into / SECRET)
    return written


def assignment(lab: Source, language: Language) -> str:
    """The teacher's notebook of a lab, with solutions and nbgrader's metadata for each cell."""
    checked = sorted(found[1] for block in lab.blocks if (found := CHECK.fullmatch(block.text)))
    wanted = sorted(name for name in exercises() if name.startswith(f"{lab.number}."))
    if checked != wanted:
        what = f"it checks {', '.join(checked)}; the exercises are {', '.join(wanted)}"
        raise UnreadableFile(what, f"lab {lab.stem}", "one cell `course.check(...)` for each")
    return file_text(lab, language, _cells(lab.blocks, language))


def _cells(blocks: tuple[Block, ...], language: Language) -> Iterator[Cell]:
    stub = ""
    for number, block in enumerate(blocks):
        if block.kind == "stub":
            stub = block.text
        elif block.kind == "solution":
            text = f"{stub}\n### BEGIN SOLUTION\n{block.text}\n### END SOLUTION"
            yield Cell("code", text, _about(f"answer-{number}", "solution"))
        elif found := CHECK.fullmatch(block.text):
            name, solution = found.groups()
            text = f'display(verdict := course.check("{name}", {solution}))\nverdict.points'
            about = _about(f"check-{name.replace('.', '-')}", "grade", "locked")
            about["nbgrader"]["points"] = exercises()[name].points
            yield Cell("code", text, about)
        elif block.kind not in LANGUAGES:
            yield Cell("code", block.text)
        elif block.kind == language:
            yield Cell("markdown", block.text)


def _about(identity: str, *roles: str) -> dict[str, dict[str, object]]:
    """The nbgrader metadata of a named cell."""
    kinds = {kind: kind in roles for kind in ("grade", "solution", "locked", "task")}
    return {"nbgrader": {"schema_version": 3, "grade_id": identity, **kinds}}
