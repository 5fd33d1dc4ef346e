"""Room for the explorer: its own height, the whole screen, a page enlarged, no motion.

Whatever the room is, views can be reached, a pane has forty columns or is alone, and buttons are
next to the boxes of a graph.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.widgets.report import report_html
from inductor_lab.widgets.show import html

ROOM = """explorer => {
  const all = (parent, what) => [...parent.querySelectorAll(what)].filter((e) => e.offsetWidth);
  const wrong = [], panes = all(explorer, ".lab-pane");
  const box = (element) => element.getBoundingClientRect();
  const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1;
  if (explorer.scrollWidth > explorer.clientWidth + 1) wrong.push("the explorer is cut off");
  for (const button of all(explorer, ".lab-actions button"))
    if (!inside(box(button), box(explorer))) wrong.push(`no way to ${button.ariaLabel}`);
  for (const pane of panes) {
    const name = pane.ariaLabel;
    for (const button of all(pane, ".lab-pane-head button, .lab-pane-head select"))
      if (!inside(box(button), box(pane))) wrong.push(`${name}: ${button.textContent} is outside`);
    const code = pane.querySelector(".lab-text code");
    if (code) {
      const probe = document.createElement("span");
      probe.textContent = "0".repeat(40);
      code.parentElement.append(probe);
      const columns = 40 * (box(pane).right - box(code).left) / box(probe).width;
      probe.remove();
      const alone = box(pane).width > 0.9 * explorer.offsetWidth;
      if (!alone && columns < 40) wrong.push(`${name}: ${columns} columns`);
    }
    for (const tools of pane.querySelectorAll(".lab-tools"))
      for (const paper of pane.querySelectorAll(".lab-paper"))
        if (box(tools).bottom > box(paper).top + 1) wrong.push(`${name}: buttons over the graph`);
  }
  return wrong;
}"""
"""What is out of reach, too narrow or covered in an explorer."""

IN_A_NOTEBOOK = '<!doctype html><meta charset="utf-8"><body style="width: {width}px">{shown}'


def block(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    hidden = torch.nn.functional.gelu(x @ w).softmax(-1)
    return (hidden * 2 + x.exp()).sum(0)


@pytest.fixture(scope="module")
def c() -> Any:
    return lab.inspect(block, torch.randn(8, 8, requires_grad=True), torch.randn(8, 8))


@pytest.fixture(scope="module")
def report(c: Any, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("room") / "report.html"
    path.write_text(report_html(c))
    return path


@pytest.fixture
def output(c: Any, tmp_path: Path):
    """The explorer in a column as wide as a notebook's."""

    def written(width: int) -> Path:
        path = tmp_path / f"{width}.html"
        path.write_text(IN_A_NOTEBOOK.format(width=width, shown=html(c)))
        return path

    return written


def crowded(opened: Any) -> list[str]:
    """What is wrong where source, graph and code stand side by side, and in each pane alone."""
    explorer, wrong = opened.page.locator(".lab-explorer"), []
    wrong += explorer.evaluate(ROOM)
    for pane in ("g0.captured", "g0.forward.schedule", "g0.forward.memory", "guards"):
        explorer.locator(f'.lab-rail [data-pane="{pane}"]').click()
        wrong += explorer.evaluate(ROOM)
    return wrong


@pytest.mark.parametrize("width", [420, 700, 900, 1010, 1400])
def test_the_explorer_fits_every_width(output, open_page, width: int) -> None:
    opened = open_page(output(width), width=2600)
    assert crowded(opened) == []
    shown = opened.page.locator(".lab-pane:visible").count()
    assert shown == (1 if width <= 620 else 2 if width <= 1000 else 4)
    assert opened.wrong == []


def test_the_step_slider_has_space_next_to_long_names(tmp_path, open_page) -> None:
    """A graph break makes two tries, which a list above the slider distinguishes."""

    def in_two_graphs(x):
        y = x.sin()
        print(end="")
        return y.cos()

    path = tmp_path / "report.html"
    path.write_text(report_html(lab.inspect(in_two_graphs, torch.ones(4))))
    opened = open_page(path, width=700)
    opened.page.locator('.lab-rail [data-pane="steps"]').click()
    outside = opened.page.locator(".lab-step-head").evaluate(
        "head => [...head.children].filter((e) => e.offsetWidth && "
        "e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.tagName)"
    )
    assert opened.page.locator(".lab-step-head select").is_visible() and outside == []


