"""A real JupyterLab, a real kernel, and a user who runs four cells."""

from __future__ import annotations

import contextlib
import re
import time

import nbformat
import pytest

import inductor_lab as lab
from tests.browser.conftest import opened_notebook

playwright = pytest.importorskip("playwright.sync_api")

CELLS = (
    "import torch\n%load_ext inductor_lab",
    "%%compile\n"
    "def pythagoras(x):\n"
    "    one = torch.sin(x) ** 2\n"
    "    return one + torch.cos(x) ** 2\n"
    "\n"
    "pythagoras(torch.randn(100))",
    "%%compile -r trained\n"
    "def layered(x, w, n):\n"
    "    h = torch.exp(torch.sin(x)).tanh() * n\n"
    "    return torch.softmax(h @ w, -1).sigmoid() @ w\n"
    "\n"
    "layered(torch.randn(16, 8, requires_grad=True), torch.randn(8, 8, requires_grad=True), 2)",
    "import inductor_lab as lab\nfrom IPython.display import display\n"
    "display(lab.load(trained.save('trained.lab.json')))\n"
    "lab.load('trained.lab.json').widget()",
    "_lab.steps()",
    "import inductor_lab as lab\nlab.inspect(pythagoras, torch.randn(100), compiler='stock')",
)
CODE_PANE = "g0.forward.code"
SOURCE, CODE = '.lab-pane[data-pane="source"]', f'.lab-pane[data-pane="{CODE_PANE}"]'
SCHEDULE = '.lab-pane[data-pane="g0.forward.schedule"]'


@pytest.fixture(scope="module")
def notebook(browser, jupyterlab):
    """The page with both cells run, and the seconds until the explorer was there."""
    page = opened_notebook(browser, jupyterlab, CELLS, "two.ipynb")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector(f"{CODE} .lab-line")
    yield page
    page.context.close()


EVERY_VIEW = """explorer => {
  const shown = {};
  const ids = [...explorer.querySelectorAll(".lab-rail [data-pane]")].map((b) => b.dataset.pane);
  for (const id of ids) {
    explorer.querySelector(`.lab-rail [data-pane="${id}"]`).click();
    const pane = () => explorer.querySelector(`.lab-pane[data-pane="${id}"]`);
    const tabs = pane().querySelectorAll(".lab-tabs button").length;
    for (let tab = 0; tab < Math.max(1, tabs); tab++) {
      pane().querySelectorAll(".lab-tabs button")[tab]?.click();
      shown[`${id} ${tab}`] = pane().querySelector(".lab-body").textContent;
    }
  }
  return shown;
}"""


def test_two_cells_draw_the_explorer(notebook):
    assert "pythagoras" in notebook.inner_text(".lab-header h1")
    assert notebook.locator(f"{SCHEDULE} .lab-node").count() >= 3
    assert "Error displaying widget" not in notebook.inner_text(".jp-Notebook")
    # an output of this session is trusted: its HTML, and not the frame of the extension
    assert notebook.locator(".jp-OutputArea-output iframe").count() == 0


def test_hovering_a_line_highlights_related_code(notebook):
    notebook.hover(f"{SOURCE} .lab-line >> text=one = torch.sin")
    lit = notebook.locator(f"{CODE} .lab-line.lit code").all_inner_texts()
    assert any("lab_sin" in text for text in lit) and not any("lab_cos" in text for text in lit)


def test_keys_stay_in_the_explorer(notebook):
    """`d d` deletes a cell in JupyterLab; `[`, `]` and `d` are keys of the explorer."""
    for part in (".lab-text", ".lab-header h1", ".lab-trail", ".lab-rail h2"):
        notebook.locator(f".lab-explorer:has({SOURCE}) {part}").first.click()
        for _ in range(3):
            notebook.keyboard.press("d")
        assert notebook.locator(".jp-Notebook .jp-CodeCell").count() >= len(CELLS), part
        notebook.keyboard.press("Escape")


