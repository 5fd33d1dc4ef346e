"""Pictures in docs/ of pages as they are now: `python -m deploy.site.pictures FOLDER [NAME ...]`.

Names are those of PICTURES; none are all of them.  Needs playwright, Chromium and, for a model,
transformers; with Pillow the files have 128 colours, and a third of the size.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import inductor_lab as lab

COLOURS = 128
SOURCE = """import torch

def pythagoras(x):
    one = torch.sin(x) ** 2
    return one + torch.cos(x) ** 2

def layered(x, w, n):
    h = torch.exp(torch.sin(x)).tanh() * n
    return torch.softmax(h @ w, -1).sigmoid() @ w

def attend(x, y, w):
    a = torch.softmax(x + y, -1)
    b = (a @ w).relu()
    c = b.sum(0) + a.mean()
    return c, (x * 2).cumsum(0).t().contiguous()
"""
STOCK = ("source", "g0.forward.code", "g0.forward.graph", "g0.backward.graph")
VIEWS = ("guards", "steps", "g0.joint.cut", "g0.forward.memory")


def pin_a_line(page: Any) -> None:
    """The first line, lit in all panes."""
    page.locator('[data-pane="source"] .lab-line', has_text="one = torch.sin").click()
    page.mouse.move(700, 790)


def open_panes(page: Any, names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        page.locator(".lab-pane .lab-pane-head > select").nth(place).select_option(name)


def stocks_views(page: Any) -> None:
    """Source and code above, both graphs below, and a line of the source pinned."""
    open_panes(page, STOCK)
    page.locator('[data-pane="source"] .lab-line', has_text="softmax").click()
    page.mouse.move(700, 790)


def four_views(page: Any) -> None:
    """Guards to try, TorchDynamo's instructions, a memory budget, buffers in their storage."""
    open_panes(page, VIEWS)
    page.locator(".lab-pane").nth(2).locator(".lab-tabs button", has_text="budget").click()
    page.locator(".lab-pane").nth(1).locator("input[type=range]").fill("9")
    page.mouse.move(700, 790)


def picture(
    browser: Any, report: Path, file: Path, look: tuple[int, bool], then: Callable[[Any], None]
) -> None:
    """One report as a file, so wide, dark or not, after something was done in it."""
    width, dark = look
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    page.goto(report.as_uri())
    page.wait_for_selector(".lab-rail, .lab-bench")
    then(page)
    page.wait_for_timeout(500)
    page.screenshot(path=str(file))
    context.close()
    if importlib.util.find_spec("PIL"):
        from PIL import Image

        image = Image.open(file).convert("RGB")
        image.quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


def page_of(shown: Any, file: Path) -> Path:
    """A result as a notebook's cell shows it, as a page."""
    file.write_text(f"<!doctype html><meta charset=utf-8>{shown._repr_html_()}", encoding="utf-8")
    return file


def explorer(folder: Path) -> Path:
    """A small function, forward and backward."""
    import trig

    c = lab.inspect(trig.pythagoras, torch.randn(1000, requires_grad=True))
    return c.report(folder / "small.html")


def views(folder: Path) -> Path:
    """A function with a product and saved values."""
    import trig

    x, w = torch.randn(16, 8, requires_grad=True), torch.randn(8, 8, requires_grad=True)
    return lab.inspect(trig.layered, x, w, 2).report(folder / "larger.html")


def stock(folder: Path) -> Path:
    """What TorchInductor made of a function."""
    import trig

    given = [torch.randn(64, 64, requires_grad=True) for _ in range(3)]
    return lab.inspect(trig.attend, *given, compiler="stock").report(folder / "stock.html")


def bench(folder: Path) -> Path:
    """Eager, stock and ours, forward and backward."""
    import trig

    x = torch.randn(4_000_000, requires_grad=True)
    return lab.bench(trig.pythagoras, x, backward=True).report(folder / "bench.html")


def profile(folder: Path) -> Path:
    """Four layers of MobileBERT, each kernel with its lines."""
    from transformers import MobileBertConfig, MobileBertModel

    model = MobileBertModel(MobileBertConfig(num_hidden_layers=4, vocab_size=1000)).eval()

    def run(ids: torch.Tensor) -> torch.Tensor:
        return model(ids).last_hidden_state

    with torch.no_grad():
        c = lab.inspect(run, torch.randint(0, 1000, (4, 128)))
    return page_of(c.profile(), folder / "profile.html")


def ranks(folder: Path) -> Path:
    """A tensor parallel training step on two ranks, side by side."""
    torch.multiprocessing.spawn(one_rank, (str(folder),), nprocs=2)
    return page_of(lab.join(sorted(folder.glob("rank*.lab.json"))), folder / "ranks.html")


def one_rank(rank: int, folder: str) -> None:
    """Two blocks, each of which sums over the ranks forwards and backwards."""
    from torch import distributed as dist
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    store = dist.FileStore(f"{folder}/store", 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    torch.manual_seed(0)
    blocks = nn.Sequential(*(
        nn.Sequential(nn.LayerNorm(512), nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512))
        for _ in range(2)
    ))  # fmt: skip
    for block in blocks:
        plan = {"1": ColwiseParallel(), "3": RowwiseParallel()}
        parallelize_module(block, init_device_mesh("cpu", (2,)), plan)

    def step(x: torch.Tensor) -> torch.Tensor:
        for block in blocks:
            x = x + block(x)
        return x.square().mean()

    lab.inspect(step, torch.randn(8, 128, 512)).save(f"{folder}/rank{rank}.lab.json")
    dist.barrier()
    dist.destroy_process_group()


def as_it_is(page: Any) -> None:
    """Nothing is done; the window is as high as its page."""
    height = page.evaluate("document.documentElement.getBoundingClientRect().height")
    page.set_viewport_size({"width": page.viewport_size["width"], "height": min(int(height), 900)})


PICTURES: dict[str, tuple[Callable[[Path], Path], int, bool, Callable[[Any], None]]] = {
    "explorer": (explorer, 1400, False, pin_a_line),
    "explorer-dark": (explorer, 1400, True, pin_a_line),
    "explorer-views": (views, 1400, False, four_views),
    "stock": (stock, 1400, False, stocks_views),
    "bench": (bench, 960, False, as_it_is),
    "profile": (profile, 1200, False, as_it_is),
    "ranks": (ranks, 1000, False, as_it_is),
}
"""Name of the file -> what writes the page, its width, is it dark, what is done in it."""


def main(into: Path, names: list[str]) -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        folder = Path(place)
        (folder / "trig.py").write_text(SOURCE, encoding="utf-8")
        sys.path.insert(0, place)
        os.chdir(folder)
        path = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name in names or PICTURES:
            made, width, dark, then = PICTURES[name]
            picture(browser, made(folder), into / f"{name}.png", (width, dark), then)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
