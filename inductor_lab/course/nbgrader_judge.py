"""nbgrader's autograder with our judge: submitted code never runs in nbgrader's own process.

`nbgrader_config.py` of a course calls `use`.  The judge takes the place of nbgrader's `Execute`: it
runs the cells in confined processes (`grading.py`), and writes what they printed, the verdicts and
the points into the notebook, where nbgrader reads them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from nbformat.v4 import new_output
from nbgrader.converters import Autograde
from nbgrader.preprocessors import Execute, NbGraderPreprocessor
from traitlets import List, Unicode

from inductor_lab.compiler.base.errors import UnreadableFile
from inductor_lab.course.checking import Verdict
from inductor_lab.course.exercise import exercises
from inductor_lab.course.grading import Grader
from inductor_lab.course.language import language
from inductor_lab.course.nbgrader import CHECK, SECRET
from inductor_lab.course.own_exercises import of_course
from inductor_lab.course.scores import KEPT, Board

_BOARD = re.compile(r"course\.board\((\d+)\)")
_SPEAKS = re.compile(r'^course\.speak\("(\w+)"\)$', re.MULTILINE)


def use(config: Any, course: Path) -> None:
    """Have the judge grade the course in this folder."""
    found = Autograde.autograde_preprocessors.default_args[0]
    steps = [Judge if each is Execute else each for each in found]
    config.Autograde.autograde_preprocessors = steps
    config.Judge.course = str(course)


class Judge(NbGraderPreprocessor):  # type: ignore[misc]
    """A preprocessor of nbgrader's.

    course  the folder with the configuration and the secret
    hidden  other files and folders that submitted code cannot read, such as the exchange
    """

    course = Unicode(".").tag(config=True)
    hidden = List(Unicode()).tag(config=True)

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        """Run the notebook's cells, and judge its exercises."""
        folder = Path(self.course)
        secret = secret_of(folder)
        of_course(folder)
        language("en")
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        code = [cell for cell in cells if not _is_check(cell)]
        for spoken in _SPEAKS.findall("\n".join(cell.source for cell in code[:1])):
            language(spoken)
        with Grader(secret, [folder, *map(Path, self.hidden)]) as grader:
            texts = grader.transcript([cell.source for cell in code])
            for cell, text in zip(code, texts, strict=True):
                cell.outputs = [new_output("stream", name="stdout", text=text)] if text else []
            verdicts: dict[str, Verdict] = {}
            for place, cell in enumerate(cells):
                if _is_check(cell):
                    before = [one.source for one in cells[:place] if not _is_check(one)]
                    _judge(grader, cell, before, verdicts)
        for cell in code:
            if board := _BOARD.search(cell.source):
                cell.outputs = _outputs(_board(board[1], verdicts), None)
        return notebook, resources


def secret_of(course: Path) -> str:
    """The secret of a course.  Raises UnreadableFile where there is none."""
    path = course / SECRET
    try:
        found = path.read_text(encoding="ascii").strip()
    except OSError as error:
        what = f"there is no {SECRET}: cases would be those that students know"
        raise UnreadableFile(what, str(path), "inductor-lab course nbgrader FOLDER") from error
    return found


def _is_check(cell: Any) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("grade"))


def _judge(grader: Grader, cell: Any, before: list[str], verdicts: dict[str, Verdict]) -> None:
    """Grade one check: a cell without our own source, or twice there, earns nothing."""
    found = CHECK.search(cell.source)
    if found is None or found[1] not in exercises() or found[1] in verdicts:
        cell.outputs = _outputs("", 0)
        return
    name, solution = found.groups()
    verdicts[name] = grader.verdict(name, before, solution)
    cell.outputs = _outputs(verdicts[name], verdicts[name].points)


def _outputs(shown: Any, points: int | None) -> list[Any]:
    """What a notebook shows, and the number that nbgrader takes for the grade."""
    data = {"text/plain": str(shown)}
    if hasattr(shown, "_repr_html_"):
        data["text/html"] = shown._repr_html_()
    about = {}
    if isinstance(shown, Verdict):  # for the page about the class
        about = {KEPT: {"message": shown.message, "case": shown.case}}
    found = [new_output("display_data", data=data, metadata=about)]
    if points is not None:
        found.append(new_output("execute_result", data={"text/plain": str(points)}))
    return found


def _board(lab: str, verdicts: dict[str, Verdict]) -> Board:
    """What a notebook earned, lab by lab."""
    rows = [
        (name, one.title, one.points, one.possible, 1)
        for name, one in verdicts.items() if name.partition(".")[0] == lab
    ]  # fmt: skip
    return Board(tuple(rows))