def test_what_if_recompiles_in_the_kernel(notebook):
    notebook.wait_for_selector(".lab-explorer.live")
    notebook.click(f"{SCHEDULE} .lab-tabs >> text=decisions")
    notebook.click(f"{SCHEDULE} .lab-pair >> text=forbid >> nth=0")
    notebook.wait_for_selector(".lab-verdict:has-text('kernels')")
    said = notebook.inner_text(".lab-verdict")
    assert re.match(r"1 → 2 kernels", said)
    assert notebook.locator('.lab-pane[data-pane="whatif"] .lab-line.added').count() > 3
    notebook.click(".lab-chip")
    notebook.wait_for_selector('.lab-rail [data-pane="whatif"]', state="detached")
    assert notebook.inner_text(".lab-verdict") == ""


def test_lower_panes_are_created_on_request(notebook):
    notebook.select_option(".lab-whatif select", value='{"show":"assembly"}')
    notebook.wait_for_selector('.lab-rail [data-pane="g0.forward.assembly"]')
    assert notebook.locator('.lab-pane[data-pane="g0.forward.assembly"] .lab-line').count() > 0
    notebook.click(f'.lab-rail [data-pane="{CODE_PANE}"]')


def test_an_edited_kernel_that_hangs_is_stopped(notebook):
    notebook.click(f'.lab-rail [data-pane="{CODE_PANE}"]')
    pane = notebook.locator(CODE)
    pane.locator(".lab-edit").click()
    text = pane.locator("textarea")
    head, brace, body = text.input_value().partition("{")
    text.fill(f"{head}{brace}\n    volatile bool more = true;\n    while (more) {{}}{body}")
    stop = pane.locator(".lab-stop")
    assert not stop.is_visible()
    pane.locator(".lab-editor button", has_text="run").click()
    stop.wait_for()
    notebook.wait_for_timeout(3000)  # the compiler has ended, the kernel runs
    stop.click()
    pane.locator(".lab-editor-said.no", has_text="stopped after").wait_for(timeout=10_000)
    assert not stop.is_visible()
    pane.locator(".lab-editor button", has_text="restore generated code").click()
    pane.locator(".lab-editor button", has_text="run").click()
    pane.locator(".lab-editor-said.ok", has_text="right").wait_for()
    pane.locator(".lab-edit").click()


@pytest.fixture(scope="module")
def training(notebook):
    """The explorer of the third cell, whose function has a gradient."""
    notebook.keyboard.press("Escape")
    notebook.click(".jp-Cell >> nth=2")
    notebook.keyboard.press("Shift+Enter")
    explorer = notebook.locator(".jp-Cell:nth-child(3) .lab-explorer")
    explorer.locator(f"{CODE} .lab-line").first.wait_for()
    notebook.wait_for_selector(".jp-Cell:nth-child(3) .lab-explorer.live")
    return explorer


def test_an_edited_guard_is_predicted_and_confirmed(training):
    training.locator('.lab-rail [data-pane="guards"]').click()
    verdict = training.locator(".lab-guard-verdict b")
    assert verdict.inner_text() == "hit"
    training.locator('[data-input="x"] [data-fact="size"]').fill("4, 8")
    assert verdict.inner_text() == "recompile"
    assert "torch.sin(x)" in training.locator(".lab-guard-verdict button").inner_text()
    training.locator(".lab-run-it").click()
    said = training.locator(".lab-guard-said:has-text('recompiled')")
    said.wait_for()
    assert "size mismatch at index 0. expected 16, actual 4" in said.inner_text()
    assert verdict.inner_text() == "hit"  # now there is code for this size
    training.locator("text=reset").click()
    training.locator(".lab-run-it").click()
    training.locator(".lab-guard-said:has-text('reused')").wait_for()


def test_the_budget_slider_compiles_again(training):
    training.locator('.lab-rail [data-pane="g0.joint.cut"]').click()
    training.locator(".lab-tabs >> text=budget").click()
    before = training.locator(".lab-budget-said").inner_text()
    training.locator(".lab-budget input[type=range]").fill("0")
    said = training.locator(".lab-budget-said").inner_text()
    assert said != before and "memory_budget 0" in said and "0 B saved" in said
    training.locator(".lab-verdict:has-text('kernels')").wait_for()
    training.locator('.lab-rail [data-pane="whatif"]').click()
    training.locator(".lab-pane.focused .lab-tabs >> text=numbers").click()
    row = training.locator(".lab-pane.focused tr:has-text('kept for the backward')")
    assert re.search(r"\b0$", row.inner_text().strip())
    training.locator(".lab-chip").click()
    training.locator('.lab-rail [data-pane="whatif"]').wait_for(state="detached")


