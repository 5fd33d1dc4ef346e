"""The running example: each chapter starts from what the chapter before made of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import torch

from inductor_lab import course
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.course.build import sources
from inductor_lab.course.example_by_chapter import BEFORE

FOLDER = Path(__file__).parents[2] / "notebooks"
TUTORIALS = {one.number: one for one in sources(FOLDER) if one.kind == "tutorial"}
SHOWS = {2: "torch.softmax(matmul", 3: "aten.amax.default", 4: "16,384 bytes kept",
         5: "sum over r0<64", 6: "kernels 6 unfused", 7: 'extern "C"', 8: "@triton.jit",
         9: "memory peak", 10: "i0<s", 11: "g0.forward loops", 12: "of eager",
         13: "aten.mm.default"}  # fmt: skip


@pytest.fixture(autouse=True)
def _reset() -> None:
    torch._dynamo.reset()
    course.speak("en")


@pytest.mark.parametrize("chapter", sorted(BEFORE))
def test_a_chapter_gets_the_product_of_the_one_before(chapter: int) -> None:
    example = course.running_example(chapter)
    assert example.sentence.startswith(f"Chapter {chapter - 1} ")
    assert SHOWS[chapter] in str(example) and "running_example(" not in str(example)
    expected = torch.softmax(example.x @ example.w, -1)
    torch.testing.assert_close(example.attend(example.x, example.w), expected)


def test_the_numbers_of_the_sentences_are_those_of_the_products() -> None:
    sentences = {chapter: course.running_example(chapter).sentence for chapter in (2, 3, 5, 6)}
    numbers = {chapter: re.findall(r"\d+", text)[1:] for chapter, text in sentences.items()}
    assert numbers == {2: ["2"], 3: ["6"], 5: ["5"], 6: ["6", "2"]}
    assert course.running_example(11).product.right


def test_the_text_is_in_the_language_of_the_notebook() -> None:
    course.speak("zh")
    example = course.running_example(11)
    assert example.sentence.startswith("第 10 章") and "捕获的图与 eager 的结果一致" in str(example)
    html = course.running_example(5)._repr_html_()
    assert "i0&lt;64" in html and "第 4 章" in html


@pytest.mark.parametrize("chapter", sorted(BEFORE))
def test_the_first_cell_shows_it_and_no_chapter_defines_it_again(chapter: int) -> None:
    cells = [block.text for block in TUTORIALS[chapter].blocks if block.kind == "python"]
    assert cells[0].startswith(f"example = course.running_example({chapter})\n")
    assert cells[0].endswith("\nexample")
    code = [cell for cell in cells if not re.search("^[%!]", cell, re.MULTILINE)]
    bodies = [ast.unparse(node.body) for cell in code for node in ast.walk(ast.parse(cell))
              if isinstance(node, ast.FunctionDef) and node.name == "attend"]  # fmt: skip
    assert len(bodies) == (chapter == 3) and all("dropout" in body for body in bodies)


def test_only_chapters_with_one_before_have_it() -> None:
    with pytest.raises(BadArguments, match="before chapter 1"):
        course.running_example(1)
