"""The page about a class of thirty, whose notebooks nbgrader's judge has graded."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from inductor_lab import course
from inductor_lab.cli import main
from inductor_lab.compiler.base.errors import BadArguments, UnreadableFile
from inductor_lab.course.glance import read_class
from inductor_lab.course.nbgrader import SECRET, assignment
from inductor_lab.course.question_bank import questions
from inductor_lab.course.scores import VARIABLE
from inductor_lab.course.source import read_source
from inductor_lab.debug.untrusted.confine import confinable
from tests.course import wrong

pytest.importorskip("nbgrader")
LAB = "01_capture"
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SOURCE = NOTEBOOKS / "source" / f"lab_{LAB}.md"
IMPORT = "from inductor_lab.course.given.capture import OPERATIONS\n"
MISTAKES = {"1.1": [wrong.swapped_operands, wrong.without_stores]}


@pytest.fixture(autouse=True)
def english() -> None:
    course.speak("en")


def answer(mistake: Callable[..., Any], name: str) -> str:
    """The text of a wrong answer under the name that the check expects."""
    return IMPORT + inspect.getsource(mistake).replace(mistake.__name__, name)


def submitted(mistake: Callable[..., Any] | None, stubs: bool) -> nbformat.NotebookNode:
    """The notebook of a student: all right, but for one mistake or the stubs that are left."""
    notebook = nbformat.reads(assignment(read_source(SOURCE), "en"), as_version=4)
    own = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("solution")]
    for cell in own if stubs else []:
        cell.source = cell.source.partition("### BEGIN SOLUTION")[0]
    if mistake is not None:
        own[0].source = answer(mistake, "stack_machine")
    return notebook


def graded(notebook: nbformat.NotebookNode, teacher: Path) -> nbformat.NotebookNode:
    from inductor_lab.course.nbgrader_judge import Judge

    made, _ = Judge(course=str(teacher)).preprocess(notebook, {})
    return made


GUESSES = ["9", 9.0, "7", "8", "7", "<b>"]
"""For "operations in the graph", whose answer is 9; one after the other, student by student."""


def with_guesses(lab: nbformat.NotebookNode, guesses: dict[str, Any]) -> nbformat.NotebookNode:
    """The lab as a student submits it, after the predictions of the tutorial were made."""
    from IPython.core.formatters import DisplayFormatter

    truths = {question.label: question.answer for question in questions(NOTEBOOKS)}
    for label, guess in guesses.items():
        course.predict(label, guess, truths[label])
        course.predict(label, truths[label], truths[label])  # a second guess
    data, about = DisplayFormatter().format(course.board(1))
    shown = nbformat.v4.new_output("execute_result", data=data, metadata=about)
    last = next(cell for cell in reversed(lab.cells) if "course.board(1)" in cell.source)
    last.outputs = [shown]
    nbformat.validate(lab)
    return lab


def write(notebook: nbformat.NotebookNode, *where: Path | str) -> None:
    path = Path(*where, LAB, f"{LAB}.ipynb")
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


def test_the_guesses_of_thirty_students(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = nbformat.reads(assignment(read_source(SOURCE), "en"), as_version=4)
    for number in range(30):
        monkeypatch.setenv(VARIABLE, str(tmp_path / "desks" / f"{number}.json"))
        guesses = {"operations in the graph": GUESSES[number % len(GUESSES)],
                   "ATen operators": 1}  # fmt: skip  # the second one is of chapter 2
        made = with_guesses(lab, guesses if number < 24 else {})
        for place in ("submitted", "autograded"):
            write(made, tmp_path, place, f"student_{number:02}")
    page = tmp_path / "glance.html"
    arguments = ["course", "glance", str(tmp_path), LAB, "-o", str(page)]
    assert main([*arguments, "--folder", str(NOTEBOOKS)]) == 0
    read = read_class(tmp_path, LAB, NOTEBOOKS)
    assert [read.guesses(f"student_{number:02}") for number in (0, 23, 24)] == [1, 1, 0]
    (found,) = read.predictions
    assert (found.question.name, found.made, found.right) == ("1.1", 24, 8)
    tallies = [(one.text, len(one.students), one.right) for one in found.tallies]
    assert tallies == [("7", 8, False), ("9", 8, True), ("8", 4, False), ("<b>", 4, False)]
    assert "`w.T` is an operation, too" in found.wrong[0].explanation
    tutorial = nbformat.read(NOTEBOOKS / "tutorials" / "en" / f"{LAB}.ipynb", as_version=4)
    asked = tutorial.cells[found.question.cell - 1].source
    assert "operations in the graph" in asked and f"{LAB}.ipynb, cell" in found.where
    text = page.read_text(encoding="utf-8")
    assert "8 × <code>7</code>" in text and "<code>w.T</code> is an operation" in text
    assert "&lt;b&gt;" in text and "<script" not in text and len(text) < 200_000


def test_damaged_guesses_are_not_counted(tmp_path: Path) -> None:
    lab = nbformat.reads(assignment(read_source(SOURCE), "en"), as_version=4)
    wrong = [None, 3, {}, {"question": "operations in the graph", "text": 7, "right": True}]
    about = {"inductor_lab": {"guesses": wrong}}
    lab.cells[-1].outputs = [nbformat.v4.new_output("display_data", data={}, metadata=about)]
    for place in ("submitted", "autograded"):
        write(lab, tmp_path, place, "ada")
    assert read_class(tmp_path, LAB, NOTEBOOKS).predictions == ()
    (tmp_path / "submitted" / "ada" / LAB / f"{LAB}.ipynb").write_text('{"cells": 3}')
    with pytest.raises(UnreadableFile, match="no notebook"):
        read_class(tmp_path, LAB, NOTEBOOKS)


@pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
def test_thirty_students(tmp_path: Path) -> None:
    (tmp_path / SECRET).write_text("0" * 32)
    kinds = [(None, False), (None, True), *((one, False) for one in MISTAKES["1.1"])]
    made = [graded(submitted(*kind), tmp_path) for kind in kinds]
    for number in range(30):
        notebook = made[number % len(made)]
        write(notebook, tmp_path, "autograded", f"student_{number:02}")
    page = tmp_path / "glance.html"
    assert main(["course", "glance", str(tmp_path), LAB, "-o", str(page)]) == 0
    found = read_class(tmp_path, LAB, NOTEBOOKS)
    assert len(found.students) == 30 and found.exercises[0] == "1.1"
    assert found.right("1.1") == 8 and found.right("1.2") == 22
    assert [len(one.answers) for one in found.misconceptions("1.1")] == [14, 8]
    text = page.read_text(encoding="utf-8")
    assert "30 students" in text and "<script" not in text and 'href="#case-1.1-0"' in text
    assert "your machine returns" in text


def test_what_was_not_graded_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadArguments, match="no graded notebook of 05_fusion"):
        read_class(tmp_path, "05_fusion", NOTEBOOKS)
    path = tmp_path / "autograded" / "ada" / LAB / f"{LAB}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(BadArguments, match="graded labs: 01_capture"):
        read_class(tmp_path, "05_fusion", NOTEBOOKS)
    with pytest.raises(UnreadableFile, match="no graded notebook"):
        read_class(tmp_path, LAB, NOTEBOOKS)
