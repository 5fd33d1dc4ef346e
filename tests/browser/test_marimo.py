"""A marimo program in its run mode, as a reader of an app sees it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import ROOT, free_port, wait_for

pytest.importorskip("marimo", reason="no marimo; to run it: pip install marimo")
PROGRAM = ROOT / "tests" / "notebooks" / "reactive.py"
SOURCE = '.lab-pane[data-pane="source"]'


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    program = shutil.copy(PROGRAM, tmp_path_factory.mktemp("marimo"))  # it writes next to it
    paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "marimo", "run", program, "--headless", "--no-token",
         "--host", "127.0.0.1", "--port", str(port)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    context = browser.new_context(viewport={"width": 1500, "height": 1000})
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(f"{address}/health", server)
        opened = context.new_page()
        opened.set_default_timeout(120_000)
        opened.goto(address)
        opened.locator(".lab-explorer").nth(1).locator(f"{SOURCE} .lab-line").first.wait_for()
        yield opened
    finally:
        context.close()
        server.terminate()
        server.wait(60)


def test_a_click_in_the_explorer_runs_the_cells_that_use_it(page: Any) -> None:
    explorer = page.locator(".lab-explorer").nth(1)
    line = explorer.locator(f"{SOURCE} .lab-line", has_text="one = torch.sin")
    number = line.locator(".lab-no").inner_text()
    line.click()
    page.get_by_text(f"selected {{'stage': 'source', 'line': {number}}} in source").wait_for()
    lit = explorer.locator('.lab-pane[data-pane="g0.forward.code"] .lab-line.lit')
    assert any("lab_sin" in text for text in lit.all_inner_texts())


def test_a_control_of_the_program_moves_the_explorer(page: Any) -> None:
    page.locator("marimo-dropdown select").select_option("g0.forward.loops")
    explorer = page.locator(".lab-explorer").nth(1)
    explorer.locator('.lab-pane.focused[data-pane="g0.forward.loops"]').wait_for()


def test_what_if_recompiles_in_marimo(page: Any) -> None:
    explorer = page.locator(".lab-explorer").nth(1)
    explorer.locator('.lab-rail [data-pane="g0.forward.schedule"]').click()
    pane = explorer.locator('.lab-pane[data-pane="g0.forward.schedule"]').first
    pane.locator(".lab-tabs >> text=decisions").click()
    pane.locator(".lab-pair >> text=forbid >> nth=0").click()
    explorer.locator(".lab-verdict:has-text('1 → 2 kernels')").wait_for()


def test_rows_and_statements_react(page: Any) -> None:
    row = page.locator(".lab-bench tr[data-select]", has_text="inductor_lab").last
    row.click()
    page.get_by_text("selected row {'contender': 'inductor_lab'}").wait_for()
    steps = page.locator(".lab-bench:has(.lab-code)")
    steps.locator("text=Next line").click()
    steps.locator("[aria-current=step]").wait_for()
