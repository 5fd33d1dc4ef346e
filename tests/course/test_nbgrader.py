"""A lab in the real nbgrader: five students, points and feedback."""

from __future__ import annotations

import csv
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from IPython.core.formatters import DisplayFormatter
from nbformat import NotebookNode
from nbformat.v4 import new_output
from traitlets.config import Config

from inductor_lab.cli import main
from inductor_lab.compiler.base.errors import UnreadableFile
from inductor_lab.course import EXERCISES
from inductor_lab.course.build import sources
from inductor_lab.course.nbgrader import CONFIG, SECRET, assignment
from inductor_lab.course.predictions import read_predictions
from inductor_lab.course.scores import Board, Guess
from inductor_lab.course.source import read_source
from inductor_lab.debug.untrusted.confine import confinable
from tests.course import wrong

FOLDER = Path(__file__).parents[2] / "notebooks"
LAB = "01_capture"
TOTAL = sum(e.points for name, e in EXERCISES.items() if name.startswith("1."))
needs_nbgrader = pytest.mark.skipif(
    importlib.util.find_spec("nbgrader") is None,
    reason="no nbgrader: pip install 'inductor-lab[classroom]'",
)


class Course:
    """A folder with a course, and one for the exchange between teacher and students."""

    def __init__(self, folder: Path) -> None:
        self.teacher, self.exchange = folder / "course", folder / "exchange"
        self.exchange.mkdir(mode=0o777)
        self.exchange.chmod(0o777)
        assert main(["course", "nbgrader", str(self.teacher)]) == 0
        self("generate_assignment", LAB)
        self("release_assignment", LAB)

    def __call__(self, *command: str, student: str = "") -> str:
        """Return what an nbgrader command prints; it must succeed."""
        at = self.exchange.parent / student if student else self.teacher
        env = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(at), "JUPYTER_DATA_DIR": str(at / ".data"),
        }  # fmt: skip
        what = [sys.executable, "-m", "nbgrader", *command, "--course", "inductor_lab",
                f"--Exchange.root={self.exchange}",
                "--ExchangeCollect.check_owner=False"]  # fmt: skip
        what += [f"--CourseDirectory.student_id={student}"] if student else []
        done = subprocess.run(what, cwd=at, env=env, capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def submit(self, student: str, answers: dict[str, str], guess: str = "") -> None:
        """Fetch the assignment, fill in the answers, show the board, and submit.

        `guess` was the first one for the first question of the tutorial.
        """
        desk = self.exchange.parent / student
        desk.mkdir()
        self("fetch_assignment", LAB, student=student)
        path = desk / LAB / f"{LAB}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            identity = about(cell).get("grade_id", "")
            cell.source = answers.get(identity, cell.source)
            if cell.source == "course.board(1)" and guess:
                board = Board((), (Guess("operations in the graph", guess, False),))
                data, about_it = DisplayFormatter().format(board)
                cell.outputs = [new_output("execute_result", data=data, metadata=about_it)]
        nbformat.write(notebook, path)
        self("submit", LAB, student=student)


def about(cell: NotebookNode) -> dict[str, object]:
    return cell.metadata.get("nbgrader", {})


def made(solved: bool = True) -> NotebookNode:
    source = read_source(FOLDER / "source" / f"lab_{LAB}.md")
    return nbformat.reads(assignment(source, "en"), as_version=4)


def answers() -> dict[str, str]:
    """The teacher's cells, with stubs and solutions."""
    return {str(about(c)["grade_id"]): c.source for c in made().cells if about(c).get("solution")}


def first(student_answer: str) -> dict[str, str]:
    """Solutions of all exercises except the first."""
    own = dict(answers())
    return own | {next(iter(own)): student_answer}


ENDLESS = "def stack_machine(instructions, arguments):\n    while True:\n        pass"
CHEAT = '''
import os, sys
from inductor_lab import course
from inductor_lab.course import checking

def right(name, *_):
    points = {"1.1": 2, "1.2": 3, "1.3": 2, "1.4": 3, "1.5": 2, "1.6": 2}[name]
    return checking.Verdict(name, "", points, points)

course.check = checking.check = right
for module in list(sys.modules.values()):
    if hasattr(module, "EXERCISES"):
        module.EXERCISES.clear()

def stack_machine(*_):
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if callable(getattr(value, "_write", None)):
                value._write(b"right")
        frame = frame.f_back
    os._exit(0)

record = make_guard = split = whole = compiles = stack_machine
'''


@needs_nbgrader
@pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
def test_five_students_get_their_points_and_feedback(tmp_path: Path) -> None:
    """Honest, empty, wrong, hanging, cheating."""
    course = Course(tmp_path)
    name = wrong.swapped_operands.__name__
    text = inspect.getsource(wrong.swapped_operands).replace(name, "stack_machine")
    course.submit("full", answers(), guess="7")
    course.submit("stub", {})
    course.submit(
        "wrong", first(f"from inductor_lab.course.given.capture import OPERATIONS\n{text}")
    )
    course.submit("hanging", first(ENDLESS), guess="7")
    course.submit("cheating", dict.fromkeys(answers(), CHEAT))
    course("collect", LAB)
    course("autograde", LAB)
    course("generate_feedback", LAB)
    course("release_feedback", LAB)
    course("export")
    lost = EXERCISES["1.1"].points
    assert scores(course.teacher / "grades.csv") == {
        "full": TOTAL, "stub": 0, "wrong": TOTAL - lost, "hanging": TOTAL - lost, "cheating": 0,
    }  # fmt: skip
    (asked,) = read_predictions(course.teacher, LAB, FOLDER)
    assert [(one.text, one.students) for one in asked.wrong] == [("7", ("full", "hanging"))]
    course("fetch_feedback", LAB, student="wrong")
    (page,) = (tmp_path / "wrong").rglob("*.html")
    feedback = re.sub("<[^>]*>", "", page.read_text(encoding="utf-8"))
    assert f"0 of {lost} points" in feedback and "your machine returns" in feedback
    board = feedback[feedback.rindex("course.board(1)") :]
    assert f"{TOTAL - lost} of {TOTAL} points" in board, "it has no other student's points"


def scores(table: Path) -> dict[str, float]:
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {r["student_id"]: float(r["score"]) for r in rows if r["assignment"] == LAB}


@pytest.mark.parametrize(
    "source", [s for s in sources(FOLDER) if s.kind == "lab"], ids=lambda s: s.stem
)
def test_every_lab_is_an_assignment(source) -> None:
    notebook = nbformat.reads(assignment(source, "zh"), as_version=4)
    nbformat.validate(notebook)
    kept = [about(cell) for cell in notebook.cells if about(cell)]
    points = sum(int(str(k["points"])) for k in kept if k["grade"])
    assert points == sum(
        e.points for name, e in EXERCISES.items() if name.startswith(f"{source.number}.")
    )
    assert len({k["grade_id"] for k in kept}) == len(kept)
    assert all(k["locked"] for k in kept if k["grade"])
    marks = [
        c.source.count("### BEGIN SOLUTION") for c in notebook.cells if about(c).get("solution")
    ]
    assert set(marks) == {1}


def test_an_existing_configuration_and_secret_are_kept(tmp_path: Path, capsys) -> None:
    (tmp_path / CONFIG).write_text("c = get_config()\n")
    assert main(["course", "nbgrader", str(tmp_path)]) == 0
    secret = (tmp_path / SECRET).read_text()
    assert len(secret) == 32 and (tmp_path / SECRET).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / CONFIG).read_text() == "c = get_config()\n"
    assert f"{CONFIG}\n" not in capsys.readouterr().out
    assert main(["course", "nbgrader", str(tmp_path)]) == 0
    assert "0 files written" in capsys.readouterr().out
    assert (tmp_path / SECRET).read_text() == secret


def test_a_lab_without_one_of_its_checks_is_refused(tmp_path: Path) -> None:
    text = (FOLDER / "source" / f"lab_{LAB}.md").read_text(encoding="utf-8")
    (tmp_path / "lab.md").write_text(text.replace('course.check("1.3"', 'print("1.3"'), "utf-8")
    with pytest.raises(UnreadableFile, match=r"it checks 1\.1, 1\.2, 1\.4"):
        assignment(read_source(tmp_path / "lab.md"), "en")


@needs_nbgrader
def test_the_late_policy_of_the_docs() -> None:
    from nbgrader.preprocessors import AssignLatePenalties

    page = (FOLDER.parent / "docs" / "classroom.md").read_text(encoding="utf-8")
    code = page.partition("```python\nfrom nbgrader")[2].partition("```")[0]
    config = Config()
    exec(f"from nbgrader{code}", {"c": config})
    late = AssignLatePenalties(config=config)
    late.init_plugin()
    taken = late.plugin_inst.late_submission_penalty
    day = 86_400
    assert [taken("ada", 10, seconds) for seconds in (1, day, day + 1, 9 * day)] == [2, 2, 4, 10]
