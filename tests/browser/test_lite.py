"""The site that runs in a browser: ten files open and three labs are solved, without a network."""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from deploy.lite.gallery import GALLERY
from inductor_lab.course.build import sources

ROOT = Path(__file__).parents[2]
FILES = [f"{entry.name}{end}.lab.json" for entry in GALLERY for end in ("", "-stock")]
LABS = {"gradients": 14, "fusion": 12, "memory": 16}
"""The labs of the site, and their points."""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Path:
    """The site as `make lite` builds it; skipped where that was never run or has no network."""
    if not (ROOT / "build" / "lite" / "environment" / "installed").exists():
        pytest.skip("to run it: make lite")
    into = ROOT / "build" / "lite-test"
    command = [sys.executable, "-m", "deploy.lite.build", "--into", str(into)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if "deploy.lite.pyodide.Missing" in done.stderr:
        pytest.skip(f"the site cannot be built here: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return into


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def page(browser: Any, site: Path) -> Iterator[Any]:
    """JupyterLite after its first load, with a kernel that has run a cell; then without a network:
    the server is gone, and the browser is offline."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.asked, page.wrong = [], []  # type: ignore[attr-defined]
    context.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    with served(site) as address:
        page.base = address
        page.goto(f"{address}/lab/index.html?path=en/start.ipynb")
        run_all(page)
        page.wait_for_function(
            "async n => (await (await caches.open('precache')).keys()).length >= n",
            arg=len([p for p in site.rglob("*") if p.is_file()]) - 1,
        )
    context.set_offline(True)
    yield page
    context.close()


def run_all(page: Any) -> Any:
    """Run the notebook that is open; the prompt of its last code cell, which has a number then."""
    notebook = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    notebook.locator(".jp-CodeCell").first.wait_for()
    page.wait_for_function(IS_READY)
    page.evaluate("() => void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function(HAS_RUN)
    return notebook


IS_READY = """async () => {
  const context = window.jupyterapp.shell.currentWidget.sessionContext;
  await context?.ready;
  return Boolean(await context?.session?.kernel?.info);
}"""
HAS_RUN = """() => {
  const cells = window.jupyterapp.shell.currentWidget.content.widgets;
  const code = cells.filter((cell) => cell.model.type === "code");
  return code.at(-1).model.executionCount > 0;
}"""


def open_file(page: Any, path: str) -> None:
    page.evaluate("path => void window.jupyterapp.commands.execute('docmanager:open', {path})",
                  path)  # fmt: skip
    page.wait_for_function(
        "path => window.jupyterapp.shell.currentWidget?.context?.path === path", arg=path
    )


def test_the_gallery_opens_without_a_network(page) -> None:
    """Twelve files; the last two are a training step of GPT-2."""
    open_file(page, "en/gallery.ipynb")
    notebook = run_all(page)
    loaded = notebook.locator(".jp-CodeCell:has(.lab-rail)")
    assert len(FILES) >= 10
    loaded.nth(len(FILES) - 1).wait_for(state="attached")
    for name, cell in zip(FILES, loaded.all(), strict=True):
        assert cell.locator(".lab-rail [data-pane]").count() > 5, name
    assert page.wrong == []


def test_a_double_click_opens_a_saved_compilation_without_a_network(page) -> None:
    """A kernel of the page converts the file, because there is no server; one of GPT-2 is large."""
    page.evaluate("() => window.jupyterapp.commands.execute('filebrowser:go-to-path', "
                  "{path: 'gallery'})")  # fmt: skip
    for nth, name in enumerate(("mlp.lab.json", "gpt2-stock.lab.json")):
        page.locator(".jp-DirListing-item", has_text=name).first.dblclick()
        frame = page.locator(".jp-MimeDocument").nth(nth).frame_locator("iframe")
        frame.locator(".lab-header h1").wait_for()
        assert frame.locator(".lab-rail [data-pane]").count() > 5, name
    assert page.wrong == []


def solved(name: str) -> list[str]:
    """The cells that define the solutions of a lab, in order."""
    labs = (s for s in sources(ROOT / "notebooks") if s.kind == "lab")
    source = next(s for s in labs if s.name == name)
    return [block.text for block in source.blocks if block.kind == "solution"]


FILL = """solutions => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  const left = [...solutions];
  for (const cell of notebook.widgets) {
    const text = cell.model.sharedModel.getSource();
    const stub = text.includes("raise NotImplementedError") || text === "predicted = {}";
    if (cell.model.type === "code" && stub) cell.model.sharedModel.setSource(left.shift());
  }
  return left.length;
}"""


@pytest.mark.parametrize("name, points", LABS.items(), ids=LABS)
def test_a_lab_is_solved_without_a_network(page, site: Path, name: str, points: int) -> None:
    (path,) = (site / "files" / "en").glob(f"lab_*_{name}.ipynb")
    open_file(page, f"en/{path.name}")
    page.wait_for_function(IS_READY)
    assert page.evaluate(FILL, solved(name)) == 0
    board = run_all(page).locator(".jp-OutputArea-output").last
    assert f"{points} of {points} points" in board.inner_text()
    assert page.wrong == []


def test_nothing_is_asked_of_another_site(page) -> None:
    outside = [url for url in page.asked if not url.startswith((page.base, "data:", "blob:"))]
    assert len(page.asked) > 20 and outside == []


def test_capture_is_shown_with_saved_outputs(site: Path) -> None:
    for language in ("en", "zh"):
        text = (site / "files" / language / "tutorial_01_capture.ipynb").read_text()
        cells = json.loads(text)["cells"]
        assert sum(bool(cell.get("outputs")) for cell in cells) > 10
        assert "lab.load" in cells[-1]["source"] and not cells[-1]["outputs"]
