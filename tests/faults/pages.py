"""Hostile text in every field of a saved file: its page runs no script and uses no network."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

import inductor_lab as lab
from inductor_lab.saved import saving
from tests.faults import jobs
from tests.faults.child import batch, caches
from tests.faults.outcome import DEFECT, OK, SKIPPED, Tried, judged
from tests.faults.plan import Plan

PAYLOADS = (
    "<script>hit()</script>",
    "</script><script>hit()</script>",
    "<img src=x onerror=hit()>",
    "\"><svg onload=hit()>",
    "' onmouseover='hit()' x='",
    "\" autofocus onfocus=\"hit()",
    "javascript:hit()",
    '<a href="javascript:hit()">here</a>',
    "<iframe srcdoc='<script>parent.hit()</script>'></iframe>",
    "<img src=http://127.0.0.1:9/ask><link rel=stylesheet href=http://127.0.0.1:9/ask>",
    "</style><style>*{background:url(http://127.0.0.1:9/ask)}",
    "`${hit()}`{{hit()}}<%=hit()%>",
    "<!--<script>hit()//-->",
    "]]><script>hit()</script>",
    "\u2028hit()\u2029\0\ufeff\ud800",
    "&lt;script&gt;hit()&lt;/script&gt;",
    "x" * 20_000 + "<b>",
    "<details open ontoggle=hit()><math><mtext></title><img src=x onerror=hit()>",
)
TEXT, CONTAINERS = "s", "tlfSd"
Tree = Any


def tries(plan: Plan) -> Iterator[Tried]:
    chromium = browser()
    if not chromium:
        yield Tried("hostile text in a page", SKIPPED, "no Chromium, or no playwright")
        return
    folder = plan.place("pages")
    yield from batch(caches(plan.place("caches")), opened, folder, chromium, plan)


def browser() -> str:
    """The path of Chromium; "" if it or playwright is missing."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), "")
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return ""
    return found


def opened(folder: Path, chromium: str, plan: Plan) -> Iterator[Tried]:
    """Each field with all payloads, then each payload in all fields that accept it."""
    from playwright.sync_api import sync_playwright

    args = torch.ones(64), torch.ones(64, requires_grad=True)
    tree = saving.to_json(lab.inspect(jobs.bowl, *args))
    places = texts_by_field(tree)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        whole = shown(started, folder / "whole.json", tree, errors=True)
        yield Tried("a page without hostile text has no errors", *whole)
        names = plan.some(sorted(places), 10)
        for number, name in enumerate(names):
            payload = PAYLOADS if not plan.short else PAYLOADS[number % 3 :: 3]
            mapping = {text: "".join(payload) + text for text in places[name]}
            found, said = shown(started, folder / f"{number}.json", changed(tree, mapping))
            yield Tried("hostile text in one field", found, f"{name}: {said}")
        fine = set().union(*places.values()) - structural(tree, places)
        for payload in PAYLOADS if not plan.short else PAYLOADS[:3]:
            mapping = {text: payload + text for text in fine}
            found, said = shown(started, folder / "all.json", changed(tree, mapping))
            yield Tried("one hostile text in all fields", found, f"{payload[:40]}: {said}")
        started.close()


def structural(tree: Tree, places: Mapping[str, set[str]]) -> set[str]:
    """Texts that a file needs to be accepted and drawn: names of passes, devices, languages."""
    found: set[str] = set()
    for texts in places.values():
        mapping = {text: "<b>" + text for text in texts}
        if judged(drawn, changed(tree, mapping))[0] != OK:
            found |= texts
    return found


def drawn(tree: Tree) -> None:
    saving.from_json(tree).report(os.path.join(os.environ["TMPDIR"], "page.html"))


def shown(browser: Any, path: Path, tree: Tree, errors: bool = False) -> tuple[str, str]:
    """What becomes of a file, and of the page that is made of it.

    `errors` of the page itself count where its texts are what they were: a graph of another name is
    not found by its own page, and then less is drawn.
    """
    header = {"inductor_lab": saving.FORMAT, "kind": "Compilation"}
    path.write_text(json.dumps({**header, **tree}))
    pages: list[Path] = []
    outcome, said = judged(lambda: pages.append(lab.load(path).report(path.with_suffix(".html"))))
    if not pages:
        return outcome, said
    wrong = looked_at(browser, pages[0], errors)
    return (DEFECT, "; ".join(wrong)[:300]) if wrong else (OK, "")


HOOKS = "window.hits = 0; window.hit = () => { window.hits++ }; window.alert = window.hit;"
LOOK = """() => {
    for (const each of document.querySelectorAll("[role=tab], summary")) each.click();
    const wrong = [];
    for (const each of document.querySelectorAll("*"))
        for (const {name, value} of each.attributes) {
            if (name.startsWith("on")) wrong.push(`${each.tagName} has ${name}`);
            if (/^\\s*(javascript|http):/i.test(value)
                && ["href", "src", "action", "xlink:href", "srcdoc"].includes(name))
                wrong.push(`${each.tagName} has ${name}=${value}`);
        }
    if (window.hits) wrong.push(`${window.hits} times something ran`);
    return wrong;
}"""


def looked_at(browser: Any, page_file: Path, errors: bool) -> list[str]:
    """Forbidden actions of a page after every tab has been opened."""
    wrong: list[str] = []
    context = browser.new_context(offline=True)
    context.add_init_script(HOOKS)
    page = context.new_page()
    if errors:
        page.on("pageerror", lambda error: wrong.append(f"an error in the page: {error}"))
    page.on("dialog", lambda dialog: (wrong.append("a dialog"), dialog.dismiss()))
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else
            wrong.append(f"asked the network for {r.url}"))  # fmt: skip
    page.goto(page_file.resolve().as_uri())
    wrong += page.evaluate(LOOK)
    page.wait_for_timeout(50)
    if page.evaluate("window.hits"):
        wrong.append("something ran later")
    context.close()
    return wrong


# ---- texts of a saved file -------------------------------------------------------------------


def texts_by_field(tree: Tree) -> dict[str, set[str]]:
    """`"records.CompiledPart.name"` → the texts in this field."""
    found: dict[str, set[str]] = {}
    waiting = [*tree["table"], tree["root"]]
    while waiting:
        row = waiting.pop()
        if not isinstance(row, list):
            continue
        waiting.extend(row[1:])
        if row[0] == "o":
            for field, value in zip(tree["classes"][row[1]], row[2:], strict=True):
                texts = _texts(tree, value)
                if texts:
                    found.setdefault(f"{row[1]}.{field}", set()).update(texts)
    return found


def _texts(tree: Tree, value: Tree) -> set[str]:
    """The texts of a value that is a text, or a container of texts."""
    if isinstance(value, str):
        return {value}
    if not isinstance(value, list):
        return set()
    if value[0] == "r":
        return _texts(tree, tree["table"][value[1]])
    if value[0] == TEXT:
        return {value[1]}
    return set().union(*(_texts(tree, v) for v in value[1:])) if value[0] in CONTAINERS else set()


def changed(tree: Tree, mapping: Mapping[str, str]) -> Tree:
    """The same tree with replaced texts."""

    def rewritten(row: Tree) -> Tree:
        if isinstance(row, str):
            return mapping.get(row, row)
        if not isinstance(row, list) or not (row[0] in CONTAINERS or row[0] in (TEXT, "o", "z")):
            return row
        kept = 2 if row[0] in ("o", "z") else 1
        return [*row[:kept], *map(rewritten, row[kept:])]

    table = [rewritten(row) for row in tree["table"]]
    return {**tree, "table": table, "root": rewritten(tree["root"])}


