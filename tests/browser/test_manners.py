"""Several explorers on one page, narrow windows, search, guards; what is there without a script."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import inductor_lab as lab
from inductor_lab.notebook.calls import Explorers
from inductor_lab.widgets.compressed import zipped
from inductor_lab.widgets.model import document
from inductor_lab.widgets.page import script
from inductor_lab.widgets.report import report_html
from inductor_lab.widgets.show import html
from inductor_lab.widgets.words import glossary


def wave(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    print("a graph break")
    return (y + 1).sin()


def scale(x: torch.Tensor) -> torch.Tensor:
    return x.exp() * 2


AGAIN = """<!doctype html><meta charset="utf-8"><body><script type="module">
{script}
const zipped = "{doc}";
window.again = async () => {{
  document.querySelector(".lab-explorer")?.remove();
  await renderZipped(document.body.appendChild(document.createElement("div")), zipped, "nobody");
}};
</script>"""
"""A page in which a cell can be run again and again."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("pages")
    first, second = lab.inspect(wave, torch.randn(2, 3, 4, 5)), lab.inspect(scale, torch.randn(8))
    (made / "one.html").write_text(report_html(first))
    doc = zipped(document(first))
    (made / "again.html").write_text(AGAIN.format(script=script(), doc=doc))
    pages = f"<!doctype html><body>{html(first)}<p>between</p>{html(second)}"
    (made / "two.html").write_text(pages)
    (made / "tabs.html").write_text(f"<!doctype html>{html(Explorers((first, second)))}")
    return made


def shown_pane(opened, which: int) -> str:
    focused = opened.page.locator(".lab-explorer").nth(which).locator(".lab-pane.focused")
    return focused.get_attribute("data-pane")


def test_keys_act_on_the_explorer_that_was_used_last(folder, open_page) -> None:
    opened = open_page(folder / "two.html")
    before = [shown_pane(opened, n) for n in (0, 1)]
    opened.page.keyboard.press("]")
    assert [shown_pane(opened, n) for n in (0, 1)] == before, "nobody was used yet"
    opened.page.locator(".lab-header").nth(1).click(position={"x": 3, "y": 3})
    opened.page.keyboard.press("]")
    assert shown_pane(opened, 0) == before[0] and shown_pane(opened, 1) != before[1]
    assert opened.wrong == []


def test_only_keys_of_the_explorer_are_withheld_from_the_notebook(folder, open_page) -> None:
    opened = open_page(folder / "two.html")
    opened.page.evaluate("""() => { window.kept = {};
      document.addEventListener("keydown", (event) => { window.kept[event.key] =
        !!event.target.closest("[data-lm-suppress-shortcuts]"); }, true); }""")
    opened.page.locator(".lab-text").first.focus()
    for key in ("d", "a", "Control+s", "Shift+Enter", "ArrowDown"):
        opened.page.keyboard.press(key)
    kept = opened.page.evaluate("window.kept")
    assert (kept["d"], kept["a"], kept["s"], kept["ArrowDown"]) == (True, False, False, True)
    assert kept["Enter"] is False
    opened.page.locator("input[type=search]").first.focus()
    opened.page.keyboard.press("a")
    assert opened.page.evaluate("window.kept.a") is True, "it is typed"


def test_a_click_on_any_part_focuses_the_explorer(folder, open_page) -> None:
    page = open_page(folder / "one.html").page
    for part in ("h1", ".lab-facts", ".lab-rail h2", ".lab-trail", ".lab-block-title"):
        page.evaluate("document.activeElement.blur()")
        page.locator(f".lab-explorer {part}").first.click(position={"x": 2, "y": 2})
        inside = "document.activeElement.closest('.lab-explorer') !== null"
        assert page.evaluate(inside), part


def test_a_narrow_explorer_shows_the_source_and_one_more_pane(folder, open_page) -> None:
    wide, narrow = open_page(folder / "one.html"), open_page(folder / "one.html", width=900)
    assert wide.page.locator(".lab-pane:visible").count() == 3
    assert narrow.page.locator(".lab-pane:visible").count() == 2
    narrow.page.locator('[data-pane="g0.forward.schedule"]').first.click()
    assert narrow.page.locator(".lab-pane:visible").count() == 2
    pane = narrow.page.locator('.lab-pane[data-pane="g0.forward.schedule"]:visible')
    assert pane.count() == 1
    head = pane.locator(".lab-pane-head").bounding_box()
    for tab in pane.locator("[role=tab]").all():
        box = tab.bounding_box()
        assert head["x"] <= box["x"] and box["x"] + box["width"] <= head["x"] + head["width"]


