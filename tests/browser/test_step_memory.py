"""The memory of one step, measured by a button of a live explorer, of both compilers.

A kernel's answer, computed beforehand, comes through the channel of a page without a notebook.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.widgets.memory_pane import memory_pane
from inductor_lab.widgets.model import linked_document
from inductor_lab.widgets.page import json_for_html, page, style
from inductor_lab.widgets.show import explorer_html

CHANNEL = """<script>
const line = {{ ask: (request) => {{ line.asked = request; return Promise.resolve({answer}); }} }};
globalThis[Symbol.for("inductor_lab.channels")] = new Map([["test", line]]);
globalThis.line = line;
</script>"""
PANE = '.lab-pane[data-pane="step_memory"]'
OUTSIDE = """pane => {
  const body = pane.querySelector(".lab-body").getBoundingClientRect();
  const found = pane.querySelectorAll("svg text, th, td, .lab-note");
  return [...found].filter((e) => e.getBoundingClientRect().right > body.right + 1)
    .map((e) => e.textContent);
}"""
"""The texts that end outside of the pane."""


def attend(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = torch.relu(x @ w)
    return (torch.softmax(h @ w, -1) * h).sum()


@pytest.fixture(scope="module", params=["inductor_lab", "stock"])
def live(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    x, w = torch.randn(256, 128), torch.randn(128, 128, requires_grad=True)
    c = lab.inspect(attend, x, w, compiler=request.param)
    shown, links = linked_document(c)
    answer = json_for_html({"panes": {"step_memory": memory_pane(c, links)}})
    body = CHANNEL.format(answer=answer) + explorer_html(shown, json.dumps("test"))
    path = tmp_path_factory.mktemp("live") / f"{request.param}.html"
    path.write_text(page("live", body, style()), encoding="utf-8")
    return request.param, path


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [973, 1440])
def test_a_button_measures_the_memory_of_a_step(
    live: tuple[str, Path], open_page: Any, dark: bool, width: int
) -> None:
    compiler, path = live
    opened = open_page(path, dark=dark, width=width)
    shown = opened.page
    bar = shown.locator(".lab-whatif")
    assert bar.locator("select").count() == (compiler == "inductor_lab"), "stock has no changes"
    shown.locator('.lab-rail [data-pane="step_memory"]').click()
    assert "cannot run the call" in shown.locator(f"{PANE} .lab-empty").inner_text()
    bar.locator("button", has_text="step memory").click()
    pane = shown.locator(PANE)
    pane.locator("svg.lab-chart").wait_for()
    assert shown.evaluate("line.asked.show") == "memory"
    assert pane.evaluate(OUTSIDE) == []
    curve = "getComputedStyle(document.querySelector('.lab-chart .s0')).stroke"
    assert shown.evaluate(curve) == ("rgb(157, 167, 179)" if dark else "rgb(87, 96, 106)")
    for who in ("eager", "stock", "inductor_lab"):
        pane.locator("[role=tab]", has_text=who).click()
        assert pane.locator("tbody tr").count() > 2
    assert shown.locator(".lab-rail [data-pane=step_memory]").count() == 1
    assert opened.wrong == []
