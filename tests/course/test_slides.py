"""Slides of a notebook: a slide for each heading, and cells that appear one by one."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from inductor_lab.compiler.base.errors import UnreadableFile
from inductor_lab.course.command import command


def copy_of_reveal(folder: Path) -> Path:
    """Files with the names, the font and the end tag of those of reveal.js 4."""
    for name in ("dist/reveal", "dist/theme/simple"):
        path = folder / f"{name}.css"
        path.parent.mkdir(parents=True)
        font = "@import url(https://fonts.googleapis.com/css?family=Lato:400,700italic);\n"
        path.write_text(f"{font}/* css of {path.stem} */")
    for name in ("dist/reveal", "plugin/notes/notes"):
        path = folder / f"{name}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"var s = '</script>';  // js of {path.stem}")
    return folder


def test_a_missing_file_of_reveal_is_reported(tmp_path: Path) -> None:
    nbformat.write(new_notebook(cells=[new_markdown_cell("# One")]), tmp_path / "lesson.ipynb")
    (tmp_path / "dist").mkdir()
    with pytest.raises(UnreadableFile, match=r"reveal\.js cannot be read"):
        command(["slides", str(tmp_path / "lesson.ipynb"), "--reveal", str(tmp_path)])


def test_each_heading_begins_a_slide(tmp_path: Path) -> None:
    output = new_output("stream", name="stdout", text="forty two\n")
    nbformat.write(new_notebook(cells=[
        new_markdown_cell("# Fusion\n\nwhat it is\n\n## Why\n\nfew bytes\n\n### In numbers\n\n10"),
        new_code_cell("print('forty two')", outputs=[output]),
        new_markdown_cell("a last word"),
    ]), tmp_path / "lesson.ipynb")  # fmt: skip
    page = tmp_path / "slides.html"
    notebook = str(tmp_path / "lesson.ipynb")
    reveal = copy_of_reveal(tmp_path / "reveal")
    said = command(["slides", notebook, "-o", str(page), "--reveal", str(reveal)])
    text = page.read_text(encoding="utf-8")
    assert said == str(page) and str(reveal) not in text
    assert all(word in text for word in ("css of reveal", "css of simple", "js of reveal",
                                         "js of notes", "Reveal.initialize("))  # fmt: skip
    outside = r"<(script|link|img)[^>]*\b(src|href)=|@import|url\(['\"]?http|from 'http|require\("
    assert not re.search(outside, text)
    slides = re.findall(r"<section>(?!<section>)(.*?)</section>", text, re.DOTALL)
    titles = [re.findall(r"<h\d[^>]*>([\w ]+)", slide) for slide in slides]
    assert titles == [["Fusion"], ["Why"], ["In numbers"]]
    assert "forty two" in slides[2].partition('class="fragment"')[2] and "a last word" in slides[2]


def test_what_is_no_notebook_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.ipynb").write_text("no notebook")
    for name in ("text.ipynb", "none.ipynb"):
        with pytest.raises(UnreadableFile, match="is no notebook"):
            command(["slides", str(tmp_path / name), "-o", str(tmp_path / "out.html")])
