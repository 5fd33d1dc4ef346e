"""A lesson that a real kernel ran, as one file: opened offline, its explorer is alive, and nothing
of the notebook's own runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from inductor_lab.cli import main

SOURCE = """import torch, inductor_lab as lab
def f(x):
    return torch.softmax(x, -1)  #! one kernel
c = lab.inspect(f, torch.ones(8, 16))
c  #! g0.forward.code/4: a row at a time"""
HOSTILE = """from IPython.display import HTML
HTML('<p id="hostile">kept</p><script>document.title = "taken"</script>'
     '<img src="x" onerror="document.title = 1">'
     '<script src="http://127.0.0.1:9/x.js"></script >')"""


def ran(path: Path, *sources: str) -> Path:
    nbclient = pytest.importorskip("nbclient")
    cells = [nbformat.v4.new_markdown_cell("# A lesson\n\n**Bold** words.")]
    cells += [nbformat.v4.new_code_cell(source, id=f"c{n}") for n, source in enumerate(sources)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    nbformat.write(notebook, path)
    return path


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(tmp_path_factory.mktemp("lesson") / "teacher.ipynb", SOURCE, HOSTILE)


@pytest.mark.parametrize("dark, width", [(False, 1600), (True, 900)])
def test_a_lesson_works_offline(
    open_page: Callable, lesson: Path, tmp_path: Path, dark: bool, width: int
) -> None:
    page = tmp_path / "lesson.html"
    assert main(["course", "bundle", str(lesson), "-o", str(page)]) == 0
    opened = open_page(page, dark=dark, width=width)
    tab = opened.page
    tab.locator(".lab-explorer").wait_for()
    assert opened.texts(".note") == ["one kernel"]
    theme = tab.locator(".lesson-explorer").get_attribute("data-theme")
    assert theme == ("dark" if dark else "light")
    tab.locator(".places button").click()
    line = tab.locator('[data-pane="g0.forward.code"] .lab-line.current')
    line.wait_for()
    assert line.get_attribute("data-line") == "3"
    wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{wide} px wider than the window"
    assert tab.title().startswith("A lesson") and opened.count("#hostile") == 1
    assert not [said for said in opened.wrong if "network" in said]


def test_scripts_of_the_notebook_are_removed(
    open_page: Callable, tmp_path: Path
) -> None:
    page = tmp_path / "lesson.html"
    main(["course", "bundle", str(ran(tmp_path / "n.ipynb", SOURCE)), "-o", str(page)])
    opened = open_page(page)
    opened.page.locator(".lab-explorer").wait_for()
    assert opened.wrong == []


def test_a_students_run_compared_with_the_teachers(
    open_page: Callable, lesson: Path, tmp_path: Path
) -> None:
    student = ran(tmp_path / "student.ipynb", SOURCE.replace("softmax(x, -1)", "relu(x)"), HOSTILE)
    page = tmp_path / "beside.html"
    main(["course", "bundle", str(student), "--against", str(lesson), "-o", str(page)])
    tab = open_page(page).page
    assert tab.locator("header nav").all_inner_texts() == [
        "Cells whose source differs: 2", "Cells whose outputs differ: 2",
        "Cells whose compilations differ: 2"]  # fmt: skip
    assert "relu" in tab.locator("#cell-1 .row.added").first.inner_text()
    assert "softmax" in tab.locator("#cell-1 .row.removed").first.inner_text()
    tab.locator("summary", has_text="generated code").click()
    assert tab.locator("#cell-1 details[open] .row.added").count() > 0
