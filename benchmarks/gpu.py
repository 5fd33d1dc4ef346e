"""Eager, ours and (with --stock) TorchInductor on a GPU: the workloads of the CPU, in turns.

    python -m benchmarks.gpu [--stock] [words...]
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Sequence

import torch
from rich.console import Console
from rich.table import Table
from torch.testing import assert_close

import inductor_lab as lab
from benchmarks.workloads import KERNELS, OPERATORS
from inductor_lab.bench.jobs import job
from inductor_lab.bench.timing import compare


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only workloads whose name contains one of these")
    parser.add_argument("--stock", action="store_true", help="stock TorchInductor as well")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each workload")
    given = parser.parse_args(arguments)
    known = (*KERNELS, *OPERATORS)
    chosen = [w for w in known if not given.words or any(t in w.name for t in given.words)]
    names = ["eager", "ours"] + (["stock"] if given.stock else [])
    table = Table(title=f"{torch.cuda.get_device_name()}, torch {torch.__version__}, ms")
    for name in ("workload", *names, "eager/ours", *(["stock/ours"] if given.stock else [])):
        table.add_column(name, justify="left" if name == "workload" else "right")
    for workload in chosen:
        fn, made = workload.build()
        if not any(isinstance(arg, torch.Tensor) for arg in made):
            continue  # NumPy code, and what makes its own tensors
        args = tuple(a.detach().cuda().requires_grad_(a.requires_grad) for a in made)
        functions = {"eager": fn, "ours": lab.compile(fn)}
        if given.stock:
            functions["stock"] = torch.compile(fn)
        jobs = {name: job(fn, args, {}, workload.gradient) for name, fn in functions.items()}
        assert_close(jobs["ours"](), jobs["eager"](), rtol=1e-3, atol=1e-3)
        timings = compare(jobs, seconds=given.seconds)
        row = [f"{timings.median_ms(name):.3f}" for name in names]
        row += [f"{timings.ratio(name, 'ours'):.2f}x" for name in names if name != "ours"]
        table.add_row(workload.name, *row)
        torch.compiler.reset()
    console = Console(width=110)
    console.print(table)
    console.print(str(datetime.date.today()))


if __name__ == "__main__":
    main()
