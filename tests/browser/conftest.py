"""Headless Chromium, as a person would open a report: from a file, with the network shut off."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

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