def test_one_file_has_the_same_views_in_three_front_ends(
    notebook, training, jupyterlab, browser, tmp_path
):
    """A cell's HTML, a widget with a kernel, and the page of a report; all of one saved file."""
    _, folder = jupyterlab
    notebook.keyboard.press("Escape")
    notebook.click(".jp-Cell >> nth=3")
    notebook.keyboard.press("Shift+Enter")
    explorers = notebook.locator(".jp-Cell:nth-child(4) .lab-explorer")
    explorers.nth(1).locator(f"{CODE} .lab-line").first.wait_for()
    report = lab.load(folder / "trained.lab.json").report(tmp_path / "trained.html")
    page = browser.new_context(offline=True).new_page()
    page.goto(report.as_uri())
    in_html, in_widget = (explorers.nth(n).evaluate(EVERY_VIEW) for n in (0, 1))
    in_report = page.locator(".lab-explorer").evaluate(EVERY_VIEW)
    page.context.close()
    assert len(in_report) > 25 and all(in_report.values())
    assert in_html == in_widget == in_report


def test_the_notebook_keeps_the_explorer_without_a_kernel(notebook, jupyterlab, browser):
    """Saved and opened with scripts but without that kernel, everything but "what if" is there."""
    _, folder = jupyterlab
    notebook.keyboard.press("Escape")
    notebook.click(".jp-Cell >> nth=0")
    notebook.keyboard.press("Control+s")
    outputs = []
    for _ in range(100):
        with contextlib.suppress(nbformat.reader.NotJSONError):  # it is being written
            outputs = nbformat.read(folder / "two.ipynb", as_version=4).cells[1].get("outputs")
        if outputs:
            break
        time.sleep(0.1)
    assert outputs, "the notebook was not saved"
    html = next(o["data"]["text/html"] for o in outputs if "text/html" in o.get("data", {}))
    page = browser.new_context().new_page()
    page.set_content(f"<!doctype html><meta charset='utf-8'>{html}")
    page.hover(f"{SOURCE} .lab-line >> text=one = torch.sin")
    assert page.locator(f"{CODE} .lab-line.lit").count() >= 1
    assert page.locator(".lab-whatif").count() == 0
    page.context.close()


def test_steps_have_buttons_and_remain_without_a_kernel(notebook, jupyterlab, browser):
    """A notebook that is opened later has no model for a widget: JupyterLab would say so alone."""
    _, folder = jupyterlab
    notebook.keyboard.press("Escape")
    notebook.click(".jp-Cell >> nth=4")
    notebook.keyboard.press("Shift+Enter")
    steps = notebook.locator(".jp-Cell:nth-child(5) .lab-bench")
    steps.locator("text=Next line").click()
    steps.locator("[aria-current=step]").wait_for()
    notebook.keyboard.press("Control+s")
    shown: dict[str, str] = {}
    for _ in range(100):
        with contextlib.suppress(nbformat.reader.NotJSONError):  # it is being written
            cell = nbformat.read(folder / "two.ipynb", as_version=4).cells[4]
            shown = cell.outputs[0]["data"] if cell.outputs else {}
        if shown:
            break
        time.sleep(0.1)
    assert shown.keys() == {"text/plain", "text/html", "text/markdown"}
    page = browser.new_context().new_page()
    page.set_content(f"<!doctype html><meta charset='utf-8'>{shown['text/html']}")
    assert "def call(args)" in page.inner_text(".lab-code") and not page.locator("button").count()
    page.context.close()


def test_an_explorer_of_stock_measures_the_memory_of_its_step(notebook):
    """The answer comes seconds later, and leaves the focus where it is."""
    notebook.keyboard.press("Escape")
    notebook.click(".jp-Cell >> nth=5")
    notebook.keyboard.press("Shift+Enter")
    explorer = notebook.locator(".jp-Cell:nth-child(6) .lab-explorer")
    explorer.locator(".lab-whatif button", has_text="step memory").click()
    source = explorer.locator('.lab-rail [data-pane="source"]')
    source.focus()
    pane = explorer.locator('.lab-pane[data-pane="step_memory"]')
    pane.locator("svg.lab-chart .curve").nth(2).wait_for(state="attached")
    assert "stock" in pane.locator("tbody tr").nth(1).inner_text()
    assert source.evaluate("button => button === document.activeElement")
