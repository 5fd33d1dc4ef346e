"""The views of a report other than source, code and graphs; and a graph of many layers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

import inductor_lab as lab

SOURCE = '.lab-pane[data-pane="source"]'
GRAPH = '.lab-pane[data-pane="g0.forward.graph"]'


def layered(x, w):
    h = torch.exp(torch.sin(x)).tanh()
    return torch.softmax(h @ w, -1).sigmoid() @ w


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.tanh(self.inner(x).sin() + x).exp().neg().sigmoid() * x


class Tower(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.ModuleList(Block() for _ in range(12))
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x):
        for layer in self.layer:
            x = layer(x)
        return self.head(x).erf()


@pytest.fixture(scope="module")
def trained():
    given = (torch.randn(32, 16, requires_grad=True), torch.randn(16, 16, requires_grad=True))
    return lab.inspect(layered, *given)


@pytest.fixture(scope="module")
def report(trained, tmp_path_factory) -> Path:
    return trained.report(tmp_path_factory.mktemp("views") / "trained.html")


@pytest.fixture(scope="module")
def tower(tmp_path_factory) -> Path:
    c = lab.inspect(Tower().eval(), torch.randn(4, 8))
    return c.report(tmp_path_factory.mktemp("tower") / "tower.html")


def show(page, pane: str, tab: str = "") -> None:
    """In the second place, so that the source stays where it is."""
    page.locator(".lab-pane").nth(1).dispatch_event("pointerdown")
    page.click(f'.lab-rail [data-pane="{pane}"]')
    if tab:
        page.click(f'.lab-pane.focused .lab-tabs >> text="{tab}"')


def test_a_pin_is_highlighted_in_five_panes(open_page, report):
    opened = open_page(report)
    page = opened.page
    page.click(f"{SOURCE} .lab-line >> text=torch.exp(torch.sin(x))")
    page.mouse.move(5, 5)
    opened_first = ("source", "g0.forward.code", "g0.forward.graph", "g0.backward.graph")
    for pane in opened_first:
        assert opened.count(f'.lab-pane[data-pane="{pane}"] .lit') >= 1
    for pane in ("g0.forward.loops", "g0.captured", "g0.joint", "g0.forward.host"):
        show(page, pane)
        assert opened.count(f'.lab-pane[data-pane="{pane}"] .lit') >= 1
    assert opened.count(f"{SOURCE} .lit") >= 1 and opened.wrong == []


def test_the_budget_slider_shows_each_cut(open_page, report, trained):
    opened = open_page(report)
    page, cuts = opened.page, trained.graphs[0].partition.cuts
    show(page, "g0.joint.cut", "budget")
    slider = page.locator(".lab-budget input[type=range]")
    for place, cut in enumerate(reversed(cuts)):
        slider.fill(str(place))
        said = page.inner_text(".lab-budget-said")
        assert f"{cut.recomputed} op" in said and f"({cut.flops:,} flop)" in said
        kept = page.locator(".lab-budget tbody tr:not(:has(.lab-sign.no))").count()
        assert kept == len(cut.saved)
    assert "as compiled" in said and opened.wrong == []
    page.locator(".lab-budget-bars [data-step]").last.click()
    assert slider.input_value() == "0" and page.locator(".lab-budget-bars .chosen").count() == 1
    assert f"({cuts[-1].flops:,} flop)" in page.inner_text(".lab-budget-said")


def test_memory_before_and_after_planning(open_page, report, trained):
    opened = open_page(report)
    schedule = trained.graphs[0].backward.schedule
    show(opened.page, "g0.backward.memory", "without a plan")
    buffers = [life.buffer for life in schedule.memory.lifetimes]
    shown = opened.page.locator(".lab-lane").evaluate_all("e => e.map(x => x.dataset.buffer)")
    assert shown == buffers
    show(opened.page, "g0.backward.memory", "after planning")
    assert opened.count(".lab-lane") == len(buffers)
    opened.page.hover(f'.lab-lane[data-buffer="{buffers[0]}"]')
    assert opened.count(f"{SOURCE} .lab-line.lit") >= 1


def test_steps_follow_the_slider(open_page, report, trained):
    opened = open_page(report)
    page, (run,) = opened.page, trained.capture.runs
    show(page, "steps")
    number = next(n for n, step in enumerate(run.instructions) if step.added[-1:] and "sin" in
                  step.added[-1])
    page.locator(".lab-steps input[type=range]").fill(str(number))
    assert opened.texts(".lab-step-graph .lab-line.added")[-1] == run.instructions[number].added[-1]
    assert len(opened.texts(".lab-step-stack li")) == len(run.instructions[number].stack)
    assert opened.count(f"{SOURCE} .lab-line.lit") == 1
    page.click('[aria-label="next instruction"]')
    assert f"{number + 2} of {run.total}" in page.inner_text(".lab-step-said")
    page.focus(".lab-step-code")
    page.keyboard.press("ArrowUp")
    assert f"{number + 1} of {run.total}" in page.inner_text(".lab-step-said")
    assert opened.wrong == []


def test_the_timeline_is_saved_as_a_trace(open_page, report, trained, tmp_path):
    opened = open_page(report)
    show(opened.page, "time")
    assert opened.count(".lab-phase") == len(trained.phases)
    with opened.page.expect_download() as saved:
        opened.page.click('.lab-save >> text=save as Chrome trace')
    trace = json.loads(Path(saved.value.path()).read_text())
    ours = json.loads(trained.trace(tmp_path / "ours.json").read_text())
    assert set(trace) == set(ours)
    names = [sorted(event["name"] for event in each["traceEvents"]) for each in (trace, ours)]
    assert names[0] == names[1] and len(names[0]) > len(trained.phases)


TOO_LONG = """() => [...document.querySelectorAll(".lab-phase > svg > text")].filter((name) =>
  name.getComputedTextLength() + 8 > name.ownerSVGElement.width.baseVal.value + 0.5
  && name.textContent).map((name) => name.textContent)"""


def test_names_in_a_timeline_are_cut_at_the_end_of_their_bar(open_page, report):
    opened = open_page(report)
    page = opened.page
    show(page, "time")
    shown = []
    for width in (1400, 700, 1900):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(100)
        assert page.evaluate(TOO_LONG) == []
        shown.append(page.locator(".lab-phase > svg > text").all_text_contents())
    assert any(name.endswith("…") for name in shown[0])
    assert sum(map(len, shown[1])) < sum(map(len, shown[0])) < sum(map(len, shown[2]))
    show(page, "source")
    page.wait_for_timeout(100)
    assert opened.wrong == []


CROSSED = """() => [...document.querySelectorAll(".focused .lab-frame-title")].filter((title) => {
  const [paper, name] = [...title.children].map((each) => each.getBoundingClientRect());
  const covers = paper.left <= name.left && name.right <= paper.right
    && paper.top <= name.top && name.bottom <= paper.bottom;
  const arrows = [...title.parentElement.querySelectorAll(".lab-arrow")];
  const above = title.compareDocumentPosition(arrows.at(-1)) & Node.DOCUMENT_POSITION_PRECEDING;
  return !covers || !above;
}).length"""


def test_no_arrow_crosses_the_title_of_a_group(open_page, report):
    opened = open_page(report)
    show(opened.page, "g0.forward.schedule", "graph")
    assert opened.count(".lab-pane.focused .lab-frame-title") > 0
    assert opened.page.evaluate(CROSSED) == 0
    opened.page.click(".lab-pane.focused .lab-frame-title", force=True)
    assert opened.count(".lab-pane.focused .lab-node.closed") == 1, "a click goes through it"


def test_a_long_text_in_a_table_is_wrapped(open_page, report):
    opened = open_page(report)
    opened.page.set_viewport_size({"width": 700, "height": 800})
    show(opened.page, "guards", "all")
    long = opened.page.locator(".lab-pane.focused td.long")
    assert min(long.nth(n).bounding_box()["width"] for n in range(long.count())) > 200


@pytest.mark.parametrize(("kind", "start"), [("SVG", b"<svg"), ("PNG", b"\x89PNG")])
def test_a_graph_is_saved_as_a_picture(open_page, report, kind, start):
    opened = open_page(report)
    with opened.page.expect_download() as saved:
        opened.page.click(f'{GRAPH} [aria-label="save as {kind}"]')
    content = Path(saved.value.path()).read_bytes()
    assert content.startswith(start) and len(content) > 3000
    assert saved.value.suggested_filename == f"forward.{kind.lower()}"
    assert opened.wrong == []


def test_many_layers_open_collapsed_and_open_in_place(open_page, tower):
    opened = open_page(tower)
    page = opened.page
    show(page, "g0.forward.graph")
    closed = page.locator(f"{GRAPH} .lab-node.closed").all_text_contents()
    assert any("×12" in text for text in closed)
    before = opened.count(f"{GRAPH} .lab-node")
    assert before < 20
    page.click(f"{GRAPH} .lab-node.closed:has-text('×12')")
    assert opened.count(f"{GRAPH} .lab-node.closed") >= 12
    page.click(f"{GRAPH} .lab-node.closed:has-text('layer.3') >> nth=0", force=True)
    assert opened.count(f'{GRAPH} [data-name="tanh_3"]') == 1
    page.click(f"{GRAPH} [aria-label='close all frames']")
    assert opened.count(f"{GRAPH} .lab-node.closed") <= 3
    assert opened.wrong == []


def test_search_opens_the_frames_around_what_it_finds(open_page, tower):
    opened = open_page(tower)
    page = opened.page
    show(page, "g0.forward.graph")
    opened.search("erf")
    assert opened.count(f"{GRAPH} .lab-node.found") >= 1
    assert "of" in page.inner_text(".lab-found-count")
    inside = f'{GRAPH} .lab-node[data-name="tanh_3"]'
    assert opened.count(inside) == 0
    opened.search("tanh_3")
    assert opened.count(f"{inside}.found") == 1
    found = page.inner_text(".lab-found-count")
    page.keyboard.press("Enter")
    assert found.startswith("1 of") and page.inner_text(".lab-found-count").startswith("2 of")
    page.keyboard.press("Escape")
    assert opened.count(".found") == 0


TYPED = """field => {
  field.value = "tanh_3";
  field.dispatchEvent(new Event("input"));
  return [document.querySelectorAll(".lab-node").length,
          document.querySelector(".lab-found-count").textContent];
}"""


def test_a_key_is_handled_before_frames_are_opened(open_page, tower):
    """To open them takes a picture drawn anew: tenths of a second in a large model."""
    opened = open_page(tower)
    page = opened.page
    show(page, "g0.forward.graph")
    boxes = opened.count(".lab-node")
    typed, found = page.locator("input[type=search]").evaluate(TYPED)
    assert typed == boxes and re.fullmatch(r"[1-9]\d* found", found)
    page.wait_for_selector(".lab-found-count:not([aria-busy])", state="attached")
    assert opened.count(".lab-node") > boxes
    assert page.inner_text(".lab-found-count") == f"1 of {found.split()[0]}"
    assert opened.wrong == []


def test_a_closed_frame_counts_what_it_holds_and_opens_when_a_hit_is_gone_to(open_page, tower):
    opened = open_page(tower)
    page = opened.page
    show(page, "g0.forward.graph")
    opened.search("tanh")
    count = page.inner_text(".lab-found-count").split()[-1]
    page.click(f"{GRAPH} [aria-label='close all frames']")
    assert opened.count(f"{GRAPH} .lab-node.closed.found") >= 1  # what is found stays marked
    page.focus("input[type=search]")
    for _ in range(int(count)):
        page.keyboard.press("Enter")
        if opened.count(f'{GRAPH} .lab-node[data-name^="tanh"].at'):
            break
    assert opened.count(f'{GRAPH} .lab-node[data-name^="tanh"].at') == 1
    assert page.inner_text(".lab-found-count").endswith(f"of {count}")
    assert opened.wrong == []
