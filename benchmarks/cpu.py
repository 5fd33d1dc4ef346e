"""Eager, stock TorchInductor and inductor_lab on the CPU, interleaved: `make bench`.

    python -m benchmarks.cpu                      all workloads, with both allocator settings
    python -m benchmarks.cpu softmax "row sum"    only workloads whose name contains one of these
    python -m benchmarks.cpu --no-stock --setting default --seconds 0.5
    python -m benchmarks.cpu --resume             continue an interrupted run

Settings of glibc's allocator: "default", and "kept", which never returns memory to the system, so
that large results cause no page faults.  Each setting runs in a separate process, and each workload
in a process forked from it.  Results are compared before they are timed; a wrong result is not
timed.  With the default setting, compile times (cold, then warm) and peak memory are also measured.
The folder `--out` gets `report.md`, and for each setting a JSON file, which `lab.bench.load` reads,
and an SVG file.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks import report
from benchmarks.measure import (
    Failed,
    failure,
    first_calls,
    in_fork,
    measured,
    with_first_calls,
)
from benchmarks.models import MODELS
from benchmarks.workloads import KERNELS, OPERATORS, Workload
from inductor_lab.bench.bench_result import OURS, STOCK, BenchResult, Experiments, load
from inductor_lab.bench.contenders import EAGER
from inductor_lab.bench.machine import machine
from inductor_lab.saved import saving

LARGE = str(1 << 40)
SETTINGS = {
    "default": {},
    "kept": {"MALLOC_MMAP_THRESHOLD_": LARGE, "MALLOC_TRIM_THRESHOLD_": LARGE},
}
CACHES = ("INDUCTOR_LAB_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
WORKLOADS = (*KERNELS, *OPERATORS, *MODELS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the requested workloads, one process per setting; print and write the results."""
    given = parsed(arguments)
    if given.inside:
        measure_all(given)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    settings = [given.setting] if given.setting else list(SETTINGS)
    if not given.resume:
        shutil.rmtree(given.out / "caches", ignore_errors=True)
        for name in SETTINGS:
            (given.out / f"{name}.json").unlink(missing_ok=True)
    command = [sys.executable, "-m", "benchmarks.cpu", *(arguments or sys.argv[1:]), "--inside"]
    for name in settings:
        places = {variable: str(given.out / "caches") for variable in CACHES}
        environment = {**os.environ, **SETTINGS[name], **places}
        subprocess.run([*command, "--setting", name], env=environment, check=True)
    found = {name: results_in(given.out / f"{name}.json") for name in settings}
    for results in found.values():
        print(f"\n{report.compiling(results)}")
    for name, results in found.items():
        print(f"\n{report.times(results, f'{name} allocator, ms')}")
        chart(name, results).plot().save(given.out / f"{name}.svg")
    lines = [line for name, results in found.items() for line in report.findings(name, results)]
    print("", *lines, machine(), sep="\n")
    (given.out / "report.md").write_text(report.markdown(found), encoding="utf-8")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only workloads whose name contains one of these")
    parser.add_argument("--no-stock", action="store_true", help="eager and ours alone")
    parser.add_argument("--seconds", type=float, default=1.0, help="for timing each workload")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds, then it is killed")
    parser.add_argument("--setting", choices=SETTINGS, help="of the allocator; default: both")
    parser.add_argument("--out", type=Path, default=Path("reports/cpu"), help="folder")
    parser.add_argument("--resume", action="store_true", help="keep what was measured before")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def measure_all(given: argparse.Namespace) -> None:
    """In the process of one setting: fork for each workload, and write the results after each."""
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    path = given.out / f"{given.setting}.json"
    done = results_in(path)
    names = [EAGER, OURS] if given.no_stock else [EAGER, STOCK, OURS]
    measured_before = {result.title for result in done}
    chosen = [w for w in WORKLOADS if not given.words or any(t in w.name for t in given.words)]
    for workload in chosen:
        if workload.name in measured_before:
            continue
        start = time.perf_counter()
        result = one(workload, names, given)
        done = (*done, result)
        saving.save(path, chart(given.setting, done))
        seconds = time.perf_counter() - start
        print(f"{given.setting:8} {seconds:5.1f} s  {progress_line(result)}", flush=True)


def one(workload: Workload, names: Sequence[str], given: argparse.Namespace) -> BenchResult:
    """The measurements of a workload, or the reason why there are none."""
    firsts = {}
    if given.setting == "default":  # while no cache on disk contains this workload
        firsts = {name: first_calls(workload, name, given.patience) for name in names}
    try:
        result = in_fork(partial(measured, workload, names, given.seconds), given.patience)
    except Failed as failed:
        return failure(workload, str(failed))
    return with_first_calls(result, firsts)


def progress_line(result: BenchResult) -> str:
    """A line of progress for a workload."""
    times = [f"{report.TITLES.get(n, n)} {result.timings.median_ms(n):.3f}"
             for n in result.timings.seconds]  # fmt: skip
    return ", ".join([result.title, *times, *report.notes(result)])


def results_in(path: Path) -> tuple[BenchResult, ...]:
    """The measurements of an earlier run; empty if there was none."""
    found = load(path) if path.exists() else None
    return found.results if isinstance(found, Experiments) else ()


def chart(setting: str, results: Sequence[BenchResult]) -> Experiments:
    """The results of a setting, as a value that can be saved and drawn."""
    return Experiments(f"{setting} allocator", machine(), tuple(results))


if __name__ == "__main__":
    main()
