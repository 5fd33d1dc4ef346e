"""Jupyter Notebook 7, which loads the extensions of JupyterLab: a cell, a file, an output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.widgets.mime import explorer_data
from tests.browser.conftest import Opened, opened_notebook
from tests.browser.test_saved_files import CODE, STAGES, notebook_with, pythagoras, stages_in

CELLS = (
    "import torch\n%load_ext inductor_lab",
    "%%compile\n"
    "def pythagoras(x):\n"
    "    return torch.sin(x) ** 2 + torch.cos(x) ** 2\n"
    "\n"
    "pythagoras(torch.randn(100))",
)
ITS_OWN = "Cannot read properties of undefined (reading 'schema')"
"""An error of Notebook 7.6.5, which it has without our extension too."""
SCHEDULE = '.lab-pane[data-pane="g0.forward.schedule"]'


@pytest.fixture
def open_it(browser: Any, notebook7: tuple[str, Path]) -> Iterator[Callable[[str], Opened]]:
    """Opens a page of Notebook; `wrong` has what scripts did not catch."""
    context = browser.new_context(viewport={"width": 1500, "height": 1000})
    context.set_default_timeout(120_000)

    def opened(place: str) -> Opened:
        found = Opened(context.new_page())
        context.on("weberror", lambda each: None if str(each.error) == ITS_OWN
                   else found.wrong.append(str(each.error)))
        found.page.goto(f"{notebook7[0]}/{place}")
        return found

    yield opened
    context.close()


def test_a_cell_draws_a_live_explorer(browser: Any, notebook7: tuple[str, Path]) -> None:
    page = opened_notebook(browser, notebook7, CELLS, "two.ipynb", "notebooks")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector(".lab-explorer.live")
    assert "pythagoras" in page.inner_text(".lab-header h1")
    page.locator('.lab-rail [data-pane="g0.forward.schedule"]').click()
    page.click(f"{SCHEDULE} .lab-tabs >> text=decisions")
    page.click(f"{SCHEDULE} .lab-pair >> text=forbid >> nth=0")
    page.wait_for_selector(".lab-verdict:has-text('1 → 2 kernels')")
    for _ in range(3):
        page.keyboard.press("d")  # `d d` deletes a cell
    assert page.locator(".jp-Notebook .jp-CodeCell").count() >= len(CELLS)
    page.context.close()


def test_a_double_click_opens_the_explorer(open_it, notebook7: tuple[str, Path]) -> None:
    """In a tab of the browser, of its size."""
    lab.inspect(pythagoras, torch.randn(100, requires_grad=True)).save(
        notebook7[1] / "trig.lab.json"
    )
    opened = open_it("tree")
    with opened.page.context.expect_page() as popup:
        opened.page.locator(".jp-DirListing-item", has_text="trig.lab.json").dblclick()
    page = popup.value
    frame = page.frame_locator(".jp-MimeDocument iframe")
    frame.locator(f"{CODE} .lab-line", has_text="lab_sin").first.click()
    assert stages_in(frame) >= STAGES
    tab, shown = (each.bounding_box() for each in (page.locator(".jp-MimeDocument"),
                                                   frame.locator(".lab-explorer")))  # fmt: skip
    assert abs(shown["width"] - tab["width"]) < 4 and abs(shown["height"] - tab["height"]) < 4
    assert shown["height"] > 500
    assert opened.wrong == []


def test_an_output_shows_without_a_kernel_and_without_trust(open_it, notebook7) -> None:
    data = explorer_data(lab.inspect(pythagoras, torch.randn(100, requires_grad=True)))
    notebook_with(notebook7[1], "theirs.ipynb", data)
    opened = open_it("notebooks/theirs.ipynb")
    opened.page.locator(".jp-Dialog button", has_text="No Kernel").click()
    frame = opened.page.frame_locator(".jp-OutputArea-output iframe")
    frame.locator(f"{CODE} .lab-line", has_text="lab_sin").first.click()
    assert stages_in(frame) >= STAGES
    assert opened.count("text=the form without scripts") == 0
    assert opened.wrong == []
