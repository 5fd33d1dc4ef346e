"""inductor_lab and every other system for a CPU that is installed: `make bench BENCH=peers`.

    python -m benchmarks.peers                          all models and kernels
    python -m benchmarks.peers BERT rotary --seconds 5  workloads whose name contains one of these
    python -m benchmarks.peers --systems stock OpenVINO --kinds model --busy

Each system runs in a separate process with the same inputs, weights, precision and number of
threads.  Its result is compared with float64 first; one that is much further from it than that of
eager mode is wrong, and not timed.  Then the processes run one after the other in rounds.  With
`--busy` there are further rounds, in which another process occupies one processor all the time.
`--floor` computes the least time that a model could take.

`pip install 'inductor_lab[peers]'` installs the other systems.  Results are in the folder `--out`
after each workload: `results.json` and `table.md`; with `--resume` they are kept and completed.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import results
from benchmarks.peers.floor import floor_of
from benchmarks.peers.results import Row
from benchmarks.peers.systems import EAGER, EXACT, OURS, SYSTEMS, System
from benchmarks.peers.workloads import WORK, Work
from inductor_lab.bench.machine import machine

KINDS = ("model", "kernel")
FEWEST_ROUNDS = 5
SHARE = 0.1
"""Seconds of one system in one round, or two calls."""
BUSY = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


@dataclass
class Settings:
    """What the command line asks for."""

    systems: Sequence[System]
    threads: int
    seconds: float
    patience: float
    busy: bool
    floor: bool
    caches: Path

    @property
    def environment(self) -> dict[str, str]:
        """Variables of all processes: threads, and caches without anything that was there."""
        names = ("INDUCTOR_LAB_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
        own = {name: str(self.caches / name) for name in names}
        threads = {name: str(self.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        return {**os.environ, **own, **threads, "TOKENIZERS_PARALLELISM": "false"}


class Lost(Exception):
    """Why a process gave no answer."""


class Worker:
    """The process of one system, and those that it starts.

    They are stopped (SIGSTOP) after each answer, because some keep processors busy: threads that
    wait actively for more work, and processes that import in the background.
    """

    def __init__(self, system: str, work: Work, settings: Settings, folder: Path) -> None:
        self.path = folder / f"{system}.npy"
        command = [sys.executable, "-m", "benchmarks.peers.worker", system, work.name,
                   "--threads", str(settings.threads), "--result", str(self.path)]  # fmt: skip
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
            env=settings.environment, start_new_session=True,
        )  # fmt: skip
        self.patience = settings.patience

    def read(self) -> dict[str, Any]:
        """Its next answer.  Raises Lost if it ends or takes too long."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], self.patience)
        if not ready:
            raise Lost(f"no answer within {self.patience:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            last = self.errors.read().strip().splitlines()[-1:]
            raise Lost(f"ended with {self.process.wait()}: {' '.join(last)[:200]}")
        answer: dict[str, Any] = json.loads(line)
        self.signal(signal.SIGSTOP)
        if "failure" in answer:
            raise Lost(answer["failure"])
        return answer

    def calls(self, seconds: float) -> list[float]:
        """Let it run for so long; the seconds of each call."""
        assert self.process.stdin is not None
        self.signal(signal.SIGCONT)
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return list(self.read()["calls"])

    def signal(self, number: int) -> None:
        """Send a signal to the process and those that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.signal(signal.SIGKILL)
        self.process.communicate()
        self.errors.close()


def main(arguments: Sequence[str] | None = None) -> int:
    given = parsed(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    kept = given.out / "results.json"
    rows = results.load(kept) if given.resume and kept.exists() else []
    done = {row.name for row in rows}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as caches:
        named = dict.fromkeys((EAGER, *given.systems))  # its errors are the scale for others
        settings = Settings([SYSTEMS[name] for name in named], given.threads,
                            given.seconds, given.patience, given.busy, given.floor,
                            Path(caches))  # fmt: skip
        print(about(settings), flush=True)
        for work in chosen(given):
            if work.name in done:
                continue
            rows.append(measured(work, settings))
            results.save(rows, kept)
            print(line_of(rows[-1]), flush=True)
    text = [about(settings)]
    text += [table.to_markdown() for table in results.tables(rows)]
    text += [*results.remarks(rows)]
    (given.out / "table.md").write_text("\n".join(text), encoding="utf-8")
    for table in results.tables(rows):
        print(f"\n{table}")
    print("", *results.remarks(rows), sep="\n")
    return 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.peers", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("words", nargs="*", help="only workloads whose name contains one of these")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=[*SYSTEMS])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--seconds", type=float, default=2.0, help="of timing for each system")
    parser.add_argument("--patience", type=float, default=400.0, help="seconds, then it is killed")
    parser.add_argument("--busy", action="store_true", help="also with one processor occupied")
    parser.add_argument("--floor", action="store_true", help="also the least time of each model")
    parser.add_argument("--out", type=Path, default=Path("reports/peers"), help="folder")
    parser.add_argument("--resume", action="store_true", help="keep what was measured before")
    return parser.parse_args(arguments)


def chosen(given: argparse.Namespace) -> Iterator[Work]:
    for work in WORK.values():
        named = not given.words or any(word in work.name for word in given.words)
        if named and work.kind in given.kinds:
            yield work


def measured(work: Work, settings: Settings) -> Row:
    """Start all systems, compare their results with float64, and time them in rounds."""
    row = Row(work.name, work.kind, str(work.dtype).removeprefix("torch."))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with Worker(EXACT, work, settings, folder) as reference:
            reference.read()
            expected = np.load(reference.path)
        workers = {}
        for system in settings.systems:
            if work.kind not in system.kinds:
                continue
            if system.missing:
                row.failures[system.name] = f"not installed: {', '.join(system.missing)}"
                continue
            worker = stack.enter_context(Worker(system.name, work, settings, folder))
            try:
                row.first[system.name] = worker.read()["first"]
            except Lost as lost:
                row.failures[system.name] = str(lost)
                continue
            row.errors[system.name] = error = difference(expected, np.load(worker.path))
            if error <= row.tolerance:
                workers[system.name] = worker
            else:
                row.failures[system.name] = f"wrong by {error:.1e} of the largest value"
        row.seconds = rounds(row, workers, settings.seconds)
        if settings.busy:
            with occupied(settings.threads):
                row.busy = rounds(row, workers, settings.seconds)
    if settings.floor and work.kind == "model":
        row.floor = floor_of(work, settings.threads)
    return row


def rounds(row: Row, workers: Mapping[str, Worker], seconds: float) -> dict[str, list[float]]:
    """The median of each system in each round; every second round has the reverse order."""
    found: dict[str, list[float]] = {name: [] for name in workers}
    end, done = time.monotonic() + seconds * len(workers), 0
    while workers and (done < FEWEST_ROUNDS or time.monotonic() < end):
        order = list(workers.items())
        for name, worker in order if done % 2 == 0 else reversed(order):
            try:
                found[name].append(statistics.median(worker.calls(SHARE)))
            except Lost as lost:
                row.failures[name] = str(lost)
                remaining = {n: w for n, w in workers.items() if n != name}
                return rounds(row, remaining, seconds)
        done += 1
    return found


def difference(expected: Any, found: Any) -> float:
    """The largest difference, relative to the largest value; infinite for another shape or NaN."""
    if expected.shape != found.shape:
        return float("inf")
    largest = float(np.abs(expected).max(initial=0.0)) or 1.0
    most = float(np.abs(expected.astype(float) - found.astype(float)).max(initial=0.0))
    return most / largest if most == most else float("inf")


@contextmanager
def occupied(threads: int) -> Iterator[None]:
    """A process that computes on one of the processors that the systems use."""
    processor = sorted(os.sched_getaffinity(0))[:threads][-1]
    spinning = subprocess.Popen([sys.executable, "-c", BUSY, str(processor)])
    try:
        yield
    finally:
        spinning.kill()
        spinning.wait()


def about(settings: Settings) -> str:
    versions = [f"{one.name} ({one.versions})" for one in settings.systems
                if one.packages and not one.missing]  # fmt: skip
    return f"{machine()}, {settings.threads} threads; {', '.join(versions)}"


def line_of(row: Row) -> str:
    """A line of progress."""
    shown = [f"{name} {row.shown(name)}" for name in SYSTEMS if name in row.seconds]
    ratio = row.ratio()
    end = "" if ratio is None else f"; {row.best()}/{OURS} {ratio:.2f}"
    return f"{row.name}: {', '.join(shown)} ms{end}"


if __name__ == "__main__":
    sys.exit(main())
