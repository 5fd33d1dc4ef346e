"""A running benchmark in the output of its cell: progress bar, plot and table so far."""

from __future__ import annotations

import time
from typing import Any

import anywidget
import traitlets
from IPython.display import HTML, display

from inductor_lab.bench.progress import Progress
from inductor_lab.notebook.language import say
from inductor_lab.widgets.bench import tree
from inductor_lab.widgets.markup import Tree, element, written
from inductor_lab.widgets.page import bench_style, bench_widget_script

HOW_TO_STOP = "Interrupt the kernel (■) to stop. Results so far are kept."


class RunningBenchmark(anywidget.AnyWidget):
    """A widget that draws its `tree`, and redraws it when the tree changes."""

    _esm = bench_widget_script()
    _css = bench_style()
    tree: traitlets.List[Any] = traitlets.List().tag(sync=True)


class LiveProgress(Progress):
    """Progress bar, plot and table in the output of the running cell; one line when it is done.

    Only the line remains, since the cell displays the result itself if it is its last expression.
    """

    def __init__(self) -> None:
        self._started = time.perf_counter()
        begun = element("div", {"class": "lab-bench"}, say("starting …"))
        self._widget = RunningBenchmark(tree=begun)
        self._handle = display(self._widget, display_id=True)

    def update(self, done: float, doing: str, result: Any) -> None:
        seconds = time.perf_counter() - self._started
        self._widget.tree = tree(result, running(done, doing, seconds))

    def finished(self, result: Any) -> None:
        took = time.perf_counter() - self._started
        how = "measured in {took:.1f} s" if result.complete else "stopped after {took:.1f} s"
        text = f"{result.title}: {say(how, took=took)}"
        line = element("div", {"class": "lab-bench"}, element("p", {}, text))
        self._handle.update(HTML(f"<style>{bench_style()}</style>{written(line)}"))
        self._widget.close()


def running(done: float, doing: str, seconds: float) -> Tree:
    """The progress bar, the current step, and the elapsed time."""
    percent = f"{100 * done:.0f}"
    bar = {"class": "lab-progress", "role": "progressbar", "aria-label": "benchmark",
           "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": percent}  # fmt: skip
    # the page continues counting, since Python may not send an update for a long time
    passed = f"{seconds:.1f}"
    since = element("span", {"class": "lab-since", "data-since": passed}, f"{passed} s")
    return element(
        "div",
        {"class": "lab-running"},
        element("div", bar, element("div", {"style": f"width:{percent}%"})),
        element("p", {}, f"{percent} %  {doing} · ", since),
        element("p", {"class": "lab-machine"}, say(HOW_TO_STOP)),
    )
