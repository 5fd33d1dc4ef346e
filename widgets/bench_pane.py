"""A benchmark of the inspected call (`lab.bench`) as a pane of the explorer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from inductor_lab.bench.bench_result import BenchResult
from inductor_lab.bench.progress import Progress
from inductor_lab.bench.run import bench
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.debug.explore.what_if import call_of
from inductor_lab.debug.isolate import Tell, run_isolated
from inductor_lab.notebook.language import say
from inductor_lab.widgets.shapes import Pane, View
from inductor_lab.widgets.time import bars_view
from inductor_lab.widgets.views import pane, row, table_view

if TYPE_CHECKING:
    from inductor_lab.api.compilation import Compilation

SECONDS = 1.0
PATIENCE = 290.0
"""Time limit in seconds, including the compilation by stock; the page waits a little longer."""


def benched(compilation: Compilation) -> BenchResult:
    """Benchmark the inspected call against eager and stock torch.compile, with gradients if any.

    Runs in a separate process if possible: a benchmark resets torch.compile, and this explorer
    still needs its compiled code.  Raises NotRunnable if it does not finish.
    """
    call = call_of(compilation)
    run = partial(bench, call.fn, *call.args, **call.kwargs)

    def work(_: Tell) -> BenchResult:
        with torch.set_grad_enabled(call.with_grad):
            return run(backward=None, options=call.options, seconds=SECONDS, cold=False,
                       title=compilation.name, progress=Progress())  # fmt: skip

    ended = run_isolated(work, PATIENCE)
    if ended.how != "returned":
        raise NotRunnable(f"the benchmark {ended}", todo="call lab.bench(f, x) in a cell")
    result: BenchResult = ended.value
    return result


def bench_pane(result: BenchResult, changes: Mapping[str, Any]) -> Pane:
    """The verdict, bars for the time per call, and all tables.

    `changes` are those of the what-if pane, with which inductor_lab was timed.
    """
    seconds = {name: result.timings.median_ms(name) / 1e3 for name in result.timings.seconds}
    said = [*result.sentences, str(result.machine)]
    if changes:
        text = ", ".join(f"{name}={value}" for name, value in changes.items())
        said.insert(0, say("inductor_lab was timed with {changes}", changes=text))
    views: list[View] = [
        table_view("verdict", ("results",), [row([sentence]) for sentence in said]),
        bars_view("per call", seconds, result.work),
        *(table_view(name, table.columns, map(row, table.rows))
          for name, table in zip(("compilers", "kernels"), result.tables, strict=False)),
    ]  # fmt: skip
    return pane("bench", views, count=f"{len(seconds)}")
