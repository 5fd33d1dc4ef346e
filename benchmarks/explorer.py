"""How fast the explorer appears, and how fast it responds: `python -m benchmarks.explorer`.

It starts a kernel and runs two cells, as in a notebook; then it opens the reports of BERT-base and
of a training step of a GPT-2 with 24 layers in headless Chromium.  Each line has its target; on a
busy machine only the ratios are meaningful.  Needs ipykernel, transformers, playwright and
Chromium.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import torch

import inductor_lab as lab
from inductor_lab.bench.demo.programs import PROGRAMS
from inductor_lab.widgets.picture import Item, draw

Row = tuple[str, float, float, str]
"""What was measured, how much, the target, the unit."""

CELLS = (
    "import torch\n%load_ext inductor_lab",
    "%%compile\ndef trig(x):\n    return torch.sin(x) ** 2 + torch.cos(x) ** 2\n"
    "trig(torch.randn(1000, requires_grad=True))",
)
HOVERS = 60
HOVER = """lines => {
  const took = [];
  for (const line of [...document.querySelectorAll(".lab-line.linked")].slice(0, lines)) {
    const start = performance.now();
    line.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
    document.body.getBoundingClientRect();
    took.push(performance.now() - start);
  }
  return took;
}"""
SEARCH = """async (words) => {
  const field = document.querySelector("input[type=search]"), took = [];
  for (const word of words) {
    const start = performance.now();
    field.value = word;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    document.body.getBoundingClientRect();
    took.push(performance.now() - start);
    await new Promise((done) => setTimeout(done, 100));
  }
  return took;
}"""
WORDS = ("a", "ad", "add", "addm", "addmm", "s", "so", "soft", "softmax", "")
EXPAND = """() => {
  const start = performance.now();
  const frame = document.querySelector(".lab-node.closed");
  frame.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  document.body.getBoundingClientRect();
  return performance.now() - start;
}"""
ELEMENTS = "document.querySelectorAll('*').length"
GUARDS = """() => {
  const start = performance.now();
  document.querySelector('.lab-rail [data-pane="guards"]').click();
  document.body.getBoundingClientRect();
  return performance.now() - start;
}"""
DRAWN = 'performance.getEntriesByName("inductor_lab: draw")[0].duration'


def notebook_seconds() -> Iterator[Row]:
    """From Shift-Enter to the explorer's output, for the first and the second `%%compile`."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel()
    try:
        _run(client, CELLS[0])
        yield "first %%compile of a session", _run(client, CELLS[1]), 4.0, "s"
        yield "second %%compile", _run(client, CELLS[1]), 2.0, "s"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _run(client: Any, cell: str) -> float:
    start, shown = time.perf_counter(), 0.0

    def output(message: dict[str, Any]) -> None:
        nonlocal shown
        if message["msg_type"] in ("display_data", "execute_result"):
            shown = time.perf_counter() - start

    client.execute_interactive(cell, output_hook=output)
    return shown


def bert_figures(folder: Path) -> Iterator[Row]:
    """Sizes of the written files, and the response times of the report's page."""
    fn, args = next(program for program in PROGRAMS if program.name == "bert").make()
    compilation = lab.inspect(fn, *args)
    megabytes = compilation.save(folder / "bert.json").stat().st_size / 1e6
    yield "BERT-base, saved", megabytes, 10.0, "MB"
    report = compilation.report(folder / "bert.html")
    yield "BERT-base's report", report.stat().st_size / 1e6, 2.0, "MB"
    yield from page_times(report, "BERT-base's report")


def large_figures(folder: Path) -> Iterator[Row]:
    """Forward and backward of GPT-2 with 24 layers of 256: processor time, sizes, and responses."""
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_layer": 24, "n_embd": 256, "n_head": 4, "vocab_size": 2000}
    model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
    tokens = torch.randint(0, 2000, (2, 64))
    start = time.process_time()
    compilation = lab.inspect(lambda tokens: model(tokens, labels=tokens).loss, tokens)
    yield "GPT-2, 24 layers, compiled", time.process_time() - start, 60.0, "s"
    start = time.process_time()
    report = compilation.report(folder / "gpt2.html")
    yield "its report written", time.process_time() - start, 8.0, "s"
    yield "its report", report.stat().st_size / 1e6, 8.0, "MB"
    start = time.process_time()
    saved = compilation.save(folder / "gpt2.json")
    yield "saved", time.process_time() - start, 4.0, "s"
    start = time.process_time()
    lab.load(saved)
    yield "loaded", time.process_time() - start, 2.0, "s"
    yield from page_times(report, "its report")


def page_times(report: Path, name: str) -> Iterator[Row]:
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(report.as_uri())
        page.wait_for_selector(".lab-explorer")
        yield f"{name} drawn", page.evaluate(DRAWN) / 1e3, 1.0, "s"
        yield "elements of the page", page.evaluate(ELEMENTS), 5000.0, ""
        yield "guards opened", page.evaluate(GUARDS) / 1e3, 0.2, "s"
        page.click('.lab-rail [data-pane="g0.forward.graph"]')
        yield "one frame of its graph opened", page.evaluate(EXPAND) / 1e3, 0.1, "s"
        hovers = page.evaluate(HOVER, HOVERS)
        yield "a hover, median", statistics.median(hovers) / 1e3, 0.05, "s"
        yield "a hover, slowest", max(hovers) / 1e3, 0.05, "s"
        keys = page.evaluate(SEARCH, WORDS)
        yield "a letter in search, median", statistics.median(keys) / 1e3, 0.05, "s"
        yield "a letter in search, slowest", max(keys) / 1e3, 0.05, "s"
        browser.close()


def layout_seconds(calls: int = 4000, inputs: int = 1000) -> Iterator[Row]:
    """Processor time of a graph's layout: each call reads two of the last 300 results."""
    items = [Item(f"in{n}", f"primals_{n}", "f32[4]", "input") for n in range(inputs)]
    items += [Item(f"n{n}", f"add_{n}", "f32[4]") for n in range(calls)]
    took = []
    for seed in range(3):  # equal graphs are laid out once
        random = Random(seed)
        edges = [(f"in{random.randrange(inputs)}", f"n{n}") for n in range(0, calls, 4)]
        for n in range(calls):
            for source in (n - random.randrange(1, 300) for _ in range(2)):
                before = source % inputs if source < 0 else inputs + source
                edges.append((items[before].name, f"n{n}"))
        start = time.process_time()
        draw("many", items, (), edges)
        took.append(time.process_time() - start)
    yield f"a graph of {len(items):,} boxes laid out", min(took), 1.0, "s"


def main() -> None:
    rows = [*layout_seconds(), *notebook_seconds()]
    with tempfile.TemporaryDirectory() as folder:
        rows += [*bert_figures(Path(folder)), *large_figures(Path(folder))]
    for name, value, target, unit in rows:
        print(f"{name:32} {value:8.3f} {unit:2}   target {target:g}   {value / target:5.0%} of it")


if __name__ == "__main__":
    main()
