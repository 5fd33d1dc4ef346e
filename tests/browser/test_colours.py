"""Syntax colours: the right words, no word lost, and a text over several lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import inductor_lab as lab
from inductor_lab.widgets.model import document
from inductor_lab.widgets.page import script

PAGE = """<!doctype html><meta charset="utf-8"><script type="module">{}
window.coloured = inductorLab.coloured;"""
WORDS = """(given) => given.map(([line, language]) => {
  const { words, open } = coloured(line, language);
  return [words.map((word) => word[1]).join(""), Object.fromEntries(words.filter((w) => w[0])
    .map(([kind, text]) => [text.trim(), kind])), open];
})"""
EXPECTED = [
    ("python", "return x + f(1.5)  # why", {"return": "keyword", "f": "called", "1.5": "number",
                                            "# why": "comment"}),
    ("python", "'a # in a string'", {"'a # in a string'": "string"}),
    ("cpp", "for (int64_t i0 = 0; i0 < 0x10; i0++) {  // rows", {
        "for": "keyword", "int64_t": "type", "0x10": "number", "// rows": "comment"}),
    ("cpp", "#pragma omp simd", {"#pragma omp simd": "string"}),
    ("triton", "x0 = tl.load(in0 + i, i < 8)", {"tl": "type", "load": "called", "8": "number"}),
    ("assembly", "  vmulps zmm8,zmm7,DWORD PTR [rip+0x1ef6]", {
        "vmulps": "keyword", "zmm8": "type", "DWORD": "called", "0x1ef6": "number"}),
    ("assembly", "\tmul.f32 \t%r1, %r2, 0f3F3504F3;", {
        "mul.f32": "keyword", "%r1": "type", "0f3F3504F3": "number"}),
    ("mlir", "%t1 = arith.mulf %t0, %c : tensor<8xf32>", {
        "arith.mulf": "keyword", "%t1": "number", "tensor": "type"}),
]  # fmt: skip


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    made = tmp_path_factory.mktemp("colours") / "colours.html"
    made.write_text(PAGE.format(script()) + "</script>")
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(made.as_uri())
    page.wait_for_function("() => window.coloured")
    yield page
    context.close()


@pytest.mark.parametrize(("language", "line", "kinds"), EXPECTED)
def test_words_have_their_kind(page, language: str, line: str, kinds: dict[str, str]) -> None:
    ((text, found, open_text),) = page.evaluate(WORDS, [[line, language]])
    assert text == line and open_text is None
    assert {word: found.get(word) for word in kinds} == kinds


def rows(x: torch.Tensor) -> torch.Tensor:
    """A text
    of "two" lines."""
    return (x * 1.5).softmax(-1)  # a comment


def test_no_line_of_a_document_loses_a_word(page) -> None:
    views = [v for p in document(lab.inspect(rows, torch.randn(9, 40)))["panes"].values()
             for v in p["views"] if v["kind"] == "text"]  # fmt: skip
    lines = [[line[0], block["language"]] for view in views for block in view["blocks"]
             if block["language"] for line in block["lines"]]  # fmt: skip
    assert {"python", "cpp"} <= {language for _, language in lines} and len(lines) > 100
    found = page.evaluate(WORDS, lines)
    assert [text for text, _, _ in found] == [line for line, _ in lines], json.dumps(found)[:500]


def test_a_pane_is_coloured_once_it_is_seen(open_page, tmp_path: Path) -> None:
    opened = open_page(lab.inspect(rows, torch.randn(9, 40)).report(tmp_path / "rows.html"))
    source = opened.page.locator('.lab-pane[data-pane="source"]')
    source.locator(".lab-keyword", has_text="return").wait_for()
    texts = source.locator(".lab-string").all_inner_texts()
    assert [text.strip() for text in texts] == ['"""', "A text", 'of "two" lines."""']
    assert source.locator(".lab-comment").inner_text() == "# a comment"
    whole = source.locator(".lab-line", has_text="lines.").locator("code").inner_text()
    assert whole == '    of "two" lines."""'
    code = opened.page.locator('.lab-pane[data-pane="g0.forward.code"]')
    assert code.locator(".lab-type", has_text="int64_t").count() >= 1
    assert opened.wrong == []
