"""The explorer in Chinese: what it says of itself, in every pane and view, is Chinese."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import inductor_lab as lab

FRAME = """root => {
  const said = [];
  const selectors = ["h2", ".lab-rail-title", ".lab-problem", ".lab-tabs button", "th", ".lab-note",
    ".lab-empty", ".lab-fact", ".lab-actions button", ".lab-pane-head button", ".lab-hint", "h3",
    ".lab-tools button", ".lab-guard-actions button", ".lab-whatif button"];
  for (const element of root.querySelectorAll(selectors.join(","))) said.push(element.textContent);
  for (const name of ["title", "aria-label", "placeholder"]) {
    for (const place of ["header", "nav", ".lab-pane-head"]) {
      const elements = root.querySelectorAll(`${place} [${name}]`);
      for (const element of elements) said.push(element.getAttribute(name));
    }
  }
  return said;
}"""
EVERY_VIEW = f"""root => {{
  const found = [];
  const frame = {FRAME};
  for (const button of root.querySelectorAll(".lab-rail [data-pane]")) {{
    button.click();
    const pane = () => root.querySelector(`.lab-pane[data-pane="${{button.dataset.pane}}"]`);
    const tabs = pane().querySelectorAll(".lab-tabs button").length;
    for (let tab = 0; tab < Math.max(1, tabs); tab++) {{
      pane().querySelectorAll(".lab-tabs button")[tab]?.click();
      found.push(...frame(root));
    }}
  }}
  return [...new Set(found)];
}}"""
CHINESE = re.compile("[\u4e00-\u9fff]")
TERMS = re.compile(
    r"\b(SVG|PNG|GB/s|flop|kernel|pass|IR|Dynamo|dynamo|TorchDynamo|forward|backward|eager|Esc|Enter"
    r"|cpp|inductor_lab)\b"
)
"""Words that a Chinese engineer says in English."""


@pytest.fixture
def chinese() -> Iterator[None]:
    lab.language("zh")
    yield
    lab.language("en")


def trained(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = torch.exp(torch.sin(x)).tanh()
    return torch.softmax(h @ w, -1).sigmoid() @ w


def in_english(text: str) -> bool:
    """Does it say something, and no word of it in Chinese?"""
    words = re.findall(r"[A-Za-z]{2,}", TERMS.sub("", text))
    return bool(words) and not CHINESE.search(text)


def test_the_frame_of_every_view_is_chinese(
    chinese: None, open_page: Callable, tmp_path: Path
) -> None:
    arguments = [torch.randn(16, 8, requires_grad=True), torch.randn(8, 8, requires_grad=True)]
    path = lab.inspect(trained, *arguments).report(tmp_path / "report.html", assembly=True)
    opened = open_page(path, width=1600)
    page = opened.page
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    said = page.eval_on_selector(".lab-explorer", EVERY_VIEW)
    assert len(said) > 100
    assert [text for text in said if in_english(text)] == []
    page.keyboard.press("?")
    keys = page.locator(".lab-help td:nth-child(2)").all_inner_texts()
    assert len(keys) > 8 and all(CHINESE.search(text) for text in keys)
    page.keyboard.press("Escape")
    page.hover('.lab-rail [data-pane="guards"]')
    assert CHINESE.search(page.inner_text(".lab-tip"))
    assert opened.wrong == []
