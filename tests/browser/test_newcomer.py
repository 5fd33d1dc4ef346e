"""A newcomer's first hour: forty actions in one real JupyterLab, in the order one does them.

Each action is a test of its own that begins where the one before it ended; the last one looks at
the browser's console.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import write_notebook
from tests.browser.newcomer import Newcomer

CELLS = (
    "import torch, inductor_lab as lab\n%load_ext inductor_lab",
    "%%compile\n"
    "def pythagoras(x):\n"
    "    one = torch.sin(x) ** 2\n"
    "    return one + torch.cos(x) ** 2\n"
    "\n"
    "pythagoras(torch.randn(1000))",
    "%%compile\nx = 1",
    "%%compile\n"
    "def product(a, b):\n"
    "    c = a.relu()\n"
    "    return c @ b\n"
    "\n"
    "product(torch.randn(4, 8), torch.randn(9, 3))",
    "%%compile\n"
    "def chatty(x):\n"
    "    y = x * 2\n"
    "    print('half way')\n"
    "    return y.exp()\n"
    "\n"
    "chatty(torch.randn(50))",
    "net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))\n"
    "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
    "%%compile -r trained\n"
    "loss = net(torch.randn(8, 16)).pow(2).mean()\n"
    "loss.backward()\n"
    "opt.step()",
    "def scaled(x, n):\n    return torch.tanh(x * n).softmax(-1)\n\n"
    "c = lab.inspect(scaled, torch.randn(64, 32), 3)\nc",
    "print(c.what_if(fusion=False).after.kernels, 'kernels')\n"
    "print(c.again(torch.randn(5, 32), 3))",
    "c.annotate()",
    "lab.load(c.save('scaled.lab.json'))",
    "c.report('scaled.html')\nlab.bench(scaled, torch.randn(64, 32), 3, against=['eager'],"
    " cold=False, seconds=0.3, kernels=False)",
)


@pytest.fixture(scope="module")
def user(browser, jupyterlab) -> Iterator[Newcomer]:
    address, folder = jupyterlab
    write_notebook(CELLS, folder / "first.ipynb")
    context = browser.new_context(viewport={"width": 1500, "height": 1000})
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    page = context.new_page()
    page.set_default_timeout(120_000)
    newcomer = Newcomer(page)
    page.on("console", lambda m: newcomer.wrong.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: newcomer.wrong.append(str(error)))
    page.goto(f"{address}/lab/tree/first.ipynb")
    page.click(".jp-Cell >> nth=0")
    page.wait_for_selector('.jp-NotebookPanel-toolbar [data-status="idle"]', state="attached")
    page.wait_for_selector(".jp-StatusBar-TextItem:has-text('| Idle')")
    yield newcomer
    context.close()


ACTIONS: list[Callable[[Newcomer], None]] = []
SIN, TWICE = 2, 8
"""Cells with explorers that most actions are about."""


def action(does: Callable[[Newcomer], None]) -> Callable[[Newcomer], None]:
    ACTIONS.append(does)
    return does


@action
def loads_the_extension(user: Newcomer) -> None:
    assert user.run(1).strip() == ""


@action
def compiles_a_cell(user: Newcomer) -> None:
    user.run(SIN)
    assert "pythagoras" in user.explorer(SIN).locator("h1").inner_text()
    assert "→ 1 fused" in user.explorer(SIN).locator(".lab-facts").inner_text()


@action
def points_at_a_line(user: Newcomer) -> None:
    explorer = user.explorer(SIN)
    explorer.locator('[data-pane="source"] .lab-line', has_text="one = torch.sin").hover()
    lit = explorer.locator('.lab-pane[data-pane="g0.forward.code"] .lab-line.lit')
    assert any("lab_sin" in text for text in lit.all_inner_texts())


@action
def pins_it(user: Newcomer) -> None:
    explorer = user.explorer(SIN)
    explorer.locator('[data-pane="source"] .lab-line', has_text="one = torch.sin").click()
    assert "has-pin" in explorer.get_attribute("class")
    assert "lab" not in explorer.locator(".lab-trail").inner_text().split("→")[0]


@action
def follows_the_trail(user: Newcomer) -> None:
    trail = user.explorer(SIN).locator(".lab-trail button")
    assert trail.count() >= 3
    trail.last.click()


@action
def lets_go(user: Newcomer) -> None:
    user.page.keyboard.press("Escape")
    assert "has-pin" not in user.explorer(SIN).get_attribute("class")


@action
def walks_the_phases_with_brackets(user: Newcomer) -> None:
    explorer = user.explorer(SIN)
    explorer.locator(".lab-pane").first.click(position={"x": 200, "y": 200})
    before = explorer.locator(".lab-pane.focused").get_attribute("data-pane")
    user.page.keyboard.press("]")
    after = explorer.locator(".lab-pane.focused").get_attribute("data-pane")
    user.page.keyboard.press("[")
    assert before != after
    assert explorer.locator(".lab-pane.focused").get_attribute("data-pane") == before


@action
def searches(user: Newcomer) -> None:
    user.page.keyboard.press("/")
    user.page.keyboard.type("cos")
    explorer = user.explorer(SIN)
    explorer.locator(".lab-found-count:not([aria-busy])").wait_for(state="attached")
    assert re.fullmatch(r"1 of \d+", explorer.locator(".lab-found-count").inner_text())
    user.page.keyboard.press("Enter")
    assert explorer.locator(".found").count() >= 2
    assert explorer.locator(".lab-elsewhere button").count() >= 1


@action
def ends_the_search(user: Newcomer) -> None:
    user.page.keyboard.press("Escape")
    assert user.explorer(SIN).locator(".found").count() == 0


@action
def asks_what_a_number_means(user: Newcomer) -> None:
    explorer = user.explorer(SIN)
    explorer.locator(".lab-fact", has_text="memory passes").hover()
    assert len(explorer.locator(".lab-tip:visible").inner_text()) > 40


@action
def clicks_on_a_number(user: Newcomer) -> None:
    explorer = user.explorer(SIN)
    explorer.locator(".lab-fact", has_text="peak memory").click()
    pane = explorer.locator(".lab-pane.focused")
    assert pane.get_attribute("data-pane") == "g0.forward.memory"


@action
def opens_the_schedule(user: Newcomer) -> None:
    pane = user.rail(SIN, "g0.forward.schedule")
    assert pane.locator(".lab-node").count() >= 3


@action
def zooms_and_fits_the_graph(user: Newcomer) -> None:
    pane = user.explorer(SIN).locator('.lab-pane[data-pane="g0.forward.schedule"]')
    pane.locator(".lab-graph").focus()
    width = pane.locator(".lab-node").first.bounding_box()["width"]
    user.page.keyboard.press("+")
    assert pane.locator(".lab-node").first.bounding_box()["width"] > width
    user.page.keyboard.press("f")
    assert abs(pane.locator(".lab-node").first.bounding_box()["width"] - width) < 2


@action
def reads_why_two_loops_were_fused(user: Newcomer) -> None:
    pane = user.explorer(SIN).locator('.lab-pane[data-pane="g0.forward.schedule"]')
    pane.locator(".lab-tabs >> text=decisions").click()
    pane.locator(".lab-open").first.click()
    assert "same_iteration_space" in pane.inner_text()


@action
def forbids_a_fusion(user: Newcomer) -> None:
    user.explorer(SIN).locator(".lab-pair >> text=forbid >> nth=0").click()
    assert re.match(r"1 → 2 kernels", user.verdict(SIN, "kernels"))
    changed = user.explorer(SIN).locator('.lab-pane[data-pane="whatif"] .lab-line.added')
    assert changed.count() > 3


@action
def asks_for_the_assembly_of_what_is_changed(user: Newcomer) -> None:
    explorer = user.explorer(SIN)
    explorer.locator(".lab-whatif select").select_option(value='{"show":"assembly"}')
    pane = explorer.locator('.lab-pane[data-pane="g0.forward.assembly"]')
    pane.locator(".lab-note", has_text="With the changes").wait_for()
    assert pane.locator(".lab-line.linked").count() > 5
    assert pane.locator(".lab-block-title").count() == 2


@action
def takes_it_back(user: Newcomer) -> None:
    """The assembly follows."""
    explorer = user.explorer(SIN)
    explorer.locator(".lab-chip").click()
    explorer.locator('.lab-rail [data-pane="whatif"]').wait_for(state="detached")
    pane = explorer.locator('.lab-pane[data-pane="g0.forward.assembly"]')
    pane.locator(".lab-note", has_text="With the changes").wait_for(state="detached")
    assert pane.locator(".lab-block-title").count() == 1


@action
def measures_with_a_button(user: Newcomer) -> None:
    explorer = user.explorer(SIN)
    explorer.locator(".lab-whatif button", has_text="bench").click()
    pane = explorer.locator('.lab-pane[data-pane="bench"]')
    pane.locator("td", has_text="inductor_lab").first.wait_for()
    pane.locator("[role=tab]", has_text="compilers").click()
    assert {"eager", "inductor"} <= set(pane.locator("td:first-child").all_inner_texts())


@action
def asks_for_the_code_of_a_gpu(user: Newcomer) -> None:
    pytest.importorskip("triton")
    explorer = user.explorer(SIN)
    choice = '{"show":"ladder","target":"cuda:90"}'
    explorer.locator(".lab-whatif select").select_option(value=choice)
    pane = explorer.locator('.lab-pane[data-pane="g0.forward.ladder"]')
    pane.wait_for()
    assert {"ttir", "ptx"} <= {tab.lower() for tab in pane.locator("[role=tab]").all_inner_texts()}
    pane.locator("[role=tab]", has_text=re.compile("ptx", re.I)).click()
    assert ".visible .entry" in pane.inner_text()


@action
def breaks_a_kernel(user: Newcomer) -> None:
    pane = user.rail(SIN, "g0.forward.code")
    pane.locator(".lab-edit").click()
    text = pane.locator("textarea")
    text.fill(text.input_value().replace("lab_cos", "lab_kos"))
    pane.locator(".lab-editor button", has_text="run").click()
    error = pane.locator(".lab-editor-errors button", has_text="lab_kos").first
    error.wait_for()
    line = int(error.inner_text().split()[1].rstrip(":"))
    assert "lab_kos" in text.input_value().split("\n")[line - 1]
    assert str(line) in pane.locator(".lab-editor-numbers .wrong").all_inner_texts()


@action
def makes_it_wrong(user: Newcomer) -> None:
    pane = user.explorer(SIN).locator('.lab-pane[data-pane="g0.forward.code"]')
    text = pane.locator("textarea")
    text.fill(text.input_value().replace("lab_kos", "lab_exp"))
    pane.locator(".lab-editor button", has_text="run").click()
    pane.locator(".lab-editor-said.no", has_text="wrong: result 0").wait_for()


@action
def rewrites_it(user: Newcomer) -> None:
    pane = user.explorer(SIN).locator('.lab-pane[data-pane="g0.forward.code"]')
    pane.locator(".lab-editor button", has_text="restore generated code").click()
    text = pane.locator("textarea")
    text.fill(text.input_value().replace("return 0;", "return 0;  // the same"))
    pane.locator(".lab-editor button", has_text="run").click()
    said = pane.locator(".lab-editor-said.ok")
    said.wait_for()
    assert "agrees with eager" in said.inner_text() and "the original" in said.inner_text()
    pane.locator(".lab-edit").click()
    assert pane.locator("textarea").count() == 0


@action
def edits_the_size_of_an_input(user: Newcomer) -> None:
    pane = user.rail(SIN, "guards")
    pane.locator('[data-input="x"] [data-fact="size"]').fill("20")
    assert pane.locator(".lab-guard-verdict b").inner_text() == "recompile"


@action
def runs_the_edited_call(user: Newcomer) -> None:
    pane = user.explorer(SIN).locator('.lab-pane[data-pane="guards"]')
    pane.locator(".lab-run-it").click()
    pane.locator(".lab-guard-said:has-text('recompiled')").wait_for()
    assert "expected 1000, actual 20" in pane.inner_text()


@action
def calls_again_and_looks_at_the_list_of_calls(user: Newcomer) -> None:
    pane = user.explorer(SIN).locator('.lab-pane[data-pane="guards"]')
    pane.locator("text=reset").click()
    pane.locator(".lab-run-it").click()
    pane.locator(".lab-calls tbody tr").nth(1).wait_for()
    first, second = pane.locator(".lab-calls tbody tr").all_inner_texts()
    assert "recompiled in" in first and "expected 1000, actual 20" in first
    assert "reused" in second


@action
def types_nonsense(user: Newcomer) -> None:
    pane = user.explorer(SIN).locator('.lab-pane[data-pane="guards"]')
    pane.locator('[data-input="x"] [data-fact="size"]').fill("ten")
    assert pane.locator(".lab-refused").first.inner_text() == "integers, such as 8, 16"


@action
def steps_through_the_bytecode(user: Newcomer) -> None:
    pane = user.rail(SIN, "steps")
    said = pane.locator(".lab-step-said")
    before = said.inner_text()
    for _ in range(3):
        pane.locator("[aria-label='next instruction']").click()
    assert said.inner_text() != before


@action
def opens_a_second_pane(user: Newcomer) -> None:
    explorer = user.explorer(SIN)
    before = explorer.locator(".lab-pane").count()
    explorer.locator('.lab-rail [data-pane="g0.forward.host"]').click(modifiers=["Shift"])
    assert explorer.locator(".lab-pane").count() == before + 1


@action
def closes_it(user: Newcomer) -> None:
    explorer = user.explorer(SIN)
    before = explorer.locator(".lab-pane").count()
    explorer.locator('.lab-pane[data-pane="g0.forward.host"] [aria-label=close]').click()
    assert explorer.locator(".lab-pane").count() == before - 1


@action
def copies_the_code(user: Newcomer) -> None:
    pane = user.rail(SIN, "g0.forward.code")
    pane.locator("[aria-label=copy]").click()
    pane.locator("text=copied").wait_for()
    assert "lab_sin" in user.page.evaluate("navigator.clipboard.readText()")


@action
def turns_the_light_off_and_on(user: Newcomer) -> None:
    explorer = user.explorer(SIN)
    before = explorer.get_attribute("data-theme")
    for other in (True, False):
        explorer.locator("[aria-label='light or dark theme']").click()
        assert (explorer.get_attribute("data-theme") != before) is other


@action
def asks_for_large_type(user: Newcomer) -> None:
    explorer = user.explorer(SIN)
    height = explorer.locator("h1").bounding_box()["height"]
    explorer.locator("[aria-label='presentation mode']").click()
    assert explorer.locator("h1").bounding_box()["height"] > 1.3 * height
    explorer.locator("[aria-label='presentation mode']").click()


@action
def looks_up_the_keys(user: Newcomer) -> None:
    explorer = user.explorer(SIN)
    explorer.locator(".lab-text").first.focus()
    user.page.keyboard.press("?")
    assert "previous and next stage" in explorer.locator(".lab-help").inner_text()
    user.page.keyboard.press("Escape")
    assert explorer.locator(".lab-help").count() == 0


@action
def compiles_a_cell_without_a_call(user: Newcomer) -> None:
    assert "nothing to compile" in user.run(3).lower()


@action
def multiplies_what_does_not_fit(user: Newcomer) -> None:
    said = user.run(4)
    assert "shape mismatch: [4, 8] @ [9, 3]" in said and "return c @ b" in said
    assert "Traceback" not in said.split("the graph so far")[0]


@action
def meets_a_graph_break(user: Newcomer) -> None:
    said = user.run(5)
    assert "half way" in said
    pane = user.rail(5, "breaks")
    assert "print" in pane.inner_text()


@action
def compiles_a_step_of_training(user: Newcomer) -> None:
    user.run(6)
    user.run(7)
    explorer = user.explorer(7)
    assert explorer.locator('.lab-rail [data-pane="g0.backward.code"]').count() == 1


@action
def moves_the_memory_budget(user: Newcomer) -> None:
    pane = user.rail(7, "g0.joint.cut")
    pane.locator(".lab-tabs >> text=budget").click()
    pane.locator(".lab-budget input[type=range]").fill("0")
    user.verdict(7, "kernels")
    user.explorer(7).locator(".lab-chip").click()


@action
def inspects_a_function(user: Newcomer) -> None:
    user.run(TWICE)
    assert "scaled" in user.explorer(TWICE).locator("h1").inner_text()


@action
def asks_in_python(user: Newcomer) -> None:
    said = user.run(9)
    assert re.search(r"\d kernels", said) and "expected 64, actual 5" in said


@action
def reads_the_source_with_its_bytes(user: Newcomer) -> None:
    assert "moved" in user.run(10)
    summary = user.page.locator(f"{user.cell(10)} summary").first
    summary.click()
    assert user.page.locator(f"{user.cell(10)} details[open] pre").count() == 1


@action
def saves_and_loads(user: Newcomer) -> None:
    user.run(11)
    explorer = user.page.locator(f"{user.cell(11)} .lab-explorer")
    explorer.locator(".lab-line").first.wait_for()
    assert explorer.locator(".lab-whatif").count() == 0, "nobody to ask"


@action
def measures_and_writes_a_report(user: Newcomer) -> None:
    user.run(12)
    user.page.wait_for_selector(f"{user.cell(12)} .lab-chart")


@action
def saves_the_notebook_from_the_explorer(user: Newcomer) -> None:
    user.explorer(SIN).locator(".lab-text").first.focus()
    user.page.keyboard.press("Control+s")
    user.page.wait_for_selector(".jp-mod-dirty", state="detached")


@action
def restarts_the_kernel(user: Newcomer) -> None:
    """A request without a kernel fails immediately, not after a timeout."""
    user.page.click(".lm-MenuBar-itemLabel:has-text('Kernel')")
    user.page.click(".lm-Menu-itemLabel:has-text('Restart Kernel…')")
    user.page.click(".jp-Dialog button:has-text('Restart')")
    user.page.wait_for_selector(".jp-Dialog", state="detached")
    explorer = user.explorer(TWICE)
    explorer.locator(".lab-whatif select").select_option(value='{"fusion":false}')
    said = explorer.locator(".lab-verdict:has-text('run the cell again')")
    said.wait_for(timeout=10_000)
    user.page.wait_for_selector(".jp-StatusBar-TextItem:has-text('| Idle')")


@pytest.mark.parametrize("does", ACTIONS, ids=lambda does: does.__name__)
def test_a_newcomer(user: Newcomer, does: Callable[[Newcomer], None]) -> None:
    does(user)


def test_the_console_has_no_errors(user: Newcomer, jupyterlab: tuple[str, Path]) -> None:
    assert len(ACTIONS) >= 40
    assert (jupyterlab[1] / "scaled.html").stat().st_size > 10_000
    assert user.wrong == []
