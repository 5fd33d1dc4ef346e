"""The lines of a long text are built when they are needed: seen, searched, highlighted, printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.widgets.model import document

STEPS = 48
CODE = '.lab-pane[data-pane="g0.forward.code"]'
MOST_ELEMENTS = 5000
"""Of a page with twenty times as many lines as are visible, before anything is opened."""


def long(x: torch.Tensor) -> list[torch.Tensor]:
    return [(x * n).sum(-1).sin() for n in range(STEPS)]


@pytest.fixture(scope="module")
def lines(tmp_path_factory) -> tuple[Path, int]:
    """The report, and the number of lines of its code."""
    options = {"fusion": False}
    c = lab.inspect(long, torch.randn(4, 5), options=options)
    (code,) = (view for view in document(c)["panes"]["g0.forward.code"]["views"]
               if view["name"] == "text")  # fmt: skip
    count = sum(len(block["lines"]) for block in code["blocks"])
    return c.report(tmp_path_factory.mktemp("long") / "long.html"), count


def built(page: Any) -> int:
    return page.locator(f"{CODE} .lab-line").count()


def test_only_the_first_lines_are_built(lines, open_page) -> None:
    report, count = lines
    opened = open_page(report)
    assert count > 600
    assert 200 < built(opened.page) < count / 2
    assert opened.page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS
    assert opened.wrong == []


def test_scrolling_builds_the_lines_that_are_seen(lines, open_page) -> None:
    report, count = lines
    page = open_page(report).page
    page.locator(f"{CODE} .lab-block").last.scroll_into_view_if_needed()  # waits until it is still
    last = page.locator(f"{CODE} .lab-block").last.locator(".lab-line").last
    last.wait_for()
    assert last.locator("code").inner_text().strip()
    assert page.locator(f"{CODE} .lab-block").last.locator(".lab-keyword, .lab-type").count() > 0
    assert built(page) < count


def test_a_search_a_key_and_the_printer_reach_every_line(lines, open_page) -> None:
    report, count = lines
    opened = open_page(report)
    page = opened.page
    before = built(page)
    opened.search(f"{STEPS - 1}.0f")
    assert page.locator(f"{CODE} .lab-line.found").count() >= 1
    assert before < built(page) < count
    page.locator(f"{CODE} .lab-text").focus()
    page.keyboard.press("End")
    assert page.locator(f"{CODE} .lab-block").last.locator(".lab-line.current").is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert built(page) == count


def test_a_pinned_line_shows_and_highlights_lines_that_were_not_built(lines, open_page) -> None:
    report, _ = lines
    page = open_page(report).page
    before = built(page)
    box = page.locator('.lab-pane[data-pane="g0.forward.schedule"] .lab-node.linked').last
    box.dispatch_event("click")
    lit = page.locator(f"{CODE} .lab-line.lit").first
    assert lit.is_visible()
    page.keyboard.press("Escape")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(f"{CODE} .lit").count() == 0
    assert built(page) > before
