"""The results of `lab.diff` and `lab.advise` as a cell shows them, in light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.widgets.page import page
from tests.widgets.test_results_of_diff_and_advice import ADVICE

WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
COLOURS = """cell => [getComputedStyle(cell).color, getComputedStyle(cell).backgroundColor]"""
OLD = {False: "rgb(255, 235, 233)", True: "rgb(59, 22, 24)"}
TEXT = {False: "rgb(27, 31, 36)", True: "rgb(230, 237, 243)"}


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.sin(), -1)


def doubled(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.sin() * 2, -1)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    x = torch.randn(8, 8)
    difference = lab.diff(lab.inspect(softmax, x), lab.inspect(doubled, x))
    found = {}
    for name, value in {"diff": difference, "advice": ADVICE}.items():
        found[name] = tmp_path_factory.mktemp("results") / f"{name}.html"
        found[name].write_text(page(name, value._repr_html_() or ""), encoding="utf-8")
    return found


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [973, 1440])
def test_old_and_new_are_side_by_side(
    results: dict[str, Path], open_page: Any, dark: bool, width: int
) -> None:
    opened = open_page(results["diff"], dark=dark, width=width, script=False)
    removed = opened.page.locator("td.lab-old").first
    added = opened.page.locator("td.lab-new").first
    assert removed.evaluate(COLOURS) == [TEXT[dark], OLD[dark]]
    left, right = removed.bounding_box(), added.bounding_box()
    assert left["y"] == right["y"] and left["x"] + left["width"] <= right["x"] + 1
    assert "softmax" in removed.inner_text() and "mul" in added.inner_text()
    assert opened.page.evaluate(WIDE) == 0 and opened.wrong == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [973, 1440])
def test_advice_opens_at_the_best_edit(
    results: dict[str, Path], open_page: Any, dark: bool, width: int
) -> None:
    opened = open_page(results["advice"], dark=dark, width=width, script=False)
    diffs = opened.page.locator(".lab-diff")
    assert diffs.nth(0).is_visible() and not diffs.nth(1).is_visible()
    assert diffs.nth(0).locator(".lab-old").evaluate(COLOURS) == [TEXT[dark], OLD[dark]]
    opened.page.locator("summary").nth(1).click()
    assert diffs.nth(1).is_visible()
    assert opened.page.evaluate(WIDE) == 0 and opened.wrong == []
