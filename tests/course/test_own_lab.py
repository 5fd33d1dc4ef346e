"""The lab of docs/extending.md: a file outside of the package, released and graded by nbgrader."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from inductor_lab import course
from inductor_lab.cli import main
from inductor_lab.compiler.base.errors import BadArguments, UnreadableFile
from inductor_lab.course.exercise import EXERCISES
from inductor_lab.course.glance import read_class
from inductor_lab.debug.untrusted.confine import confinable

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
WRONG = "def contiguous(shape, strides):\n    return strides[-1] == 1\n"
FORGES = """
course.check = lambda *_: 2
course.own_exercises("strides.py")
import inductor_lab.course.exercise as e
e.EXERCISES.clear()
def contiguous(shape, strides):
    return 2
"""


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    course.speak("en")
    course.exercises()
    yield
    for name in [name for name in EXERCISES if name.startswith("20.")]:
        del EXERCISES[name]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The folder with the two files of the page."""
    text = PAGE.read_text(encoding="utf-8").partition("\n## A lab\n")[2]
    for name, pattern in {"strides.py": r"```py\n(.*?)\n```\n",
                          "mylabs/source/lab_20_strides.md": r"````markdown\n(.*?)\n````"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        found = re.search(pattern, text, re.DOTALL)
        assert found is not None, name
        (tmp_path / name).write_text(f"{found[1]}\n", encoding="utf-8")
    return tmp_path


def released(files: Path) -> Path:
    fall = files / "fall"
    arguments = ["--folder", str(files / "mylabs"), "--exercises", str(files / "strides.py")]
    assert main(["course", "nbgrader", str(fall), *arguments]) == 0
    return fall


def test_the_lab_is_an_assignment_with_a_file_for_own_checks(files: Path) -> None:
    pytest.importorskip("nbgrader")
    from nbgrader.preprocessors import ClearSolutions

    fall = released(files)
    lab = nbformat.read(fall / "source/20_strides/20_strides.ipynb", as_version=4)
    nbformat.validate(lab)
    theirs, _ = ClearSolutions().preprocess(lab, {})
    text = "\n".join(cell.source for cell in theirs.cells)
    assert "raise NotImplementedError" in text and "step *= size" not in text
    for place in ("exercises", "source/20_strides"):
        assert (fall / place / "strides.py").read_text() == (files / "strides.py").read_text()


@pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
def test_right_wrong_and_forged_answers_are_graded(files: Path) -> None:
    pytest.importorskip("nbgrader")
    from inductor_lab.course.nbgrader_judge import Judge

    fall = released(files)
    for name in course.own_exercises(files / "strides.py"):
        del EXERCISES[name]  # nbgrader's process begins without them
    for student, answer in {"ada": "", "bob": WRONG, "eve": FORGES}.items():
        lab = nbformat.read(fall / "source/20_strides/20_strides.ipynb", as_version=4)
        for cell in lab.cells if answer else ():
            if cell.metadata.get("nbgrader", {}).get("solution"):
                cell.source = answer
        made, _ = Judge(course=str(fall)).preprocess(lab, {})
        path = fall / "autograded" / student / "20_strides" / "20_strides.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(made, path)
    found = read_class(fall, "20_strides", files / "mylabs")
    points = {one.student: (one.points, one.message) for one in found.answers}
    assert points["ada"] == (2, "") and points["bob"][0] == points["eve"][0] == 0
    assert "your answer is" in points["bob"][1] and "it should return bool" in points["eve"][1]


def test_a_notebook_uses_the_file(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INDUCTOR_LAB_COURSE_FILE", str(files / "course.json"))
    assert course.own_exercises(files / "strides.py") == ["20.1"]
    assert course.own_exercises(files / "strides.py") == ["20.1"], "a cell can run again"
    verdict = course.check("20.1", lambda shape, strides: True)
    assert verdict.points == 0 and verdict.case.startswith("shape (2,), strides (") \
        and "it is False; your answer is True" in verdict.message  # fmt: skip
    assert course.board(20).possible == 2


def test_a_file_that_is_not_usable_is_refused(files: Path) -> None:
    taken = files / "taken.py"
    taken.write_text((files / "strides.py").read_text().replace('"20.1"', '"1.1"'))
    with pytest.raises(BadArguments, match=r"two exercises are called 1\.1"):
        course.own_exercises(taken)
    for text, message in {"x = 1": "has no exercise", "1 / 0": "ZeroDivisionError"}.items():
        taken.write_text(text)
        with pytest.raises((BadArguments, UnreadableFile), match=message):
            course.own_exercises(taken)
    with pytest.raises(UnreadableFile, match="cannot be run"):
        course.own_exercises(files / "none.py")
