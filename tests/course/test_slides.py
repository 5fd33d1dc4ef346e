"""Slides of a notebook: a slide for each heading, and cells that appear one by one."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from inductor_lab.compiler.base.errors import UnreadableFile
from inductor_lab.course.command import command


def test_each_heading_begins_a_slide(tmp_path: Path) -> None:
    output = new_output("stream", name="stdout", text="forty two\n")
    nbformat.write(new_notebook(cells=[
        new_markdown_cell("# Fusion\n\nwhat it is\n\n## Why\n\nfew bytes\n\n### In numbers\n\n10"),
        new_code_cell("print('forty two')", outputs=[output]),
        new_markdown_cell("a last word"),
    ]), tmp_path / "lesson.ipynb")  # fmt: skip
    page = tmp_path / "slides.html"
    notebook = str(tmp_path / "lesson.ipynb")
    said = command(["slides", notebook, "-o", str(page), "--reveal", "reveal"])
    text = page.read_text(encoding="utf-8")
    assert said == str(page) and "reveal/dist/reveal" in text and "unpkg.com/reveal" not in text
    assert not re.search(r"<(script|link)[^>]*https?://|from 'https?://|require\(", text)
    assert "Reveal.initialize(" in text
    slides = re.findall(r"<section>(?!<section>)(.*?)</section>", text, re.DOTALL)
    titles = [re.findall(r"<h\d[^>]*>([\w ]+)", slide) for slide in slides]
    assert titles == [["Fusion"], ["Why"], ["In numbers"]]
    assert "forty two" in slides[2].partition('class="fragment"')[2] and "a last word" in slides[2]


def test_what_is_no_notebook_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.ipynb").write_text("no notebook")
    for name in ("text.ipynb", "none.ipynb"):
        with pytest.raises(UnreadableFile, match="is no notebook"):
            command(["slides", str(tmp_path / name), "-o", str(tmp_path / "out.html")])
