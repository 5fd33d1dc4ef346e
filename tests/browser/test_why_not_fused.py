"""Why stock did not fuse two nodes, and which parts are CUDA graphs, in the panes of a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab

SCHEDULE, TIME = (f'.lab-pane[data-pane="{name}"]' for name in ("g0.forward.schedule", "time"))
CUT = """pane => [...pane.querySelectorAll("td, th, .lab-note")]
  .filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)"""
"""The texts that are wider than their cells."""


def attend(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = torch.relu(x @ w)
    return (torch.softmax(h @ w, -1) * h).cumsum(0)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    c = lab.inspect(attend, torch.randn(64, 32), torch.randn(32, 32), compiler="stock")
    return c.report(tmp_path_factory.mktemp("stock") / "stock.html")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [973, 1440])
def test_a_row_says_what_a_rule_of_stock_means(
    stock: Path, open_page: Any, dark: bool, width: int
) -> None:
    opened = open_page(stock, dark=dark, width=width)
    page = opened.page
    page.locator('.lab-rail [data-pane="g0.forward.schedule"]').click()
    pane = page.locator(SCHEDULE)
    pane.locator("[role=tab]", has_text="why not fused").click()
    assert "library_call" in pane.locator("tbody tr").first.inner_text()
    pane.locator(".lab-open").first.click()
    said = pane.locator(".lab-more").first.inner_text()
    assert "means" in said and "Its code is not generated" in said and "to fuse" in said
    assert pane.evaluate(CUT) == []
    pane.locator("tbody tr").first.click()
    assert page.locator('.lab-pane[data-pane="source"] .lab-line.lit').count() >= 1
    assert opened.wrong == []


def test_the_time_pane_says_which_parts_are_cuda_graphs(tmp_path: Path, open_page: Any) -> None:
    pytest.importorskip("triton")
    w = torch.randn(32, 32)
    c = lab.inspect(attend, torch.randn(64, 32), w, target="cuda:90")
    opened = open_page(c.report(tmp_path / "gpu.html"))
    opened.page.locator('.lab-rail [data-pane="time"]').click()
    pane = opened.page.locator(TIME)
    pane.locator("[role=tab]", has_text="CUDA graphs").click()
    said = pane.locator("tbody tr").inner_text()
    assert "not replayed" in said and 'mode="reduce-overhead" requests CUDA graphs' in said
    assert opened.wrong == []
