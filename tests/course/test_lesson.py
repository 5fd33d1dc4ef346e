"""Annotations of a lesson are read, and two runs are compared cell by cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.cli import main
from inductor_lab.compiler.base.errors import UnreadableFile
from inductor_lab.course.lesson import Note, pairs, read_lesson
from inductor_lab.notebook.calls import Explorers
from inductor_lab.widgets.lesson import documents_in
from inductor_lab.widgets.lesson_diff import compilations
from inductor_lab.widgets.model import document


def doubled(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).sin()


def tripled(x: torch.Tensor) -> torch.Tensor:
    return (x * 3).sin().sum(0)


def notebook(path: Path, *cells: tuple[str, list[dict[str, Any]]]) -> Path:
    """A file with a heading and cells of code, each with its outputs."""
    written: list[dict[str, Any]] = [{"cell_type": "markdown", "id": "top", "source": "# A lesson"}]
    for number, (source, outputs) in enumerate(cells):
        written.append({"cell_type": "code", "id": f"c{number}", "source": source.splitlines(True),
                        "outputs": outputs})  # fmt: skip
    path.write_text(json.dumps({"cells": written}), encoding="utf-8")
    return path


def printed(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def shown(value: Any) -> dict[str, Any]:
    return {"output_type": "execute_result",
            "data": {"text/html": value._repr_html_(), "text/plain": repr(value)}}  # fmt: skip


def test_annotations_are_removed_from_the_code_and_keep_their_lines(tmp_path: Path) -> None:
    source = "#! first\nx = 1\n\ny = x #! second\ny  #! g0.forward.code/5: a load\nz = '# not one'"
    cell = read_lesson(notebook(tmp_path / "n.ipynb", (source, []))).cells[1]
    assert cell.source == "x = 1\n\ny = x\ny\nz = '# not one'"
    assert cell.notes == (Note("first", 1), Note("second", 3), Note("a load", 5, "g0.forward.code"))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"cells": [{"cell_type": "code"}]}'])
def test_a_file_that_is_not_a_notebook_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(text)
    with pytest.raises(UnreadableFile, match="is no notebook"):
        read_lesson(path)


def test_documents_of_explorers_are_found_in_outputs() -> None:
    first, second = (lab.inspect(fn, torch.ones(8, 8)) for fn in (doubled, tripled))
    for value, wanted in ((first, [first]), (Explorers((first, second)), [first, second])):
        found = documents_in(value._repr_html_() or "")
        assert [data["title"] for data in found] == [c.name for c in wanted]
        assert found[-1]["panes"].keys() == document(wanted[-1])["panes"].keys()
    assert documents_in('render(document.getElementById("lab-0a"), {broken') == []
    assert documents_in('render(document.getElementById("lab-0a"), [1]') == []


def test_cells_outputs_and_compilations_that_differ(tmp_path: Path) -> None:
    x = torch.ones(8, 8)
    c, other = lab.inspect(doubled, x), lab.inspect(tripled, x)
    teacher = notebook(tmp_path / "teacher.ipynb",
                       ("a  #! said", [printed("took 12.5 ms at 0x7f00\n1 kernel\n")]),
                       ("c", [shown(c)]), ("d", [printed("2\n")]), ("only()", []))  # fmt: skip
    student = notebook(tmp_path / "student.ipynb",
                       ("a", [printed("took 9 ms at 0x7a10\n1 kernel\n")]),
                       ("c", [shown(other)]), ("d + 1", [printed("3\n")]))  # fmt: skip
    found = pairs(read_lesson(student), read_lesson(teacher))
    assert [pair.changed for pair in found] == [False, False, False, True, True]
    assert [pair.differs for pair in found] == [False, False, True, True, False]
    (facts, lines), = compilations(found[2])
    assert "compile" not in [name for name, *_ in facts] and facts
    assert {line[2] for line in lines} >= {"+", "-"}
    assert compilations(found[1]) == []


def test_the_command_writes_both_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = ("doubled(x)  #! here", [printed("<b>1</b>\n")])
    teacher = notebook(tmp_path / "teacher.ipynb", cell)
    student = notebook(tmp_path / "student.ipynb", ("tripled(x)", [printed("2\n")]))
    page = tmp_path / "lesson.html"
    assert main(["course", "bundle", str(teacher), "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "here" in text and "#!" not in text.partition("<script")[0]
    assert "&lt;b&gt;1&lt;/b&gt;" in text
    arguments = [str(student), "--against", str(teacher), "-o", str(page), "--language", "zh"]
    try:
        assert main(["course", "bundle", *arguments]) == 0
    finally:
        lab.language("en")
    text = page.read_text(encoding="utf-8")
    assert 'lang="zh-CN"' in text and "源码不同的单元格" in text and "-" in text
    assert "1 of 2 cells changed, the outputs of 1 differ" in capsys.readouterr().out
    assert main(["course", "bundle", str(tmp_path / "none.ipynb")]) == 2