def test_buttons_do_not_cover_the_graph(folder, open_page) -> None:
    opened = open_page(folder / "one.html")
    opened.page.locator('[data-pane="g0.captured"]').first.click()
    assert opened.page.locator(".lab-pane.focused .lab-pane-head > button").count() == 2
    head = opened.page.locator(".lab-pane.focused .lab-pane-head")
    assert head.bounding_box()["height"] < 60, head.inner_text()
    tools = opened.page.locator(".lab-tools").first.bounding_box()
    paper = opened.page.locator(".lab-paper").first.bounding_box()
    assert tools["y"] + tools["height"] <= paper["y"] and paper["height"] > 100


def test_search_names_closed_panes(folder, open_page) -> None:
    opened = open_page(folder / "one.html")
    opened.search("LOAD_")
    places = opened.texts(".lab-elsewhere button")
    assert any(place.startswith("capture · bytecode: ") for place in places)
    opened.page.locator(".lab-elsewhere button", has_text="bytecode").click()
    assert opened.page.locator('.lab-pane[data-pane="bytecode"] .found').count() > 0
    assert not any(place.startswith("capture · bytecode") for place in
                   opened.texts(".lab-elsewhere button"))
    opened.search("")
    assert opened.page.locator(".lab-elsewhere").is_hidden()


def test_guards_show_long_shapes_and_refuse_nonsense_in_place(folder, open_page) -> None:
    opened = open_page(folder / "one.html")
    opened.page.locator('[data-pane="guards"]').first.click()
    size = opened.page.locator('[data-fact="size"]').first
    size.fill("1000, 2000, 3000, 4000, 5000")
    assert size.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
    said = opened.page.locator(".lab-refused").first
    assert said.inner_text() == ""
    size.fill("two, 3")
    assert said.inner_text() == "integers, such as 8, 16"
    assert size.get_attribute("aria-invalid") == "true"
    size.fill("2, 3, 4, 5")
    assert said.inner_text() == ""


def test_tabs_open_one_explorer_each(folder, open_page) -> None:
    opened = open_page(folder / "tabs.html", width=900)
    tabs = opened.page.locator(".lab-explorer-tabs [role=tab]")
    assert tabs.all_inner_texts() == ["wave", "scale"]
    assert opened.page.locator(".lab-explorer:visible h1").inner_text().startswith("scale")
    tabs.nth(1).press("ArrowLeft")
    assert opened.page.locator(".lab-explorer:visible h1").inner_text().startswith("wave")
    assert opened.wrong == []


def test_without_a_script_pictures_and_reasons_are_shown(folder, open_page) -> None:
    opened = open_page(folder / "one.html", script=False)
    text = opened.page.locator("body").inner_text()
    assert "graph break" in text.lower() or "breaks" in text
    assert "print" in text and "what was fused: graph 0 forward" in text
    pictures = opened.page.locator(".lab-plain img")
    assert pictures.count() == 2
    drawn = pictures.evaluate_all("all => all.map(e => [e.naturalWidth, e.naturalHeight])")
    assert all(width > 50 and height > 50 for width, height in drawn), drawn


def test_css_classes_of_the_page_do_not_change_sizes(folder, open_page) -> None:
    graph = lab.inspect(scale, torch.randn(8)).graphs[0].forward.graph
    page = folder / "host.html"
    page.write_text(f"<style>.output {{ width: 100% }}</style>{html(graph)}")
    box = open_page(page).page.locator("rect.output").first
    drawn = box.evaluate("e => [e.getBBox().width, Number(e.getAttribute('width'))]")
    assert abs(drawn[0] - drawn[1]) < 0.1, "marimo has such a class"


DEAD_KERNEL = """
async () => {
  const heard = {};
  const model = { get: () => "c", send: () => {}, on: (name, call) => { heard[name] = call; },
    widget_manager: { kernel: { status: "idle" } } };
  const line = new Line(model);
  const waiting = line.ask({});
  heard.comm_live_update();
  const busy = new Line({ ...model, widget_manager: { kernel: { status: "dead" } } });
  return [(await waiting).error, (await line.ask({})).error, (await busy.ask({})).error];
}
"""


def test_a_dead_kernel_is_reported_immediately(folder, open_page) -> None:
    from inductor_lab.widgets.page import connection_script

    code = connection_script().split("export default")[0]
    page = folder / "line.html"
    page.write_text(f"<!doctype html><script>{code}\nwindow.Line = inductorLab.Line;</script>")
    answers = open_page(page).page.evaluate(DEAD_KERNEL)
    assert len(answers) == 3 and all("Run the cell again" in answer for answer in answers)


