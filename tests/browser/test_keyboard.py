"""The explorer by the keyboard alone, where no control loses the focus; and on paper."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab

CONTROLS = "button, select, input, textarea, [tabindex='0']"
FOCUS = """() => {
  const e = document.activeElement, box = e.getBoundingClientRect(), style = getComputedStyle(e);
  return { name: e.ariaLabel || e.labels?.[0]?.textContent || e.textContent.trim() || e.title,
    lost: e === document.body, inside: !!e.closest(".lab-pane"),
    seen: style.outlineStyle !== "none" && box.width > 0 && box.bottom <= innerHeight + 1 };
}"""


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(torch.nn.functional.gelu(self.one(x))).softmax(-1)


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    c = lab.inspect(Layers(), torch.randn(4, 8))
    return c.report(tmp_path_factory.mktemp("keyboard") / "layers.html")


def one_pane(page: Any) -> None:
    while page.locator(".lab-pane").count() > 1:
        page.locator(".lab-pane-head [aria-label=close]").last.press("Enter")
        assert not page.evaluate(FOCUS)["lost"], "it was closed"


def views(page: Any) -> Any:
    """Each view of each pane, opened by the keyboard; by the number of pane and tab."""
    for pane in range(page.locator(".lab-rail button").count()):
        for tab in range(10):
            page.locator(".lab-rail button").nth(pane).press("Enter")
            if tab:
                page.locator(".lab-tabs button").nth(tab).press("Enter")
            is_last = tab + 1 >= page.locator(".lab-tabs button").count()
            yield pane, tab
            if is_last:
                break


def test_no_control_loses_the_focus(report: Path, open_page) -> None:
    opened = open_page(report)
    page = opened.page
    one_pane(page)
    seen: set[str] = set()
    for pane, tab in views(page):
        assert not page.evaluate(FOCUS)["lost"], (pane, tab)
        for number in range(page.locator(f".lab-pane :is({CONTROLS})").count()):
            control = page.locator(f".lab-pane :is({CONTROLS})").nth(number)
            if not control.is_visible():
                continue
            control.focus()
            what = f"{control.evaluate('e => e.tagName')} {page.evaluate(FOCUS)['name'][:60]}"
            if what in seen or "save" in what:  # a file is another test's
                continue
            seen.add(what)
            if what == "SELECT content of this pane":
                page.keyboard.press("ArrowDown")
                assert page.evaluate(FOCUS)["name"] == "content of this pane"
                page.keyboard.press("ArrowUp")
                continue
            page.keyboard.press("Enter")
            assert not page.evaluate(FOCUS)["lost"], (pane, tab, what)
    assert len(seen) > 30
    assert opened.wrong == []


def test_tab_reaches_each_view_and_shows_the_focus(report: Path, open_page) -> None:
    opened = open_page(report, width=500)
    page = opened.page
    one_pane(page)
    for pane, tab in views(page):
        page.locator(".lab-pane-head select").focus()
        for _ in range(60):
            page.keyboard.press("Tab")
            now = page.evaluate(FOCUS)
            if now["lost"] or not now["inside"]:
                break
            assert now["seen"] and now["name"], (pane, tab, now)
        else:
            pytest.fail(f"no way out of view {tab} of pane {pane}")
    assert opened.wrong == []


def test_phases_and_tabs_are_one_stop_each_with_arrows(report: Path, open_page) -> None:
    page = open_page(report).page
    page.locator(".lab-rail [tabindex='0']").press("ArrowDown")
    second = page.locator(".lab-rail button").nth(1)
    assert second.evaluate("e => e === document.activeElement")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.tagName") == "SELECT"
    tabs = page.locator(".lab-pane.focused [role=tab]")
    page.locator("[data-pane='g0.forward.code']").first.press("Enter")
    assert page.evaluate(FOCUS)["inside"], "what is opened gets the focus"
    page.keyboard.press("End")
    assert page.locator(".lab-text .lab-line.current").inner_text().split()[-1] == "}"
    tabs.first.focus()
    page.keyboard.press("ArrowRight")
    assert tabs.nth(1).get_attribute("aria-selected") == "true"
    assert tabs.nth(1).evaluate("e => e === document.activeElement")


def test_closing_the_list_of_keys_restores_the_focus(report: Path, open_page) -> None:
    page = open_page(report).page
    button = page.locator(".lab-actions [aria-label='keyboard shortcuts']")
    button.press("Enter")
    assert page.locator(".lab-help").evaluate("e => e === document.activeElement")
    page.keyboard.press("Escape")
    assert page.locator(".lab-help").count() == 0
    assert button.evaluate("e => e === document.activeElement")


def test_printed_panes_are_complete_and_light(report: Path, open_page) -> None:
    page = open_page(report, dark=True).page
    page.emulate_media(media="print")
    boxes = [pane.bounding_box() for pane in page.locator(".lab-pane").all()]
    assert len(boxes) > 1
    for above, below in pairwise(boxes):
        assert above["y"] + above["height"] <= below["y"] + 1, "they lie over each other"
    lines = page.locator(".lab-pane:has(.lab-text)").last
    last = lines.locator(".lab-line").last.bounding_box()
    box = lines.bounding_box()
    assert last["y"] + last["height"] <= box["y"] + box["height"] + 1, "the text is cut off"
    colour = page.locator(".lab-explorer").evaluate("e => getComputedStyle(e).color")
    assert colour == "rgb(27, 31, 36)", "light text on white paper"
    assert not page.locator(".lab-pane-head [aria-label=close]").first.is_visible()
