"""All checks and measurements on a GPU in one command and ten minutes: `make gpu`.

    python -m benchmarks.gpu --out reports/gpu                        everything
    python -m benchmarks.gpu --out reports/gpu --parts times softmax  some workloads alone
    python -m benchmarks.gpu --parts times --ways eager stock "stock tuned" "by hand" ours

checks   tests/gpu, the models of tests/models, operators of torch's database, random programs,
         side by side
first    first calls with empty caches, each in a separate process
times    every workload compared with float64, then timed interleaved; models in separate processes

A crash or a hang affects only one row.  The folder gets the output of the checks, and `table.txt`
and `results.json`, which are rewritten after every row.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.installed import write_bytecode

PARTS = ("checks", "first", "times")
SHARES = {"checks": 0.42, "first": 0.3}
"""Of the minutes, at most so much; the rest is for the last part."""
CACHES = ("INDUCTOR_LAB_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
ROW_LIMIT = 150.0
SAMPLE_LIMIT = 40.0
"""Seconds for one sample of an operator; checks end so long before they would be stopped."""
AT_ONCE = 2
"""First calls side by side: stock's compiler has processes of its own."""
NAMES = ("eager", "stock", "stock graphs", "stock tuned", "by hand", "ours", "ours graphs",
         "ours tuned", "copy")  # fmt: skip
OTHERS = ("eager", "stock", "stock tuned", "by hand")


@dataclass
class Run:
    """The requested measurements and the results so far."""

    out: Path
    end: float
    words: Sequence[str]
    jobs: int
    seconds: float
    caches: Path
    kinds: Sequence[str] = ()
    ways: Sequence[str] = ()
    found: dict[str, Any] = field(default_factory=dict)

    @property
    def left(self) -> float:
        return max(self.end - time.monotonic(), 0.0)

    def environment(self, name: str) -> dict[str, str]:
        """Environment variables of a process; only runs of the same name share cache folders."""
        folder = self.caches / re.sub(r"[^A-Za-z0-9]+", "-", name)
        own = {variable: str(folder / variable) for variable in CACHES}
        return {**os.environ, **own, "TOKENIZERS_PARALLELISM": "false"}

    def keep(self, *where: str, value: Any) -> None:
        """Store a value in the results and write the files."""
        place = self.found
        for name in where[:-1]:
            place = place.setdefault(name, {})
        place[where[-1]] = value
        (self.out / "results.json").write_text(json.dumps(self.found, indent=1))
        (self.out / "table.txt").write_text(as_text(self.found))


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="only workloads whose name contains one of these")
    parser.add_argument("--out", type=Path, default=Path("reports/gpu"))
    parser.add_argument("--minutes", type=float, default=9.5)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 4)
    parser.add_argument("--seconds", type=float, default=1.2, help="of timing for each workload")
    parser.add_argument("--kinds", nargs="+", default=[], choices=("kernel", "model"))
    parser.add_argument("--ways", nargs="+", default=[], choices=NAMES[:-1],
                        help="what is timed")  # fmt: skip
    arguments = parser.parse_args(given)
    arguments.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * arguments.minutes
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        run = Run(arguments.out, end, arguments.words, arguments.jobs, arguments.seconds,
                  Path(folder), arguments.kinds, arguments.ways)  # fmt: skip
        run.keep("machine", value=machine())
        total = run.left
        for part in PARTS:
            if part in arguments.parts:
                started = time.monotonic()
                limit = min(SHARES.get(part, 1.0) * total, run.left)
                {"checks": checks, "first": first_calls, "times": times}[part](run, limit)
                run.keep("seconds", part, value=round(time.monotonic() - started))
    print(as_text(run.found))
    return 0


def machine() -> dict[str, str]:
    import torch
    import triton

    said = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return {"name": said, "torch": torch.__version__, "triton": triton.__version__}


# ---- the checks ------------------------------------------------------------------------------


