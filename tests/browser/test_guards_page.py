"""What the page predicts is what TorchDynamo does."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.debug.recompiles.call_again import call_with_edits

FACTOR = 3
VERDICT = ".lab-guard-verdict b"


def scaled(scale, flag):
    def f(x, n, mode="plain"):
        y = torch.sin(x) * scale + FACTOR
        if x.shape[0] > 3:
            y = y + 1
        return y * n if flag and mode == "plain" else y

    return f


def inspected(dynamic):
    args = torch.randn(6, 4), 5
    return lab.inspect(scaled(2.0, True), *args, options={"dynamic": dynamic})


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guards")
    return {d: inspected(d).report(folder / f"{d}.html") for d in (None, True)}


def edit(page, name, fact, value):
    field = page.locator(f'[data-input="{name}"] [data-fact="{fact}"]')
    if fact == "dtype":
        field.select_option(value)
    elif isinstance(value, bool):
        field.set_checked(value)
    else:
        field.fill(", ".join(map(str, value)) if isinstance(value, list) else str(value))


EDITS = [
    ("x", "size", [6, 4]),
    ("x", "size", [50, 4]),
    ("x", "size", [2, 4]),
    ("x", "size", [6, 4, 1]),
    ("x", "dtype", "float64"),
    ("x", "requires_grad", True),
    ("n", "value", 7),
    ("scale", "value", 2.5),
    ("flag", "value", False),
    ("mode", "value", "other"),
    ("FACTOR", "value", 4),
]


@pytest.mark.parametrize("dynamic", [None, True])
def test_predictions_equal_the_result_of_torchdynamo(open_page, reports, dynamic):
    opened = open_page(reports[dynamic])
    page = opened.page
    page.click('.lab-rail [data-pane="guards"]')
    said = {}
    for name, fact, value in EDITS:
        edit(page, name, fact, value)
        said[name, fact, str(value)] = page.inner_text(VERDICT)
        page.click("text=reset")
        assert page.inner_text(VERDICT) == "hit"
    for name, fact, value in EDITS:
        source = f"G['{name}']" if name == "FACTOR" else f"L['{name}']"
        hit = call_with_edits(inspected(dynamic), {source: {fact: value}}).hit
        assert said[name, fact, str(value)] == ("hit" if hit else "recompile"), (name, fact, value)
    assert len(set(said.values())) == 2 and opened.wrong == []


def test_the_first_guard_that_fails_is_red_and_names_the_line(open_page, reports):
    page = open_page(reports[True]).page
    page.click('.lab-rail [data-pane="guards"]')
    edit(page, "x", "size", [2, 4])
    assert page.locator("tr.lab-check.first").count() == 1
    assert "if x.shape[0] > 3" in page.inner_text(".lab-guard-verdict")
    page.click(".lab-guard-verdict button")
    page.mouse.move(5, 5)
    assert page.locator("tr.lab-check.lit").count() >= 1
    page.fill('[data-input="x"] [data-fact="size"]', "6, nonsense")
    assert page.get_attribute('[data-input="x"] [data-fact="size"]', "aria-invalid") == "true"


def test_without_python_the_run_button_is_missing(open_page, reports):
    page = open_page(reports[None]).page
    page.click('.lab-rail [data-pane="guards"]')
    assert not page.locator(".lab-run-it").is_visible()