@pytest.mark.parametrize("width", [700, 900, 1400])
def test_a_page_at_150_percent_zoom(report: Path, open_page, width: int) -> None:
    """What a browser does at 150 %: fewer and larger pixels."""
    opened = open_page(report, width=round(width / 1.5))
    assert crowded(opened) == []
    opened.page.keyboard.press("P")  # and larger once more
    assert crowded(opened) == []
    assert opened.wrong == []


def test_full_screen_mode(output, open_page) -> None:
    opened = open_page(output(700), width=1600)
    page, explorer = opened.page, opened.page.locator(".lab-explorer")
    assert page.locator(".lab-pane:visible").count() == 2
    page.locator("[aria-label='full screen']").click()
    page.wait_for_function("() => document.fullscreenElement && innerWidth - 2 <= "
                           "document.fullscreenElement.offsetWidth")  # fmt: skip
    box = explorer.bounding_box()
    assert (box["x"], box["y"], box["height"]) == (0, 0, page.evaluate("innerHeight"))
    assert page.locator(".lab-pane:visible").count() == 4
    assert crowded(opened) == []
    page.locator(".lab-text").first.focus()
    page.keyboard.press("F")
    page.wait_for_function("() => !document.fullscreenElement")
    assert explorer.bounding_box()["width"] <= 700
    assert opened.wrong == []


def test_the_user_can_set_the_height(output, open_page) -> None:
    opened = open_page(output(1200), width=1300)
    page, explorer = opened.page, opened.page.locator(".lab-explorer")
    before = explorer.bounding_box()
    corner = (before["x"] + before["width"] - 4, before["y"] + before["height"] - 4)
    heights = []
    for by in (120, -400):
        page.mouse.move(*corner)
        page.mouse.down()
        page.mouse.move(corner[0], corner[1] + by, steps=4)
        page.mouse.up()
        box = explorer.bounding_box()
        corner = (corner[0], box["y"] + box["height"] - 4)
        heights.append(box["height"])
        assert box["width"] == before["width"]
        assert crowded(opened) == []
        body = page.locator(".lab-pane.focused .lab-body").bounding_box()
        assert body["height"] > 60
    assert heights[0] > before["height"] + 100 and 350 < heights[1] < before["height"] - 100


def test_reduced_motion_is_respected(report: Path, browser) -> None:
    context = browser.new_context(offline=True, reduced_motion="reduce")
    page = context.new_page()
    page.goto(report.as_uri())
    page.locator('.lab-rail [data-pane="g0.forward.schedule"]').click()
    page.locator(".lab-line.linked").first.hover()
    moving = page.evaluate("""() => [...document.querySelectorAll(".lab-explorer, .lab-explorer *")]
      .filter((each) => { const style = getComputedStyle(each);
        return parseFloat(style.transitionDuration) > 0 || style.animationName !== "none"
          || style.scrollBehavior === "smooth"; }).length""")
    assert moving == 0
    assert page.evaluate("document.getAnimations().length") == 0
    context.close()


def test_tabs_stay_in_one_line_next_to_long_pane_names(tmp_path: Path, open_page) -> None:
    """The field that names the pane gives way first: `machine code · assembly backward`."""
    c = lab.inspect(lambda x: x.sin() * 2, torch.randn(8, requires_grad=True))
    opened = open_page(c.report(tmp_path / "report.html", assembly=True), width=1400)
    for pane in ("graph", "rewrites", "schedule", "memory"):
        opened.page.locator(f'.lab-rail [data-pane="g0.forward.{pane}"]').click()
    tabs = opened.page.locator(".lab-pane:visible .lab-tabs")
    heights = tabs.evaluate_all("all => all.map((tabs) => tabs.offsetHeight)")
    assert len(heights) == 4 and max(heights) < 40, heights
    assert opened.wrong == []


def test_a_narrow_window_scrolls_to_the_requested_pane(report: Path, open_page) -> None:
    """There the page scrolls: the rail stays, and the pane comes into view."""
    opened = open_page(report, width=700)
    page = opened.page
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.locator('.lab-rail [data-pane="g0.forward.schedule"]').click()
    pane = page.locator(".lab-pane.focused").bounding_box()
    assert pane["y"] >= -1 and pane["y"] + 200 < page.evaluate("innerHeight")
    rail = page.locator(".lab-rail").bounding_box()
    assert rail["y"] >= -1 and rail["y"] + 100 < page.evaluate("innerHeight")
    assert opened.wrong == []
