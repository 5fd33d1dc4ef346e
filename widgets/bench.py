"""Benchmarks as people see them: the page of a result, and the view of one that is running."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from IPython.display import HTML, display

from inductor_lab.bench.progress import Progress
from inductor_lab.bench.result import BenchResult, Experiments, Measured, SweepResult
from inductor_lab.display import Svg, write_text
from inductor_lab.errors import UnknownName
from inductor_lab.widgets.charts import (
    bench_chart,
    experiments_chart,
    roofline_chart,
    sweep_chart,
)
from inductor_lab.widgets.live import in_kernel
from inductor_lab.widgets.markup import Tree, element, table, written
from inductor_lab.widgets.page import bench_script, bench_style, bench_widget_script, page

HOW_TO_STOP = "Interrupt the kernel (■) to stop and keep what is measured."

def chart(result: Measured) -> Tree | None:
    """The picture that says most about a result; None as long as nothing was measured."""
    match result:
        case SweepResult():
            return sweep_chart(result)
        case Experiments():
            return experiments_chart(result)
        case BenchResult():
            return bench_chart(result)
    raise TypeError(f"no chart of a {type(result).__name__}")


def roofline(result: Measured) -> Tree | None:
    """Kernels under the machine's roofs, where they were measured."""
    if isinstance(result, BenchResult) and result.limits is not None:
        return roofline_chart(result.steps, result.limits)
    return None


def svg(result: Measured, view: str = "chart") -> Svg:
    """The "chart" or the "roofline" as the text of an SVG file; raises UnknownName."""
    drawn = {"chart": chart, "roofline": roofline}.get(view, lambda _: None)(result)
    if drawn is None:
        raise UnknownName(
            f"this {type(result).__name__} has no picture called {view!r}",
            todo="there is chart where something was timed, roofline where kernels were",
        )
    return Svg(written(drawn) + "\n")


def tree(result: Measured, running: Tree | None = None) -> Tree:
    """The whole page of a result, also of one that is not complete yet."""
    first, *others = result.tables
    return element(
        "div",
        {"class": "lab-bench"},
        element("h1", {}, result.title),
        element("p", {"class": "lab-machine"}, str(result.machine)),
        running,
        element("ul", {}, *(element("li", {}, sentence) for sentence in result.sentences)),
        chart(result),
        element("div", {"class": "lab-table"}, table(first.columns, first.rows))
        if len(first.columns) > 1 else None,
        roofline(result),
        *(part for more in others for part in (
            element("h2", {}, more.title),
            element("div", {"class": "lab-table"}, table(more.columns, more.rows)))),
        element("details", {}, element("summary", {}, "as Markdown"),
                element("pre", {"class": "lab-markdown"}, result.to_markdown())),
    )  # fmt: skip


def html(result: Measured) -> str:
    """For a cell's output: readable without a script, which only adds a button."""
    name = f"lab-{secrets.token_hex(6)}"
    return (
        f'<style>{bench_style()}</style><div id="{name}">{written(tree(result))}</div>'
        f'<script type="module">\n{bench_script()}\n'
        f'addButtons(document.getElementById("{name}"));\n</script>'
    )


def write_page(result: Measured, path: Path) -> Path:
    """One HTML file with everything in it; raises CannotWrite."""
    return write_text(path, page(result.title, html(result)), "report")


class RunningBenchmark(anywidget.AnyWidget):
    """A widget that draws the tree that it is given, each time it is given another."""

    _esm = bench_widget_script()
    _css = bench_style()
    tree = traitlets.List().tag(sync=True)


class LiveProgress(Progress):
    """Bar, plot and table in the output of the cell that runs; a line when it is done.

    The line alone stays because the cell shows the result itself, if it is its last value.
    """

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._widget = RunningBenchmark(tree=element("div", {"class": "lab-bench"}, "starting …"))
        self._handle = display(self._widget, display_id=True)

    def told(self, done: float, doing: str, result: Any) -> None:
        seconds = time.perf_counter() - self._started
        self._widget.tree = tree(result, running(done, doing, seconds))

    def finished(self, result: Any) -> None:
        took = time.perf_counter() - self._started
        how = f"measured in {took:.1f} s" if result.complete else f"stopped after {took:.1f} s"
        line = element("div", {"class": "lab-bench"}, element("p", {}, f"{result.title}: {how}"))
        self._handle.update(HTML(f"<style>{bench_style()}</style>{written(line)}"))
        self._widget.close()


def running(done: float, doing: str, seconds: float) -> Tree:
    """The bar, what is being done, and since when."""
    percent = f"{100 * done:.0f}"
    bar = {"class": "lab-progress", "role": "progressbar", "aria-label": "benchmark",
           "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": percent}  # fmt: skip
    # the page counts on from here, as Python may be busy for long
    passed = f"{seconds:.1f}"
    since = element("span", {"class": "lab-since", "data-since": passed}, f"{passed} s")
    return element(
        "div",
        {"class": "lab-running"},
        element("div", bar, element("div", {"style": f"width:{percent}%"})),
        element("p", {}, f"{percent} %  {doing} · ", since),
        element("p", {"class": "lab-machine"}, HOW_TO_STOP),
    )


def live() -> LiveProgress | None:
    """A live view where a Jupyter kernel runs; None elsewhere."""
    return LiveProgress() if in_kernel() else None