def test_terms_are_explained_on_hover_and_on_focus(folder, open_page) -> None:
    opened = open_page(folder / "one.html")
    page = opened.page
    tip = page.locator(".lab-tip:visible")
    page.locator(".lab-fact", has_text="memory passes").hover()
    assert glossary()["memory pass"] in tip.inner_text() and "show " in tip.inner_text()
    page.locator(".lab-trail").hover()
    assert tip.count() == 0
    page.locator(".lab-rail button", has_text="schedule").last.click()
    assert tip.count() == 0, "it would lie over what was opened"
    page.locator(".lab-pane.focused .lab-tabs button", has_text="kernels").click()
    head = page.locator(".lab-pane.focused th", has_text="passes")
    page.locator(".lab-pane.focused .lab-table").focus()
    for _ in range(12):
        if head.evaluate("head => head === document.activeElement"):
            break
        page.keyboard.press("Tab")
    assert tip.inner_text() == glossary()["memory pass"]
    assert head.get_attribute("aria-description") == tip.inner_text()
    box, all_of_it = tip.bounding_box(), page.locator(".lab-explorer").bounding_box()
    assert box["x"] + box["width"] <= all_of_it["x"] + all_of_it["width"]
    page.keyboard.press("Escape")
    assert tip.count() == 0
    assert opened.wrong == []


def test_arrows_move_the_focus_through_rows_bars_and_boxes(folder, open_page) -> None:
    opened = open_page(folder / "one.html")
    page = opened.page
    active = "() => document.activeElement.textContent + document.activeElement.ariaLabel"
    for title, view, key, holds in (
        ("schedule", "kernels", "ArrowDown", "fused_add_sin"),
        ("memory", "after planning", "ArrowDown", "steps 0 to"),
        ("schedule", "graph", "n", "y, f32"),
    ):
        page.locator(f".lab-rail [data-pane$='.{title}']").last.click()
        page.locator(".lab-pane.focused .lab-tabs button", has_text=view).first.click()
        page.keyboard.press(key)
        said = page.evaluate(active)
        assert holds in said, said
        role = page.evaluate("() => document.activeElement.getAttribute('role') "
                             "|| document.activeElement.tagName")  # fmt: skip
        assert role in ("TR", "button", "img"), role
    page.keyboard.press("Escape")
    page.locator(".lab-pane.focused .lab-tabs button", has_text="kernels").first.click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert opened.count(".lab-explorer.has-pin") == 1
    assert opened.wrong == []


def test_a_cell_that_runs_again_leaks_nothing(folder, open_page) -> None:
    opened = open_page(folder / "again.html")
    page = opened.page
    page.wait_for_function("() => window.again")
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable")

    def held(times: int) -> tuple[int, int]:
        """Listeners and nodes after so many more runs, once nothing can be collected."""
        for _ in range(times):
            page.evaluate("() => window.again()")
        for _ in range(3):
            page.wait_for_timeout(100)
            tools.send("HeapProfiler.collectGarbage")
            page.keyboard.press("x")  # listeners whose explorer is gone leave with the next event
            page.evaluate("() => { document.dispatchEvent(new CustomEvent('inductor_lab.arrived'));"
                          " document.body.toggleAttribute('data-changed'); }")  # fmt: skip
        found = {m["name"]: m["value"] for m in tools.send("Performance.getMetrics")["metrics"]}
        return found["JSEventListeners"], found["Nodes"]

    listeners, nodes = held(3)
    more_listeners, more_nodes = held(20)
    assert more_listeners < 1.5 * listeners and more_nodes < 1.5 * nodes, (listeners, nodes)
    assert opened.wrong == []


def test_presentation_mode_has_large_type_and_links_to_lines(folder, open_page) -> None:
    opened = open_page(folder / "one.html")
    page = opened.page
    page.locator(".lab-pane [role=option].linked").last.click()
    address = page.evaluate("() => location.hash")
    pane, _, line = address.lstrip("#").partition("/")
    text = page.locator(".lab-line.lit code").first.inner_text()
    assert pane and line.isdigit()
    page.keyboard.press("Escape")
    page.evaluate("() => { location.hash = '#source/1'; }")
    focused = "(id) => document.querySelector('.lab-pane.focused').dataset.pane === id"
    page.wait_for_function(focused, arg="source")
    page.evaluate("(there) => { location.hash = there; }", address)
    page.wait_for_function(focused, arg=pane)
    assert page.locator(".lab-line.lit code").first.inner_text() == text
    page.reload()
    assert page.locator(".lab-pane.focused").get_attribute("data-pane") == pane
    assert page.locator(".lab-pane.focused .lab-line.lit").count()
    before = page.locator(".lab-header h1").bounding_box()["height"]
    page.keyboard.press("P")
    assert page.locator(".lab-header h1").bounding_box()["height"] > 1.3 * before
    assert page.evaluate("() => document.documentElement.scrollHeight <= innerHeight + 1")
    fact = page.locator(".lab-fact", has_text="memory passes")
    fact.hover()
    tip, over = page.locator(".lab-tip").bounding_box(), fact.bounding_box()
    assert 0 <= tip["y"] - over["y"] - over["height"] < 20
    assert opened.wrong == []
