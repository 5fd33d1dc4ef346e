"""Traits of an explorer in JupyterLab: programs read and set what it shows, and link it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import opened_notebook

CELLS = (
    "import torch, ipywidgets\nimport inductor_lab as lab",
    "def pythagoras(x):\n"
    "    one = torch.sin(x) ** 2\n"
    "    return one + torch.cos(x) ** 2\n"
    "shown = lab.inspect(pythagoras, torch.randn(100)).widget()\n"
    "seen = []\n"
    "shown.observe(lambda change: seen.append(change['new']), 'selected')\n"
    "linked = ipywidgets.Text()\n"
    "ipywidgets.jslink((shown, 'view'), (linked, 'value'))\n"
    "ipywidgets.VBox([linked, shown])",
    "print(seen[-1], shown.view)",
    "shown.selected = {'stage': 'g0.forward.graph', 'node': 'cos'}\nprint('set')",
    "try:\n"
    "    shown.view = 'g0.forward.lops'\n"
    "except lab.LabError as error:\n"
    "    print(error)\n"
    "shown.view = 'g0.forward.loops'",
)
EXPLORER = ".jp-Cell:nth-child(2) .lab-explorer"


@pytest.fixture(scope="module")
def page(browser: Any, jupyterlab: tuple[str, Path]) -> Iterator[Any]:
    opened = opened_notebook(browser, jupyterlab, CELLS, "traits.ipynb")
    opened.keyboard.press("Shift+Enter")
    opened.wait_for_selector(f"{EXPLORER}.live .lab-line")
    yield opened
    opened.context.close()


def printed(page: Any, number: int) -> str:
    """Run a cell, counted from 1, and return what it prints."""
    page.locator(f".jp-Cell:nth-child({number}) .jp-InputPrompt").click()
    page.keyboard.press("Shift+Enter")
    output = page.locator(f".jp-Cell:nth-child({number}) .jp-OutputArea-output")
    output.first.wait_for()
    return str(output.first.inner_text())


def test_a_click_reaches_the_program(page: Any) -> None:
    pane = page.locator(f'{EXPLORER} .lab-pane[data-pane="source"]')
    pane.locator(".lab-line >> text=one = torch.sin").click()
    number = pane.locator(".lab-line.lit .lab-no").first.inner_text()
    said = re.fullmatch(r"{'stage': 'source', 'line': (\d+)} source", printed(page, 3).strip())
    assert said and said[1] == number


def test_the_program_moves_the_explorer_and_what_is_linked(page: Any) -> None:
    assert "set" in printed(page, 4)
    graph = page.locator(f'{EXPLORER} .lab-pane[data-pane="g0.forward.graph"]')
    graph.locator(".lab-node.lit").first.wait_for()
    lit = graph.locator(".lab-node.lit").all_text_contents()
    assert any("cos" in text for text in lit) and not any("sin" in text for text in lit), lit
    linked = page.locator(".jp-Cell:nth-child(2) input[type=text]")
    assert linked.input_value() == "g0.forward.graph"


def test_a_wrong_view_is_refused_and_a_linked_field_moves_the_explorer(page: Any) -> None:
    said = printed(page, 5)
    assert "unknown view 'g0.forward.lops'; did you mean 'g0.forward.loops'?" in said
    assert "Valid views: source" in said
    explorer = page.locator(EXPLORER)
    explorer.locator('.lab-pane.focused[data-pane="g0.forward.loops"]').wait_for()
    linked = page.locator(".jp-Cell:nth-child(2) input[type=text]")
    assert linked.input_value() == "g0.forward.loops"
    linked.fill("g0.forward.code")
    linked.press("Enter")
    explorer.locator('.lab-pane.focused[data-pane="g0.forward.code"]').wait_for()
