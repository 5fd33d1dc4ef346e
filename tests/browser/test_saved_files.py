"""A real JupyterLab opens saved compilations and outputs, without a kernel and without trust."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch

import inductor_lab as lab
from inductor_lab.api.compilation import Compilation
from inductor_lab.compiler.base.options import Options
from inductor_lab.notebook.calls import Explorers
from inductor_lab.notebook.language import table
from inductor_lab.saved import saving
from inductor_lab.widgets import show
from inductor_lab.widgets.compressed import zipped
from inductor_lab.widgets.mime import MIME_TYPE, explorer_data, mime_data
from inductor_lab.widgets.model import document
from tests.browser.conftest import Opened

STAGES = {"source", "g0.captured", "guards", "g0.joint", "g0.forward.schedule", "g0.forward.code",
          "g0.backward.code", "time"}  # fmt: skip
THEMES = "@jupyterlab/apputils-extension/themes.jupyterlab-settings"
TRANSLATION = "@jupyterlab/translation-extension/plugin.jupyterlab-settings"
CODE = '.lab-pane[data-pane="g0.forward.code"]'

def pythagoras(x):
    one = torch.sin(x) ** 2
    return one + torch.cos(x) ** 2


@pytest.fixture(scope="module")
def compilation() -> Compilation:
    return lab.inspect(pythagoras, torch.randn(100, requires_grad=True))


@pytest.fixture
def open_lab(browser: Any, jupyterlab: tuple[str, Path]) -> Iterator[Callable[..., Opened]]:
    """Opens JupyterLab; `wrong` has the errors of the console, but not JupyterLab's own about its
    language servers, which are optional."""
    address, folder = jupyterlab
    contexts = []

    def open_it(path: str = "", dark: bool = False, locale: str = "en") -> Opened:
        theme = "JupyterLab Dark" if dark else "JupyterLab Light"
        for name, setting in ((THEMES, {"theme": theme}), (TRANSLATION, {"locale": locale})):
            settings = folder / "settings" / name
            settings.parent.mkdir(parents=True, exist_ok=True)
            settings.write_text(json.dumps(setting))
        context = browser.new_context(viewport={"width": 1500, "height": 1000})
        contexts.append(context)
        opened = Opened(context.new_page())
        opened.page.set_default_timeout(120_000)
        opened.page.on("console", lambda m: opened.wrong.append(f"{m.text} {m.location}")
                       if m.type == "error" and "/lsp/status" not in str(m.location) else None)
        opened.page.on("pageerror", lambda error: opened.wrong.append(str(error)))
        opened.page.on("request", lambda r: None if r.url.startswith((address, "data:", "blob:"))
                       else opened.wrong.append(f"asked the network for {r.url}"))
        opened.page.goto(f"{address}/lab{path}?reset")
        return opened

    yield open_it
    for context in contexts:
        context.close()


def stages_in(frame: Any) -> set[str]:
    buttons = frame.locator(".lab-rail [data-pane]")
    return set(buttons.evaluate_all("all => all.map(button => button.dataset.pane)"))


def double_click(opened: Opened, name: str) -> None:
    opened.page.locator(".jp-DirListing-item", has_text=name).dblclick()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_double_click_opens_the_explorer(open_lab, jupyterlab, compilation, dark):
    compilation.save(jupyterlab[1] / "trig.lab.json")
    opened = open_lab(dark=dark)
    double_click(opened, "trig.lab.json")
    frame = opened.page.frame_locator(".jp-MimeDocument iframe")
    line = frame.locator(f"{CODE} .lab-line", has_text="lab_sin").first
    line.click()
    assert stages_in(frame) >= STAGES
    explorer = frame.locator(".lab-explorer")
    assert explorer.get_attribute("data-theme") == ("dark" if dark else "light")
    assert "pythagoras" in frame.locator(".lab-header h1").inner_text()
    tab, shown = opened.page.locator(".jp-MimeDocument").bounding_box(), explorer.bounding_box()
    assert abs(shown["width"] - tab["width"]) < 4 and abs(shown["height"] - tab["height"]) < 4
    icon = 'svg[data-icon="inductor-lab:file"]'
    assert opened.count(f".jp-DirListing-item:has-text(\"trig.lab.json\") {icon}") == 1
    assert opened.count(f".lm-DockPanel-tabBar {icon}") == 1
    assert opened.wrong == []


def test_the_theme_of_an_open_explorer_follows(open_lab, jupyterlab, compilation):
    compilation.save(jupyterlab[1] / "trig.lab.json")
    opened = open_lab()
    double_click(opened, "trig.lab.json")
    frame = opened.page.frame_locator(".jp-MimeDocument iframe")
    frame.locator('.lab-explorer[data-theme="light"]').wait_for()
    opened.page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    frame.locator('.lab-explorer[data-theme="dark"]').wait_for()


@pytest.fixture(scope="module")
def unusable(jupyterlab, compilation) -> dict[str, str]:
    """Files that are no explorer, and what is said about them."""
    _, folder = jupyterlab
    text = compilation.save(folder / "half.lab.json").read_text()
    (folder / "half.lab.json").write_text(text[: len(text) // 2])
    (folder / "other.lab.json").write_text('{"cells": []}')
    (folder / "newer.lab.json").write_text('{"inductor_lab": 99}')
    saving.save(folder / "options.lab.json", Options())
    return {
        "half.lab.json": "This file is not a saved compilation of inductor_lab, or is incomplete",
        "other.lab.json": "This file is not a saved compilation of inductor_lab",
        "newer.lab.json": "This file was written by a newer version of inductor_lab",
        "options.lab.json": "This file contains a Options, not a Compilation",
    }


def test_a_file_that_cannot_be_shown_says_why(open_lab, unusable):
    opened = open_lab()
    for name, said in unusable.items():
        double_click(opened, name)
        alert = opened.page.locator(".jp-MimeDocument:visible [role=alert]", has_text=said)
        alert.wait_for()
        assert opened.count(".jp-MimeDocument iframe") == 0
    assert opened.wrong == []


def notebook_with(folder: Path, name: str, data: Any) -> None:
    """A notebook of somebody else, whose kernel is not installed here."""
    bundle = {MIME_TYPE: data, "text/html": "<b>the form without scripts</b>", "text/plain": "c"}
    cell = nbformat.v4.new_code_cell("c", outputs=[nbformat.v4.new_output("display_data", bundle)])
    kernel = {"kernelspec": {"name": "nowhere", "display_name": "nowhere", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=kernel), folder / name)


def without_kernel(opened: Opened) -> None:
    opened.page.locator(".jp-Dialog button", has_text="No Kernel").click()


def kernels(address: str) -> list[Any]:
    with urllib.request.urlopen(f"{address}/api/kernels") as answer:
        return json.load(answer)


def test_an_output_shows_without_a_kernel_and_without_trust(open_lab, jupyterlab, compilation):
    address, folder = jupyterlab
    notebook_with(folder, "theirs.ipynb", explorer_data(compilation))
    opened = open_lab("/tree/theirs.ipynb")
    without_kernel(opened)
    frame = opened.page.frame_locator(".jp-OutputArea-output iframe")
    frame.locator(f"{CODE} .lab-line", has_text="lab_sin").first.click()
    assert stages_in(frame) >= STAGES
    assert opened.count("text=the form without scripts") == 0
    assert kernels(address) == []
    assert opened.wrong == []


def doubled(x):
    return x * 2


def test_several_compilations_show_in_tabs(open_lab, jupyterlab, compilation, monkeypatch):
    """The output of `%%compile` with several functions, in a notebook of somebody else."""
    monkeypatch.setattr(show, "in_kernel", lambda: True)
    monkeypatch.setattr(show, "wants_view", lambda: False)
    several = Explorers((compilation, lab.inspect(doubled, torch.ones(8))))
    shown = several._repr_mimebundle_()
    assert shown is not None
    notebook_with(jupyterlab[1], "several.ipynb", shown[MIME_TYPE])
    opened = open_lab("/tree/several.ipynb")
    without_kernel(opened)
    frame = opened.page.frame_locator(".jp-OutputArea-output iframe")
    tabs = frame.locator(".lab-explorer-tabs [role=tab]")
    frame.locator(".lab-header h1:visible", has_text="doubled").wait_for()
    assert [text.partition("(")[0] for text in tabs.all_inner_texts()] == ["pythagoras", "doubled"]
    tabs.first.click()
    frame.locator(f"{CODE}:visible .lab-line", has_text="lab_sin").first.click()
    assert frame.locator(".lab-explorer:visible").count() == 1
    explorer = frame.locator(".lab-explorer:visible").bounding_box()
    box = opened.page.locator(".jp-OutputArea-output iframe").bounding_box()
    assert abs(explorer["y"] + explorer["height"] - box["y"] - box["height"]) < 4
    assert opened.wrong == []


def data_of(shown: Any) -> dict[str, Any]:
    return mime_data(zipped(shown))


def data_with(compilation: Compilation, *trees: Any) -> dict[str, Any]:
    """An output whose source pane has these elements."""
    shown: Any = document(compilation)
    tree = ["div", {}, *trees]
    shown["panes"]["source"]["views"] = [{"kind": "tree", "name": "text", "tree": tree}]
    return data_of(shown)


def test_nothing_in_an_output_is_run(open_lab, jupyterlab, compilation):
    """Handlers and addresses in a hostile output do nothing in the page or on the network."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        program = "parent.attacked = 1"
        attack = {"src": address, "onerror": program, "onclick": program,
                  "style": f"background: url({address})"}  # fmt: skip
        data = data_with(compilation, ["img", attack], ["p", attack, "Click here"])
        notebook_with(jupyterlab[1], "hostile.ipynb", data)
        opened = open_lab("/tree/hostile.ipynb")
        without_kernel(opened)
        frame = opened.page.frame_locator(".jp-OutputArea-output iframe")
        frame.locator("text=Click here").click()
        assert opened.page.evaluate("window.attacked") is None
        assert frame.locator("body").evaluate("() => window.origin") == "null"
        with pytest.raises(BlockingIOError):
            listening.accept()


