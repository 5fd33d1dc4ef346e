from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import torch

import inductor_lab as lab
from inductor_lab.api.compilation import Compilation

FORWARD, BACKWARD = (
    f'.lab-pane[data-pane="g0.{part}.graph"]' for part in ("forward", "backward")
)
SOURCE, CODE = '.lab-pane[data-pane="source"]', '.lab-pane[data-pane="g0.forward.code"]'
HOSTILE = "<img src=x onerror=alert(1)>"


def pythagoras(x):
    one = torch.sin(x) ** 2
    return one + torch.cos(x) ** 2


@pytest.fixture(scope="module")
def compilation() -> Compilation:
    return lab.inspect(pythagoras, torch.randn(100, requires_grad=True))


@pytest.fixture(scope="module")
def report(compilation, tmp_path_factory) -> Path:
    return compilation.report(tmp_path_factory.mktemp("report") / "trig.html")


def test_forward_and_backward_are_drawn_without_errors(open_page, report, compilation):
    opened = open_page(report)
    for pane, part in ((FORWARD, compilation.graphs[0].forward),
                       (BACKWARD, compilation.graphs[0].backward)):
        assert opened.count(f"{pane} svg .lab-node") == len(part.graph.nodes)
        arrows = opened.page.locator(f"{pane} svg .lab-arrow")
        assert arrows.count() >= len(part.graph.nodes) - 2
        box = opened.page.locator(f"{pane} svg .lab-node").first.bounding_box()
        assert box["width"] > 20 and box["height"] > 10
    assert opened.wrong == []


def test_hovering_a_line_highlights_its_code(open_page, report):
    opened = open_page(report)
    opened.page.hover(f"{SOURCE} .lab-line >> text=one = torch.sin")
    lit = opened.texts(f"{CODE} .lab-line.lit code")
    assert any("lab_sin" in text for text in lit)
    assert not any("lab_cos" in text for text in lit)
    assert opened.count(f"{FORWARD} .lab-node.lit") == 2
    assert opened.count(f"{BACKWARD} .lab-node.lit") >= 1
    opened.page.mouse.move(5, 5)
    assert opened.count(".lit") == 0


def test_hovering_code_or_a_box_highlights_the_source(open_page, report):
    opened = open_page(report)
    opened.page.hover(f"{CODE} .lab-line >> text=lab_cos")
    assert opened.texts(f"{SOURCE} .lab-line.lit code") == ["    return one + torch.cos(x) ** 2"]
    opened.page.hover(f'{FORWARD} .lab-node[data-name="sin"]')
    assert opened.texts(f"{SOURCE} .lab-line.lit code") == ["    one = torch.sin(x) ** 2"]
    trail = opened.texts(".lab-trail")[0]
    assert "sin (captured)" in trail and "cpp_fused" in trail


def test_a_click_pins_and_escape_clears(open_page, report):
    opened = open_page(report)
    opened.page.click(f"{CODE} .lab-line >> text=lab_cos")
    opened.page.mouse.move(5, 5)
    assert opened.count(f"{SOURCE} .lab-line.lit") == 1
    opened.page.keyboard.press("Escape")
    assert opened.count(".lit") == 0


def test_the_keyboard_is_enough(open_page, report):
    opened = open_page(report)
    page = opened.page
    page.focus(f"{SOURCE} .lab-text")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert opened.count(f"{CODE} .lab-line.lit") >= 1
    page.keyboard.press("]")
    assert opened.count('.lab-pane[data-pane="g0.captured"]') == 1
    page.keyboard.press("[")
    assert opened.count(SOURCE) == 1
    page.keyboard.press("/")
    page.keyboard.type("lab_sin")
    page.wait_for_selector(".lab-found-count:not([aria-busy])", state="attached")
    assert opened.count(f"{CODE} .lab-line.found") == 1
    page.keyboard.press("Escape")
    assert opened.count(".found") == 0
    page.keyboard.press("?")
    assert opened.count(".lab-help") == 1


def test_every_pane_and_view_can_be_drawn(open_page, report):
    opened = open_page(report)
    page = opened.page
    for button in page.locator(".lab-rail button").all():
        button.click()
        focused = page.locator(".lab-pane.focused")
        for tab in range(focused.locator(".lab-tabs button").count()):
            focused.locator(".lab-tabs button").nth(tab).click()
            body = focused.locator(".lab-body")
            assert body.bounding_box()["height"] > 40
            assert body.text_content().strip() or body.locator("svg .lab-node").count()
    assert opened.wrong == []


def test_a_decision_opens_to_every_rule(open_page, report, compilation):
    opened = open_page(report)
    opened.page.click('.lab-rail [data-pane="g0.forward.schedule"]')
    opened.page.click(".lab-pane.focused .lab-tabs >> text=decisions")
    opened.page.click(".lab-pane.focused .lab-open >> nth=0")
    verdicts = compilation.graphs[0].forward.schedule.decisions.all[0].verdicts
    shown = ".lab-pane.focused .lab-more:not([hidden]) tr"
    assert opened.count(shown) == len(verdicts)
    row = opened.page.locator(".lab-pane.focused .lab-table tbody > tr").first
    for wanted in (0, len(verdicts)):
        row.locator("td").nth(2).click()
        assert opened.count(shown) == wanted, "a click on the row does the same"
    opened.page.click(f"{shown} >> nth=0")
    assert opened.count(shown) == len(verdicts), "a click on what it opened closes nothing"