def checks(run: Run, limit: float) -> None:
    """Run all checks in parallel, each with its share of the processors."""
    jobs, minutes = str(max(run.jobs // 4, 1)), str(round((limit - SAMPLE_LIMIT - 10) / 60, 2))
    python, so_long = [sys.executable, "-m"], ["--jobs", jobs, "--minutes", minutes]
    summary = {name: run.out / f"{name}.json" for name in ("models", "operators", "programs")}
    commands = {
        "tests": [*python, "pytest", "tests/gpu", "-n", jobs, "-q", "-rfE", "--tb=short",
                  "-p", "no:cacheprovider"],
        "models": [*python, "tests.gpu.models", *so_long, "--summary", str(summary["models"])],
        "operators": [*python, "tests.opinfo.run", "--device", "cuda", "--representative",
                      "--samples", "3", "--dtypes", "float32", "bfloat16", "int64", "--fresh",
                      "--results", str(run.caches / "operators.jsonl"), "--quiet", *so_long,
                      "--limit", str(SAMPLE_LIMIT), "--summary", str(summary["operators"])],
        "programs": [*python, "tests.fuzz.run", "--gpu", "--programs", "500", "--seed", "20",
                     "--no-shrink", "--fresh", "--results", str(run.caches / "programs.jsonl"),
                     *so_long, "--summary", str(summary["programs"])],
    }  # fmt: skip
    with ThreadPoolExecutor(len(commands)) as pool:
        waiting = {
            pool.submit(said_by, run, command, name, limit): name
            for name, command in commands.items()
        }
        for done in as_completed(waiting):
            name = waiting[done]
            status, lines = done.result()
            run.keep("checks", name, value={"status": status, "end": lines[-80:]})
            if name == "tests":
                (run.out / "tests.log").write_text("\n".join(lines))


def said_by(run: Run, command: Sequence[str], name: str, limit: float) -> tuple[Any, list[str]]:
    """The status of a command and the lines that it printed, possibly incomplete."""
    log = run.caches / f"{name}.log"
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT,
                                   start_new_session=True,
                                   env=run.environment("checks"))  # fmt: skip
        try:
            status: Any = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = f"stopped after {limit:.0f} s"
    return status, log.read_text(errors="replace").splitlines()


# ---- the workloads ---------------------------------------------------------------------------


def chosen(run: Run) -> Iterator[Any]:
    from benchmarks.gpu_workloads import WORKLOADS

    for workload in WORKLOADS.values():
        named = not run.words or any(word in workload.name for word in run.words)
        if named and (not run.kinds or workload.kind in run.kinds):
            yield workload


def first_calls(run: Run, limit: float) -> None:
    """First calls of stock and ours, each with separate caches, which `times` uses later."""
    write_bytecode()
    end = time.monotonic() + limit
    cases = [(w.name, way) for w in chosen(run) if w.first for way in ("stock", "ours")]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        waiting = {
            pool.submit(measured, run, name, ["--first", way], end, ROW_LIMIT): (name, way)
            for name, way in cases
        }
        for done in as_completed(waiting):
            run.keep("first", *waiting[done], value=done.result())


def times(run: Run, limit: float) -> None:
    """Models in separate processes; all kernels in one process, restarted after a crash."""
    end = time.monotonic() + limit
    more = ["--seconds", str(run.seconds), *(["--ways", *run.ways] if run.ways else [])]
    for kind, same in groupby(chosen(run), key=lambda workload: workload.kind):
        names = [workload.name for workload in same]
        groups = [names] if kind == "kernel" else [[name] for name in names]
        for group in groups:
            while group and time.monotonic() < end - 5:
                for name, row in rows(run, group, more, end):
                    run.keep("times", name, value=row)
                    group = group[1:]


def measured(run: Run, name: str, more: Sequence[str], end: float, limit: float) -> dict[str, Any]:
    """The result of `benchmarks.gpu_measure` for a workload, or its failure."""
    found = list(rows(run, [name], more, min(end, time.monotonic() + limit)))
    return found[0][1] if found else {"failure": "no time left"}


def rows(
    run: Run, names: Sequence[str], more: Sequence[str], end: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The results of `benchmarks.gpu_measure` from one process; if the last row is a failure, the
    remaining workloads are missing."""
    command = [sys.executable, "-m", "benchmarks.gpu_measure", *names, *more]
    errors = run.caches / f"{threading.get_ident()}.errors"
    with errors.open("w") as file:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True,
                                   env=run.environment(names[0]))  # fmt: skip
    assert process.stdout is not None
    for name in names:
        start, line = time.monotonic(), "."
        limit = min(ROW_LIMIT, end - start)
        with ending(process, limit):
            while line and not line.startswith('{"workload"'):
                line = process.stdout.readline()
        said = errors.read_text(errors="replace").splitlines()
        if not line:
            late = time.monotonic() - start >= limit
            failure = f"not done after {limit:.0f} s" if late else f"status {process.wait()}"
            yield name, {"failure": failure, "end": said[-15:]}
            return
        warnings = [w[:300] for w in said if "cache" in w and "unable" in w]
        yield name, {**json.loads(line), **({"warnings": warnings[:3]} if warnings else {})}
    process.wait()


@contextmanager
def ending(process: subprocess.Popen[str], limit: float) -> Iterator[None]:
    """End a process that exceeds its time limit."""
    timer = threading.Timer(max(limit, 0.0), process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


# ---- what is shown ---------------------------------------------------------------------------


def as_text(found: Mapping[str, Any]) -> str:
    console = Console(width=170, record=True, file=open(os.devnull, "w"))
    for name, check in found.get("checks", {}).items():
        console.print(f"{name}: status {check['status']}; {check['end'][-1:]}", markup=False)
    if found.get("first"):
        console.print(table_of_first_calls(found["first"]))
        for name, ways in found["first"].items():
            titled = {f"{name}, first call of {way}": row for way, row in ways.items()}
            for line in failures(titled):
                console.print(line, markup=False)
    if found.get("times"):
        console.print(table_of_times(found))
        for line in failures(found["times"]):
            console.print(line, markup=False)
    console.print(f"seconds: {found.get('seconds')}", markup=False)
    return console.export_text()


def table_of_first_calls(first: Mapping[str, Any]) -> Table:
    table = Table(title="first call, nothing on disk, s")
    for column in ("workload", "stock", "ours", "ours/stock"):
        table.add_column(column, justify="left" if column == "workload" else "right")
    for name, ways in first.items():
        took = {way: found.get("first") for way, found in ways.items()}
        both = took.get("stock") and took.get("ours")
        ratio = f"{took['ours'] / took['stock']:.2f}" if both else ""
        shown = (f"{took[w]:.1f}" if took.get(w) else "failed" for w in ("stock", "ours"))
        table.add_row(name, *shown, ratio)
    return table


def table_of_times(found: Mapping[str, Any]) -> Table:
    """Milliseconds; "busy": the GPU's busy time; "of copy": the fraction of a copy's speed; "best
    other": the fastest of eager mode, stock, stock with max-autotune, and a kernel by hand."""
    table = Table(title=f"{found.get('machine', {}).get('name')}, ms")
    timed = {way for row in found["times"].values() for way in row.get("ways", {})}
    names = [name for name in NAMES if name in timed]
    columns = ("workload", *names, "stock/ours", "best other/ours", "of copy", "busy stock",
               "busy ours", "launches")  # fmt: skip
    for column in columns:
        table.add_column(column, justify="left" if column == "workload" else "right")
    ratios: dict[str, list[tuple[float, float]]] = {}
    for name, row in found["times"].items():
        ways = row.get("ways", {})
        took = {way: entry["ms"] for way, entry in ways.items() if "ms" in entry}
        cells = [f"{took[n]:.3f}" if n in took else "-" if n in ways else "" for n in names]
        both = ["", ""]
        if {"stock", "ours"} <= took.keys():
            best = min(took[other] for other in OTHERS if other in took)
            pair = took["stock"] / took["ours"], best / took["ours"]
            ratios.setdefault(row["kind"], []).append(pair)
            both = [f"{one:.2f}" for one in pair]
        of_copy = took["copy"] / took["ours"] if {"copy", "ours"} <= took.keys() else None
        entries = [ways.get(n, {}) for n in ("stock", "ours")]
        busy = [f"{e['busy']:.3f}" if "busy" in e else "" for e in entries]
        launches = "/".join(f"{e['launches']:.0f}" if "launches" in e else "?" for e in entries)
        table.add_row(name, *cells, *both, f"{of_copy:.0%}" if of_copy else "", *busy, launches)
    for kind, several in ratios.items():
        means = (f"{geometric_mean(column):.2f}" for column in zip(*several, strict=True))
        table.add_row(f"geometric mean, {kind}", *[""] * len(names), *means)
    return table


def failures(rows: Mapping[str, Any]) -> Iterator[str]:
    for name, row in rows.items():
        if "failure" in row:
            yield f"{name}: {row['failure']} {row.get('end', '')}"
        for way, entry in row.get("ways", {}).items():
            if "failure" in entry:
                yield f"{name}, {way}: {entry['failure'][:400]}"
        yield from (f"{name}: {warning}" for warning in row.get("warnings", ()))


if __name__ == "__main__":
    sys.exit(main())
