"""Every key of the list of shortcuts, in every kind of place that can have the focus.

In JupyterLab: a key of the explorer does what the list says, the focus stays in the explorer, and
the notebook does not react: no cell is deleted, split, run or left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import ROOT, opened_notebook

CELLS = (
    "import torch\n%load_ext inductor_lab",
    "%%compile\n"
    "def layered(x, w, n):\n"
    "    h = torch.exp(torch.sin(x)).tanh() * n\n"
    "    return torch.softmax(h @ w, -1).sigmoid() @ w\n"
    "\n"
    "layered(torch.randn(16, 8, requires_grad=True), torch.randn(8, 8, requires_grad=True), 2)",
    "'below'",
)
EXPLORER = ".jp-Cell:nth-child(2) .lab-explorer"
FOCUSABLE = "button, select, input, textarea, summary, [tabindex='0'], [tabindex='-1']"
PLACES = """(root, focusable) => [...root.querySelectorAll(focusable)].map((element, number) => {
  element.dataset.place = number;
  const { tagName, className, disabled } = element, name = element.ariaLabel || element.title || "";
  const kind = element.closest(".lab-body > *")?.getAttribute("class") || "";
  const box = element.getBoundingClientRect();
  return { number, seen: box.width > 0 && box.height > 0 && !disabled,
    what: [tagName, className.baseVal ?? className, element.type, name, kind].join(" ") };
})"""
FOCUS = """(root, number) =>
  root.querySelector(`[data-place="${number}"]`)?.focus({ preventScroll: true })"""
STATE = """root => {
  const focus = document.activeElement, cells = [...document.querySelectorAll(".jp-Cell")];
  return {
    inside: root.contains(focus), place: focus.dataset.place ?? null,
    search: focus.type === "search", help: !!root.querySelector(".lab-help"),
    large: root.classList.contains("presenting"), full: document.fullscreenElement === root,
    stage: root.querySelector(".lab-pane.focused .lab-pane-head select")?.value ?? null,
    tab: root.querySelector(".lab-pane.focused [role=tab][aria-selected=true]")?.textContent ?? "",
    cells: cells.map((cell) => cell.querySelector(".cm-content")?.innerText),
    active: cells.findIndex((cell) => cell.classList.contains("jp-mod-active")),
    runs: cells.map((cell) => cell.querySelector(".jp-InputPrompt")?.innerText),
    dialog: document.querySelector(".jp-Dialog")?.innerText ?? "",
  };
}"""
NOTEBOOK = ("cells", "active", "runs", "dialog")
ADVERTISED = re.findall(r'^  \["(.+?)", "', (ROOT / "javascript/help.js").read_text(), re.MULTILINE)
KEYS = {
    "click, Enter": ["Enter"], "Esc": ["Escape"], "[ ]": ["]", "["], "/": ["/"], "d": ["d"],
    "f + -": ["f", "+", "-"], "n p": ["n", "p"], "P": ["P"], "F": ["F"], "?": ["?"],
    "arrows": ["ArrowDown", "ArrowUp", "ArrowRight", "ArrowLeft"],
    "line between panes": ["ArrowRight", "ArrowLeft"],
    "hover": [], "Shift-click": [],
}  # fmt: skip
"""The keys of each entry of the list; `hover` and `Shift-click` are the mouse's."""
FIELDS = ("INPUT", "SELECT", "TEXTAREA")
PRESSED_ELSEWHERE = ("close", "save", "copy", "reset", "run", "edit", "what if", "bench",
                     "memory of one step")  # fmt: skip
"""Buttons that remove their place, write files or start work; others test them."""


@pytest.fixture(scope="module")
def page(browser: Any, jupyterlab: tuple[str, Path]) -> Iterator[Any]:
    opened = opened_notebook(browser, jupyterlab, CELLS, "keys.ipynb")
    opened.keyboard.press("Shift+Enter")
    opened.wait_for_selector(f"{EXPLORER}.live .lab-line")
    yield opened
    opened.context.close()


def views(page: Any) -> Iterator[str]:
    """Open each view of each stage in turn."""
    explorer = page.locator(EXPLORER)
    for stage in explorer.locator(".lab-rail [data-pane]").evaluate_all(
        "all => all.map((one) => one.dataset.pane)"
    ):
        explorer.locator(f'.lab-rail [data-pane="{stage}"]').click()
        tabs = explorer.locator(".lab-pane.focused [role=tab]").count()
        for tab in range(max(tabs, 1)):
            if tabs:
                explorer.locator(".lab-pane.focused [role=tab]").nth(tab).click()
            yield f"{stage} {tab}"


def test_the_list_has_no_other_keys() -> None:
    assert {*ADVERTISED} == {*KEYS}


def test_every_key_in_every_place(page: Any) -> None:
    explorer = page.locator(EXPLORER)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    seen: set[str] = set()
    keys = list(dict.fromkeys(key for each in KEYS.values() for key in each))
    for view in views(page):
        for place in explorer.evaluate(PLACES, FOCUSABLE):
            what = re.sub(r"\d+", "0", place["what"])
            if not place["seen"] or what in seen:
                continue
            seen.add(what)
            for key in keys:
                said = pressed(page, place["number"], what, key)
                wrong += [f"{view}: {what}: {key}: {each}" for each in said]
    assert not wrong, "\n".join(wrong[:40])
    assert len(seen) > 40, seen


def pressed(page: Any, number: int, what: str, key: str) -> list[str]:
    """What is wrong after one key in one place."""
    explorer = page.locator(EXPLORER)
    tag = what.partition(" ")[0]
    is_typed = tag in FIELDS
    if (is_typed or (tag == "BUTTON" and any(word in what for word in PRESSED_ELSEWHERE))) and (
        key == "Enter" or key.startswith("Arrow")
    ):
        return []
    explorer.evaluate(FOCUS, number)
    before = explorer.evaluate(STATE)
    if before["place"] != str(number):  # the view has been redrawn, or it cannot have the focus now
        return []
    for _ in range(2 if key == "d" else 1):  # `d d` deletes a cell in JupyterLab
        page.keyboard.press(key)
    after = explorer.evaluate(STATE)
    wrong = [f"{name} {json.dumps(before[name])} → {json.dumps(after[name])}"
             for name in NOTEBOOK if not same(before[name], after[name])]  # fmt: skip
    if not after["inside"]:
        wrong.append("the focus left the explorer")
    if is_typed:
        names = ("help", "large", "full")
        wrong += [f"a typed key changed {name}" for name in names if before[name] != after[name]]
    else:
        wrong += effect(key, before, after)
    undo(page, key, is_typed)
    return wrong


def same(before: Any, after: Any) -> bool:
    """Lists have one value for each cell; JupyterLab does not draw cells that are out of view."""
    if not isinstance(before, list) or not isinstance(after, list):
        return bool(before == after)
    pairs = zip(before, after, strict=False)
    return len(before) == len(after) and all(a == b for a, b in pairs if a and b)


def effect(key: str, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What a key of the whole explorer should have done, and did not."""
    done = {
        "?": after["help"], "/": after["search"], "P": after["large"] != before["large"],
        "F": after["full"] != before["full"], "]": after["stage"] != before["stage"],
        "[": after["stage"] != before["stage"], "Escape": not after["help"],
    }  # fmt: skip
    return [] if done.get(key, True) else ["it did nothing"]


def undo(page: Any, key: str, is_typed: bool) -> None:
    """Restore what a key has changed, so that the place is still there."""
    back = {"?": "Escape", "/": "Escape", "P": "P", "F": "F", "]": "[", "[": "]"}
    if key in back and not is_typed:
        page.keyboard.press(back[key])
