"""Eager, ours and (with --stock) TorchInductor on the CPU, in turns in one process.

    python -m benchmarks.cpu                 the table
    python -m benchmarks.cpu --stock         with stock TorchInductor
    python -m benchmarks.cpu --json out.json softmax norm

Results are compared before they are timed.  Allocator settings are those of the process: to measure
with memory kept mapped, set MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_ (glibc).
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
from collections.abc import Sequence

import torch
from rich.console import Console
from rich.table import Table
from torch.testing import assert_close

import inductor_lab as lab
from benchmarks.workloads import WORKLOADS, Workload
from inductor_lab.bench.jobs import job
from inductor_lab.bench.timing import Timings, compare


def measure(workload: Workload, seconds: float, stock: bool) -> Timings:
    """Compile, compare with eager, time in turns."""
    args = workload.make()
    functions = {"eager": workload.fn, "ours": lab.compile(workload.fn)}
    if stock:
        functions["stock"] = torch.compile(workload.fn)
    jobs = {name: job(fn, args, {}, workload.gradient) for name, fn in functions.items()}
    expected = jobs["eager"]()
    assert_close(jobs["ours"](), expected, rtol=1e-3, atol=1e-3)
    return compare(jobs, seconds=seconds)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only workloads whose name contains one of these")
    parser.add_argument("--stock", action="store_true", help="stock TorchInductor as well")
    parser.add_argument("--seconds", type=float, default=3.0, help="time for each workload")
    parser.add_argument("--json", help="write the samples to this file")
    given = parser.parse_args(arguments)
    chosen = [w for w in WORKLOADS if not given.words or any(t in w.name for t in given.words)]
    names = ["eager", "ours"] + (["stock"] if given.stock else [])

    table = Table(title=f"CPU, {torch.get_num_threads()} threads, torch {torch.__version__}, ms")
    table.add_column("workload")
    for name in names:
        table.add_column(name, justify="right")
    table.add_column("spread", justify="right")
    for name in names:
        if name != "ours":
            table.add_column(f"{name}/ours", justify="right")
    samples = {}
    for workload in chosen:
        timings = measure(workload, given.seconds, given.stock)
        samples[workload.name] = timings.seconds
        row = [f"{timings.median_ms(name):.3f}" for name in names]
        row.append(f"{timings.spread('ours'):.0%}")
        row += [f"{timings.ratio(name, 'ours'):.2f}x" for name in names if name != "ours"]
        table.add_row(workload.name, *row)
        torch.compiler.reset()
    console = Console(width=110)
    console.print(table)
    console.print(f"{datetime.date.today()}, {platform.processor() or platform.machine()}")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(samples, file)


if __name__ == "__main__":
    main()
