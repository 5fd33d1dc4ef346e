"""Measure the effect of thread counts, thread affinity and the allocator on this machine.

Each setting has a process of its own, because most can only be set when a process starts.  The
processes run the same work interleaved, round by round, so that changes of the machine's speed
affect all of them (see `timing.py`).  `inductor-lab doctor --measure` prints the table.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from ctypes.util import find_library
from dataclasses import dataclass, field
from typing import IO

import torch

from inductor_lab.bench.timings import Timings

BASE = "now"
ROUNDS = 15
ALLOCATORS = ("jemalloc", "tcmalloc_minimal", "tcmalloc")
WORK = """
import sys, time, torch
x = torch.randn(2048, 1024)
w = torch.randn(1024, 1024)
def work():
    return torch.softmax((x * 2 + 1) @ w, -1).sum()
work(), work()
print("ready", flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    work()
    print(time.perf_counter() - start, flush=True)
"""
"""A matrix product, memory passes, and new results of 8 MB in each call, in eager mode."""


@dataclass(frozen=True)
class Setting:
    """One setting of the process; `set_with` is what a user would write."""

    name: str
    set_with: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Surroundings:
    """Every setting compared with the unchanged process; made by `surroundings`."""

    settings: tuple[Setting, ...]
    timings: Timings

    def __str__(self) -> str:
        took = f"{self.timings.median_ms(BASE):.2f} ms a round now, {self.timings.rounds} rounds"
        lines = [f"measured: {took}"]
        width = max((len(setting.name) for setting in self.settings), default=0)
        for setting in self.settings:
            verdict = self.timings.verdict(setting.name, BASE)
            lines.append(f"{setting.name:{width}}  {verdict}")
            if self.timings.interval(setting.name, BASE)[0] > 1:
                lines.append(f"{'':{width}}  -> {setting.set_with}")
        return "\n".join(lines)


def settings() -> Iterator[Setting]:
    """The settings of this machine: thread counts, thread affinity, and installed allocators."""
    now = torch.get_num_threads()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    counts = sorted({1, max((cores or 1) // 2, 1), cores or 1} - {now})
    for count in counts:
        value = {"OMP_NUM_THREADS": str(count)}
        name = "1 thread" if count == 1 else f"{count} threads"
        yield Setting(name, f"OMP_NUM_THREADS={count}, or torch.set_num_threads({count})", value)
    yield Setting("threads stay on their cores", "OMP_PROC_BIND=close OMP_PLACES=cores",
                  {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"})  # fmt: skip
    if sys.platform != "linux":
        return
    kept = "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=4294967295"
    yield Setting("freed memory stays mapped", f"GLIBC_TUNABLES={kept}", {"GLIBC_TUNABLES": kept})
    for name in ALLOCATORS:
        if library := find_library(name):
            yield Setting(name, f"LD_PRELOAD={library}", {"LD_PRELOAD": library})


def surroundings(rounds: int = ROUNDS) -> Surroundings:
    """Run the work under each setting, interleaved."""
    found = tuple(settings())
    seconds: dict[str, list[float]] = {}
    with ExitStack() as stack:
        running = {}
        for setting in (Setting(BASE, ""), *found):
            running[setting.name] = stack.enter_context(_started(setting))
        running = {name: process for name, process in running.items() if _line(process) == "ready"}
        for number in range(rounds):
            order = list(running)
            for name in order if number % 2 else reversed(order):
                _stdin(running[name]).write("again\n")
                _stdin(running[name]).flush()
                seconds.setdefault(name, []).append(float(_line(running[name])))
        for process in running.values():
            _stdin(process).close()
    samples = {name: tuple(seconds[name]) for name in running}
    return Surroundings(tuple(s for s in found if s.name in samples), Timings(samples))


def _started(setting: Setting) -> subprocess.Popen[str]:
    environment = {**os.environ, **setting.environment}
    return subprocess.Popen(
        [sys.executable, "-c", WORK], env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _stdin(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdin is not None, "it was asked for"
    return process.stdin


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None, "it was asked for"
    return process.stdout.readline().strip()