@pytest.mark.parametrize(("damage", "said"), [
    ({"gzip": "no gzip"}, "This output is damaged"),
    ({"version": 99}, "This output is from a newer version of inductor_lab"),
    ({"format": "other"}, "This output is not an explorer of inductor_lab"),
])  # fmt: skip
def test_a_damaged_output_says_so(open_lab, jupyterlab, compilation, damage, said):
    notebook_with(jupyterlab[1], "damaged.ipynb", {**explorer_data(compilation), **damage})
    opened = open_lab("/tree/damaged.ipynb")
    without_kernel(opened)
    opened.page.locator(".jp-OutputArea-output [role=alert]", has_text=said).wait_for()


def test_jupyterlab_decides_the_language(open_lab, jupyterlab, compilation):
    """Of a file's explorer, and of what the extension says."""
    compilation.save(jupyterlab[1] / "trig.lab.json")
    old = {**explorer_data(compilation), "version": 1}
    notebook_with(jupyterlab[1], "old.ipynb", old)
    opened = open_lab("/tree/old.ipynb", locale="zh_CN")
    without_kernel(opened)
    said = table()["jupyterlab"]["Run its cell again."]
    opened.page.locator(".jp-OutputArea-output [role=alert]", has_text=said).wait_for()
    double_click(opened, "trig.lab.json")
    frame = opened.page.frame_locator(".jp-MimeDocument iframe")
    frame.locator('html[lang="zh-CN"] .lab-rail button', has_text="守卫").wait_for()


@pytest.mark.parametrize("made", [
    lambda compilation: data_of({"title": "something else"}),
    lambda compilation: data_with(compilation, ["script", {}, "parent.attacked = 1"]),
    lambda compilation: data_with(compilation, ["meta", {"http-equiv": "refresh"}]),
], ids=["another document", "a script", "an address to go to"])  # fmt: skip
def test_a_document_that_cannot_be_drawn_says_so(open_lab, jupyterlab, compilation, made):
    notebook_with(jupyterlab[1], "broken.ipynb", made(compilation))
    opened = open_lab("/tree/broken.ipynb")
    without_kernel(opened)
    frame = opened.page.frame_locator(".jp-OutputArea-output iframe")
    frame.locator("[role=alert]", has_text="This explorer is damaged").wait_for()
    assert opened.page.evaluate("window.attacked") is None


def test_another_site_cannot_ask_the_server(jupyterlab):
    request = urllib.request.Request(f"{jupyterlab[0]}/inductor-lab/explorer", data=b"{}")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request)
