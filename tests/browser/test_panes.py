"""The lines between panes, and graphs in panes that change their size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab

OFF_CENTRE = """() => {
  const paper = document.querySelector(".lab-paper"), area = paper.getBoundingClientRect();
  const nodes = [...paper.querySelectorAll(".lab-node")].map((n) => n.getBoundingClientRect());
  const left = Math.min(...nodes.map((n) => n.left));
  const right = Math.max(...nodes.map((n) => n.right));
  return ((left + right) / 2 - area.left - area.width / 2) / area.width;
}"""
"""How far the middle of a graph is from the middle of its pane, as a share of the pane's width."""


NEXT_FRAMES = """() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(done));
})"""
"""Two frames: the first resizes the panes, the second draws their graphs."""


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    x = torch.randn(8, 8, requires_grad=True)
    c = lab.inspect(lambda x: torch.sin(x @ x).softmax(-1), x)
    return c.report(tmp_path_factory.mktemp("panes") / "panes.html")


def widths(page: Any) -> list[float]:
    return page.locator(".lab-pane").evaluate_all("all => all.map(e => e.offsetWidth)")


def share(line: Any) -> int:
    return int(line.get_attribute("aria-valuenow"))


def test_panes_are_resized_by_dragging_and_remember_their_size(report: Path, open_page) -> None:
    page = open_page(report, width=1440).page
    line = page.locator(".lab-split-left")
    before, box = widths(page), line.bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] - 197, box["y"] + 50)
    page.mouse.up()
    after = widths(page)
    assert after[0] == pytest.approx(before[0] - 200, abs=2)
    assert after[1] == pytest.approx(before[1] + 200, abs=2)
    page.reload()
    assert widths(page) == pytest.approx(after, abs=6)
    line.dblclick(position={"x": 3, "y": 50})
    assert share(line) == 50
    assert widths(page) == pytest.approx(before, abs=2)


def test_panes_are_resized_by_the_keyboard(report: Path, open_page) -> None:
    page = open_page(report, width=900).page
    line = page.locator(".lab-split-top")
    line.focus()
    page.keyboard.press("ArrowUp")
    assert share(line) == 48
    page.keyboard.press("End")
    page.keyboard.press("ArrowDown")
    assert share(line) == 85, "the lower pane keeps some height"
    heights = page.locator(".lab-pane:visible").evaluate_all("all => all.map(e => e.offsetHeight)")
    assert heights[0] / sum(heights) == pytest.approx(0.85, abs=0.02)


@pytest.mark.parametrize(("width", "lines"), [(600, []), (900, ["top"]), (1440, ["left", "top"])])
def test_only_lines_between_visible_panes_are_shown(report: Path, open_page, width, lines) -> None:
    page = open_page(report, width=width).page
    found = [side for side in ("left", "top") if page.locator(f".lab-split-{side}").is_visible()]
    assert found == lines


def test_a_graph_stays_in_the_middle_of_its_pane_in_presentation_mode(report, open_page) -> None:
    page = open_page(report, width=2200).page
    page.wait_for_function(f"Math.abs(({OFF_CENTRE})()) < 0.05")
    page.keyboard.press("P")
    page.wait_for_function("document.querySelector('.presenting') !== null")
    page.evaluate(NEXT_FRAMES)
    page.wait_for_function(f"Math.abs(({OFF_CENTRE})()) < 0.05")
