"""A real JupyterLab, a real kernel, and a person who runs two cells."""

from __future__ import annotations

import contextlib
import re
import time

import nbformat
import pytest

from tests.browser.conftest import write_notebook

CELLS = (
    "import torch\n%load_ext inductor_lab",
    "%%compile\n"
    "def pythagoras(x):\n"
    "    one = torch.sin(x) ** 2\n"
    "    return one + torch.cos(x) ** 2\n"
    "\n"
    "pythagoras(torch.randn(100))",
)
CODE_PANE = "g0.forward.code"
SOURCE, CODE = '.lab-pane[data-pane="source"]', f'.lab-pane[data-pane="{CODE_PANE}"]'
SCHEDULE = '.lab-pane[data-pane="g0.forward.schedule"]'


@pytest.fixture(scope="module")
def notebook(browser, jupyterlab):
    """The page with both cells run, and the seconds until the explorer was there."""
    address, folder = jupyterlab
    write_notebook(CELLS, folder / "two.ipynb")
    context = browser.new_context(viewport={"width": 1500, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(180_000)
    page.goto(f"{address}/lab/tree/two.ipynb")
    page.click(".jp-Cell >> nth=0")
    page.wait_for_selector('.jp-NotebookPanel-toolbar [data-status="idle"]', state="attached")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector(".jp-Cell:nth-child(1) .jp-InputPrompt:has-text('[1]')")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector(f"{CODE} .lab-line")
    yield page
    context.close()


def test_two_cells_draw_the_explorer(notebook):
    assert "pythagoras" in notebook.inner_text(".lab-header h1")
    assert notebook.locator(f"{SCHEDULE} .lab-node").count() >= 3
    assert "Error displaying widget" not in notebook.inner_text(".jp-Notebook")


def test_hover_lights_up_what_became_of_a_line(notebook):
    notebook.hover(f"{SOURCE} .lab-line >> text=one = torch.sin")
    lit = notebook.locator(f"{CODE} .lab-line.lit code").all_inner_texts()
    assert any("lab_sin" in text for text in lit) and not any("lab_cos" in text for text in lit)


def test_keys_stay_in_the_explorer(notebook):
    """`d d` deletes a cell in JupyterLab; `[`, `]` and `d` are keys of the explorer."""
    notebook.focus(f"{SOURCE} .lab-text")
    for _ in range(3):
        notebook.keyboard.press("d")
    assert notebook.locator(".jp-Notebook .jp-CodeCell").count() >= len(CELLS)


def test_what_if_asks_the_kernel(notebook):
    notebook.wait_for_selector(".lab-explorer.live")
    notebook.click(f"{SCHEDULE} .lab-tabs >> text=decisions")
    notebook.click(f"{SCHEDULE} .lab-pair >> text=forbid >> nth=0")
    notebook.wait_for_selector(".lab-verdict:has-text('kernels')")
    said = notebook.inner_text(".lab-verdict")
    assert re.match(r"1 → 2 kernels", said)
    assert notebook.locator('.lab-pane[data-pane="whatif"] .lab-line.added').count() > 3
    notebook.click(".lab-chip")
    notebook.wait_for_selector('.lab-rail [data-pane="whatif"]', state="detached")
    assert notebook.inner_text(".lab-verdict") == ""


def test_lower_panes_are_made_when_asked_for(notebook):
    notebook.select_option(".lab-whatif select", label="assembly of the C++ kernels")
    notebook.wait_for_selector('.lab-rail [data-pane="g0.forward.assembly"]')
    assert notebook.locator('.lab-pane[data-pane="g0.forward.assembly"] .lab-line').count() > 0
    notebook.click(f'.lab-rail [data-pane="{CODE_PANE}"]')


def test_the_notebook_keeps_the_explorer_without_a_kernel(notebook, jupyterlab, browser):
    """Saved and opened with scripts but without that kernel, everything but "what if" is there."""
    _, folder = jupyterlab
    notebook.keyboard.press("Escape")
    notebook.click(".jp-Cell >> nth=0")
    notebook.keyboard.press("Control+s")
    for _ in range(100):
        outputs = []
        with contextlib.suppress(nbformat.reader.NotJSONError):  # it is being written
            saved = nbformat.read(folder / "two.ipynb", as_version=4)
            outputs = saved.cells[1].get("outputs")
        if outputs:
            break
        time.sleep(0.1)
    assert outputs, "the notebook was not saved"
    html = next(o["data"]["text/html"] for o in outputs if "text/html" in o.get("data", {}))
    page = browser.new_context().new_page()
    page.set_content(f"<!doctype html><meta charset='utf-8'>{html}")
    page.hover(f"{SOURCE} .lab-line >> text=one = torch.sin")
    assert page.locator(f"{CODE} .lab-line.lit").count() >= 1
    assert page.locator(".lab-whatif").count() == 0
    page.context.close()