def test_a_graph_zooms_and_fits(open_page, report):
    opened = open_page(report)
    node = opened.page.locator(f"{FORWARD} .lab-node").first
    before = node.bounding_box()["width"]
    opened.page.click(f'{FORWARD} button[aria-label^="zoom in"]')
    assert node.bounding_box()["width"] > before * 1.1
    opened.page.click(f'{FORWARD} button[aria-label^="fit"]')
    assert node.bounding_box()["width"] == pytest.approx(before, rel=0.02)


def luminance(colour: str) -> float:
    parts = [float(value) / 255 for value in re.findall(r"[\d.]+", colour)[:3]]
    red, green, blue = (
        p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(text: str, paper: str) -> float:
    light, dark = sorted((luminance(text), luminance(paper)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_enough_contrast_in_light_and_dark(open_page, report, dark):
    opened = open_page(report, dark=dark)
    style = "e => [getComputedStyle(e).color, getComputedStyle(e.closest('.lab-explorer'))"
    style += ".backgroundColor]"
    for selector in (".lab-line code", ".lab-rail-count", ".lab-fact"):
        for element in opened.page.locator(selector).all()[:40]:
            text, paper = element.evaluate(style)
            assert contrast(text, paper) >= 4.5, (selector, text, paper)
    paper = opened.page.locator(".lab-explorer").evaluate(
        "e => getComputedStyle(e).backgroundColor"
    )
    assert (luminance(paper) < 0.1) == dark
    opened.page.click('[aria-label="light or dark theme"]')
    toggled = opened.page.locator(".lab-explorer").get_attribute("data-theme")
    assert toggled == ("light" if dark else "dark")


PAINTED = """e => {
  const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
    .getContext("2d", { willReadFrequently: true });
  const over = [];
  for (let at = e; at; at = at.parentElement) over.unshift(at);
  const paint = (colour) => { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); };
  const seen = () => `rgb(${[...pen.getImageData(0, 0, 1, 1).data].slice(0, 3)})`;
  paint("white");
  for (const each of over) paint(getComputedStyle(each).backgroundColor);
  const paper = seen();
  pen.globalAlpha = over.reduce((alpha, each) => alpha * getComputedStyle(each).opacity, 1);
  paint(getComputedStyle(e).color);
  return [seen(), paper];
}"""


@pytest.mark.parametrize("dark", [False, True])
def test_highlighted_and_faded_text_has_enough_contrast(open_page, report, dark):
    """Against the very colours behind it, with tints and opacity counted."""
    opened = open_page(report, dark=dark)
    opened.page.click(f"{SOURCE} .lab-line >> text=one = torch.sin")
    checked = 0
    for selector in (".lab-line code", ".lab-line .lab-cue", ".lab-line .lab-no"):
        for element in opened.page.locator(selector).all()[:60]:
            if element.inner_text().strip():
                text, paper = element.evaluate(PAINTED)
                assert contrast(text, paper) >= 4.5, (selector, text, paper)
                checked += 1
    assert checked > 30 and opened.count(".lab-line.lit") > 2


def test_hostile_names_are_shown_as_text(open_page, compilation, tmp_path):
    named = dataclasses.replace(compilation, name=HOSTILE)
    opened = open_page(named.report(tmp_path / "hostile.html"))
    assert HOSTILE in opened.texts("h1")[0]
    assert opened.count("img") == 0
    assert opened.wrong == []


def test_without_a_script_source_and_code_can_be_read(open_page, report):
    opened = open_page(report, script=False)
    text = opened.texts("body")[0]
    assert "one = torch.sin(x) ** 2" in text and "cpp_fused" in text


def test_a_large_count_does_not_break_its_label(open_page, report):
    page = open_page(report).page
    button = page.locator('.lab-rail [data-pane="g0.forward.schedule"]')
    button.locator(".lab-rail-count").evaluate("count => count.textContent = '279 ops → 51'")
    one_line = page.locator('.lab-rail [data-pane="g0.forward.loops"]').bounding_box()
    assert button.bounding_box()["height"] == one_line["height"]
    assert button.evaluate("button => button.scrollWidth <= button.clientWidth")


@pytest.mark.parametrize("width", (900, 1400))
def test_a_bar_starts_after_its_name(open_page, report, width):
    page = open_page(report, width=width).page
    page.locator('.lab-rail [data-pane="time"]').click()
    page.locator('.lab-pane[data-pane="time"] .lab-tabs button', has_text="dynamo").click()
    names = page.locator('.lab-pane[data-pane="time"] .lab-bar > :first-child')
    assert "create_aot_dispatcher_function" in names.all_inner_texts()
    wide = names.evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth + 1)"
                              ".map(one => one.textContent)")
    assert wide == []


def test_a_narrow_window_stacks_the_panes(open_page, report):
    opened = open_page(report, width=420)
    panes = [pane.bounding_box() for pane in opened.page.locator(".lab-pane").all()]
    assert all(box["width"] > 380 for box in panes)
    width = opened.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 420


def test_a_small_report_is_painted_in_a_tenth_of_a_second(open_page, report):
    page = open_page(report).page
    measure = 'performance.getEntriesByName("inductor_lab: draw")[0].duration'
    assert page.evaluate(measure) < 300  # 100 ms on a machine that does nothing else
