"""A benchmark in a real JupyterLab: the bar moves, Ctrl-C keeps what there is, the result stays."""

from __future__ import annotations

import contextlib

import pytest

from tests.browser.conftest import opened_notebook

playwright = pytest.importorskip("playwright.sync_api")

CELLS = (
    "import torch, inductor_lab as lab\n"
    "def wave(x):\n"
    "    return ((x + 1) * 2).sin()\n"
    "x = torch.randn(10_000)",
    'lab.bench(wave, x, against=["eager"], cold=False, seconds=15)',
    'kept = lab.bench(wave, x, against=["eager"], cold=False, seconds=600)\n'
    "print(kept.timings.rounds > 0, kept.complete)",
)
BAR = '.lab-bench [role="progressbar"]'


@pytest.fixture(scope="module")
def notebook(browser, jupyterlab):
    page = opened_notebook(browser, jupyterlab, CELLS, "bench.ipynb")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=jupyterlab[0])
    yield page
    page.context.close()


def test_a_bar_while_it_runs_and_the_result_afterwards(notebook):
    seen: list[int] = []
    notebook.keyboard.press("Shift+Enter")
    notebook.wait_for_selector(BAR)
    while not seen or seen[-1] < 100:
        bar = notebook.query_selector(BAR)
        if bar is None:
            break
        value = int(bar.get_attribute("aria-valuenow") or 0)
        seen += [value] if value not in seen else []
        notebook.wait_for_timeout(50)
    assert len(seen) >= 2 and seen == sorted(seen)
    notebook.wait_for_selector(".jp-Cell:nth-child(2) .jp-InputPrompt:has-text('[2]')")
    notebook.wait_for_selector(".jp-Cell:nth-child(2) .lab-chart")
    text = notebook.inner_text(".jp-Cell:nth-child(2) .jp-OutputArea")
    assert "measured in" in text and "inductor_lab" in text and " thread" in text
    notebook.wait_for_selector(f".jp-Cell:nth-child(2) {BAR}", state="detached")


def test_the_table_copies_as_markdown(notebook):
    notebook.click(".jp-Cell:nth-child(2) .lab-bench button")
    copied = notebook.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("**wave**") and "| inductor_lab |" in copied


def test_interrupting_the_kernel_keeps_what_was_measured(notebook):
    notebook.click(".jp-Cell:nth-child(3) .jp-InputArea-editor")
    notebook.keyboard.press("Control+Enter")
    notebook.wait_for_selector(".jp-Cell:nth-child(3) .lab-running:has-text('timing, round')")
    printed = ".jp-Cell:nth-child(3) .jp-OutputArea-output:has-text('True False')"
    for _ in range(6):  # Python drops an interrupt that comes within a callback or a finalizer
        notebook.keyboard.press("Escape")
        notebook.keyboard.press("i")
        notebook.keyboard.press("i")
        with contextlib.suppress(playwright.TimeoutError):
            notebook.wait_for_selector(printed, timeout=30_000)
            break
    notebook.wait_for_selector(printed)
    assert "stopped after" in notebook.inner_text(".jp-Cell:nth-child(3) .jp-OutputArea")
