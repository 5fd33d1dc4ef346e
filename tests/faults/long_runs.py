"""Repeat tests that `make check` runs once: memory growth, threads, caches."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.faults.outcome import DEFECT, OK, SKIPPED, Tried
from tests.faults.plan import Plan

ROOT = Path(__file__).parents[2]
LIMIT = 3600
AGAIN = 10
RUNS: dict[str, tuple[int, tuple[str, ...]]] = {
    "memory over 300 recompiles, 20,000 sizes": (1, ("tests/runtime/test_growth.py",)),
    "two threads": (AGAIN, ("tests/semantics/test_threads.py",)),
    "caches": (AGAIN, ("tests/runtime/test_cache.py", "tests/runtime/test_shared_cache.py")),
}
"""Tests that run in a new process, and the number of runs."""


def tries(plan: Plan) -> Iterator[Tried]:
    """Each run of these tests is an attempt; the short form is in `make check` already."""
    if plan.short:
        yield Tried("their short form", SKIPPED, "tests of their own")
        return
    for what, (times, files) in RUNS.items():
        for _ in range(times):
            yield _run(what, files)


def _run(what: str, files: tuple[str, ...]) -> Tried:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *files]
    environment = {**os.environ, "GROWTH_RECOMPILES": "300"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT
    )
    said = done.stdout[-2000:] if done.returncode else ""
    return Tried(what, DEFECT if done.returncode else OK, said)
