"""A benchmark of what an explorer shows: `lab.bench`, as a pane."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from inductor_lab.bench.bench_result import BenchResult
from inductor_lab.bench.progress import Progress
from inductor_lab.bench.run import bench
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.debug.explore.what_if import call_of
from inductor_lab.debug.isolate import Tell, apart
from inductor_lab.stock.processes import in_one_process
from inductor_lab.widgets.shapes import Pane
from inductor_lab.widgets.time import bars_view
from inductor_lab.widgets.views import pane, row, table_view

if TYPE_CHECKING:
    from inductor_lab.api.compilation import Compilation

SECONDS = 1.0
PATIENCE = 290.0
"""Seconds, stock's compile included; the page waits a little longer."""


def benched(compilation: Compilation) -> BenchResult:
    """The inspected call beside eager and stock torch.compile, with its gradient if it has one.

    In a process of its own where that can be had: a benchmark forgets what torch.compile has
    compiled, and this explorer still asks for it.  Raises NotRunnable if it does not end.
    """
    call = call_of(compilation)
    run = partial(bench, call.fn, *call.args, **call.kwargs)

    def work(_: Tell) -> BenchResult:
        with in_one_process(), torch.set_grad_enabled(call.with_grad):
            return run(backward=None, options=call.options, seconds=SECONDS, cold=False,
                       title=compilation.name, progress=Progress())  # fmt: skip

    ended = apart(work, PATIENCE)
    if ended.how != "returned":
        raise NotRunnable(f"the benchmark {ended}", todo="call lab.bench(f, x) in a cell")
    result: BenchResult = ended.value
    return result


def bench_pane(result: BenchResult) -> Pane:
    """What came out in words, the bars of a call's time, and all tables."""
    seconds = {name: result.timings.median_ms(name) / 1e3 for name in result.timings.seconds}
    said = [*result.sentences, str(result.machine)]
    views = [
        table_view("verdict", ("what came out",), [row([sentence]) for sentence in said]),
        bars_view("per call", seconds, result.work),
        *(table_view(name, table.columns, map(row, table.rows))
          for name, table in zip(("compilers", "kernels"), result.tables, strict=False)),
    ]  # fmt: skip
    return pane("bench", views, count=f"{len(seconds)}")
