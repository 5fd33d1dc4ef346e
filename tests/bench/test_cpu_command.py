"""`make bench`: a workload from end to end; reports of slow, wrong and failed workloads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.cpu import WORKLOADS
from benchmarks.measure import COPY, failure
from benchmarks.workloads import KERNELS
from inductor_lab.bench.bench_result import OURS, STOCK, BenchResult, Contender, load
from inductor_lab.bench.contenders import EAGER
from inductor_lab.bench.machine import Machine
from inductor_lab.bench.timing import Timings

ROOT = Path(__file__).parents[2]
HERE = Machine("a processor", 2, "2.13.0")


def result(title: str, work: str = "kernel", **milliseconds: float) -> BenchResult:
    contenders = tuple(map(Contender, milliseconds))
    seconds = {name: (ms / 1e3,) * 3 for name, ms in milliseconds.items()}
    return BenchResult(title, work, HERE, contenders, Timings(seconds))


def test_the_command_measures_writes_and_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.cpu", "row sum", "--no-stock", "--seconds",
               "0.02", "--out", str(tmp_path)]  # fmt: skip
    subprocess.run([*command, "--setting", "default"], cwd=ROOT, check=True)
    first = load(tmp_path / "default.json")
    (found,) = first.results
    known = {c.name: c for c in found.contenders}
    assert set(known) == {EAGER, OURS, COPY} == set(found.timings.seconds)
    assert known[OURS].agrees and not known[OURS].failure
    assert known[OURS].peak > 0 and known[EAGER].peak > 0
    assert known[OURS].compile.cold > 0 and known[OURS].compile.warm > 0
    text = (tmp_path / "report.md").read_text()
    assert "geometric mean of 1" in text and "row sum" in text
    assert (tmp_path / "default.svg").read_text().startswith("<svg")
    done = subprocess.run([*command, "--resume"], cwd=ROOT, check=True, capture_output=True)
    assert b"default allocator" in done.stdout
    assert load(tmp_path / "default.json").results == first.results, "measured again"
    assert all(c.peak is None for r in load(tmp_path / "kept.json").results for c in r.contenders)


FORKS = """
import os, sys, time
from benchmarks.measure import Failed, in_fork

def refuses(): raise ValueError("not today")
def dies(): os.abort()
def hangs(): time.sleep(100)

print(in_fork(lambda: 41 + 1, 20))
for work, patience in ((refuses, 20), (dies, 20), (hangs, 0.2)):
    try:
        in_fork(work, patience)
    except Failed as failed:
        print(failed)
"""


def test_a_forked_process_may_fail_crash_and_hang() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "42", "ValueError: not today", "its process ended with -6", "took longer than 0 s",
    ]  # fmt: skip


def test_findings_name_means_and_everything_slow() -> None:
    fast = result("fast", **{EAGER: 4.0, STOCK: 9.0, OURS: 1.0, COPY: 0.9})
    slow = result("slow", **{EAGER: 1.0, STOCK: 4.0, OURS: 2.0, COPY: 0.5})
    near = result("near", "model", **{EAGER: 1.0, STOCK: 1.0, OURS: 1.04})
    broken = failure(KERNELS[0], "out of memory")
    findings = list(report.findings("default", (fast, slow, near, broken)))
    assert findings == [
        "default: kernel, geometric mean of 2: 4.24x stock's speed",
        "default: kernel, geometric mean of 2: 1.41x eager's speed",
        "default: model, geometric mean of 1: 0.96x stock's speed",
        "default: model, geometric mean of 1: 0.96x eager's speed",
        "default: slower than eager or stock by more than 5 %: slow: 2.00x eager's time",
        "default: takes more than 1.15 times as long as a copy of as many bytes: slow 4.00x",
        f"default: wrong or failed: {KERNELS[0].name} (ours failed: out of memory)",
    ]


def test_a_wrong_result_is_reported_and_not_timed() -> None:
    wrong = Contender(STOCK, error=0.5, agrees=False)
    found = BenchResult("w", "kernel", HERE, (Contender(EAGER), wrong, Contender(OURS)),
                        Timings({EAGER: (2e-3,) * 3, OURS: (1e-3,) * 3}))  # fmt: skip
    table = str(report.times((found,), "ms"))
    assert "stock is wrong by 5e-01" in table and "2.00x" in table
    assert report.ratio(found, STOCK) is None


def test_workloads_have_unique_names() -> None:
    names = [workload.name for workload in WORKLOADS]
    assert len(set(names)) == len(names)
