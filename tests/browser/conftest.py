"""Headless Chromium, as a user would open a report: from a file, with the network shut off."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from deploy import labextension

ROOT = Path(__file__).parents[2]
HOW = "to run it: pip install playwright, and Debian's package chromium (or set CHROMIUM=path)"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason=f"no playwright; {HOW}")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip(f"no Chromium; {HOW}")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


@dataclass
class Opened:
    """A page, and everything that went wrong in it."""

    page: Any
    wrong: list[str] = field(default_factory=list)

    def texts(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_inner_texts()

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()

    def search(self, text: str) -> None:
        """Type into the search field, and wait until all panes were looked through."""
        self.page.locator("input[type=search]").fill(text)
        self.page.wait_for_selector(".lab-found-count:not([aria-busy])", state="attached")


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def open_it(path: Path, dark: bool = False, width: int = 1400, script: bool = True) -> Opened:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            offline=True,
            java_script_enabled=script,
        )
        contexts.append(context)
        opened = Opened(context.new_page())
        page, wrong = opened.page, opened.wrong
        page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else
                wrong.append(f"asked the network for {r.url}"))
        page.goto(path.resolve().as_uri())
        return opened

    yield open_it
    for context in contexts:
        context.close()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")  # each module has its own, so that no tab of another is restored
def jupyterlab(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """The address of a server without a token, on this machine only, and its folder."""
    pytest.importorskip("jupyterlab", reason="no JupyterLab; to run it: pip install jupyterlab")
    with served_by("jupyterlab", tmp_path_factory.mktemp("notebooks")) as found:
        yield found


@pytest.fixture(scope="module")
def notebook7(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """The same of Jupyter Notebook 7."""
    pytest.importorskip("notebook", "7", reason="no Notebook 7; to run it: pip install notebook")
    with served_by("notebook", tmp_path_factory.mktemp("notebooks")) as found:
        yield found


@contextlib.contextmanager
def served_by(program: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """A server that shows the notebooks of a folder, with our extension, while the block runs."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    options = {
        "--ServerApp.port": port, "--ServerApp.ip": "127.0.0.1", "--ServerApp.root_dir": folder,
        "--IdentityProvider.token": "", "--ServerApp.open_browser": False,
        "--ServerApp.allow_root": True, "--LabApp.news_url": "",
        "--LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
    }
    settings = folder / "settings"
    labextension.install(settings / "environment")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "JUPYTER_CONFIG_DIR": str(settings),
           "JUPYTER_PATH": str(settings / "environment" / "share" / "jupyter"),
           "JUPYTER_CONFIG_PATH": str(settings / "environment" / "etc" / "jupyter"),
           "JUPYTERLAB_SETTINGS_DIR": str(settings), "JUPYTERLAB_WORKSPACES_DIR": str(settings)}
    server = subprocess.Popen(
        [sys.executable, "-m", program, *(f"{k}={v}" for k, v in options.items())],
        cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(f"{address}/api", server)
        yield address, folder
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:  # an extension of the server that is installed here
            server.kill()
            server.wait()


def wait_for(url: str, server: subprocess.Popen) -> None:
    for _ in range(240):
        assert server.poll() is None, "the server did not start"
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.25)
    pytest.fail("the server did not answer within a minute")


def opened_notebook(
    browser: Any, jupyterlab: tuple[str, Path], cells: Sequence[str], name: str,
    place: str = "lab/tree",
) -> Any:  # fmt: skip
    """The page of a new notebook in JupyterLab, whose first cell has run; the second is active."""
    address, folder = jupyterlab
    write_notebook(cells, folder / name)
    page = browser.new_context(viewport={"width": 1500, "height": 1000}).new_page()
    page.set_default_timeout(180_000)
    page.add_locator_handler(page.locator(".jp-Dialog"), accepted)
    page.goto(f"{address}/{place}/{name}")
    page.click(".jp-Cell >> nth=0")
    page.wait_for_selector('.jp-NotebookPanel-toolbar [data-status="idle"]', state="attached")
    prompt = ".jp-Cell:nth-child(1) .jp-InputPrompt"
    for _ in range(3):  # on a busy machine a key may come before the cell has the focus
        page.keyboard.press("Shift+Enter")
        with contextlib.suppress(Exception):
            page.wait_for_selector(f"{prompt}:not(:has-text('[ ]'))", timeout=20_000)
            break
        page.click(".jp-Cell >> nth=0")
    page.wait_for_selector(f"{prompt}:has-text('[1]')")
    page.remove_locator_handler(page.locator(".jp-Dialog"))
    return page


def accepted(dialog: Any) -> None:
    """JupyterLab asks for a kernel, for instance, if the server is slow on a busy machine."""
    print(dialog.inner_text())
    dialog.locator(".jp-mod-accept").click()


def write_notebook(cells: Sequence[str], path: Path) -> None:
    """A notebook of code cells for the Python of these tests."""
    import nbformat  # seconds, in each process that collects these tests or those of stock/

    made = [nbformat.v4.new_code_cell(cell) for cell in cells]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=made, metadata=kernel), path)
