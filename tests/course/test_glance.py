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
from inductor_lab.course.source import read_source
from inductor_lab.debug.untrusted.confine import confinable
from tests.course import wrong

pytest.importorskip("nbgrader")
LAB = "01_capture"
SOURCE = Path(__file__).parents[2] / "notebooks" / "source" / f"lab_{LAB}.md"
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


@pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
def test_thirty_students(tmp_path: Path) -> None:
    (tmp_path / SECRET).write_text("0" * 32)
    kinds = [(None, False), (None, True), *((one, False) for one in MISTAKES["1.1"])]
    made = [graded(submitted(*kind), tmp_path) for kind in kinds]
    for number in range(30):
        notebook = made[number % len(made)]
        path = tmp_path / "autograded" / f"student_{number:02}" / LAB / f"{LAB}.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(notebook, path)
    page = tmp_path / "glance.html"
    assert main(["course", "glance", str(tmp_path), LAB, "-o", str(page)]) == 0
    found = read_class(tmp_path, LAB)
    assert len(found.students) == 30 and found.exercises[0] == "1.1"
    assert found.right("1.1") == 8 and found.right("1.2") == 22
    assert [len(one.answers) for one in found.misconceptions("1.1")] == [14, 8]
    text = page.read_text(encoding="utf-8")
    assert "30 students" in text and "<script" not in text and 'href="#case-1.1-0"' in text
    assert "your machine returns" in text


def test_what_was_not_graded_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadArguments, match="no graded notebook of 05_fusion"):
        read_class(tmp_path, "05_fusion")
    path = tmp_path / "autograded" / "ada" / LAB / f"{LAB}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(BadArguments, match="graded labs: 01_capture"):
        read_class(tmp_path, "05_fusion")
    with pytest.raises(UnreadableFile, match="no graded notebook"):
        read_class(tmp_path, LAB)
