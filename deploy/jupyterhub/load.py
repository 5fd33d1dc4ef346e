"""Load test of a class: `make hub`, or `python -m deploy.jupyterhub.load --users 30`.

Starts the real JupyterHub.  Students connect within a minute, each with a server and a kernel, and
run a tutorial through the proxy.  Prints waiting times and memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil

from deploy.jupyterhub.hub import Hub, running
from deploy.jupyterhub.student import Visit, visit

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "notebooks" / "tutorials" / "en" / "01_capture.ipynb"
MINUTES = 10
SAMPLED = 10.0


@dataclass(frozen=True)
class Load:
    """The result of a load test.

    bytes_of  proportional set size of each student's server and kernel at the end: a page shared
              by several processes is divided among them
    most      maximum total bytes of all processes of the hub
    """

    visits: tuple[Visit, ...]
    seconds: float
    bytes_of: dict[str, int]
    most: int

    @property
    def errors(self) -> list[str]:
        return [f"{one.name}: {error}" for one in self.visits for error in one.errors]

    def __str__(self) -> str:
        seconds: tuple[tuple[str, Callable[[Visit], float | None]], ...] = (
            ("server ready", lambda one: one.started),
            ("first picture", lambda one: one.picture),
            ("tutorial finished", lambda one: one.finished),
            ("slowest cell", lambda one: one.slowest_cell),
        )
        lines = [f"{'':22}{'median':>10}{'worst':>10}"]
        for name, of in seconds:
            known = [value for one in self.visits if (value := of(one)) is not None]
            lines.append(_row(name, known, lambda value: f"{value:.1f} s"))
        megabytes = [count / 2**20 for count in self.bytes_of.values()]
        lines.append(_row("memory of a student", megabytes, lambda value: f"{value:.0f} MiB"))
        done = sum(one.finished is not None for one in self.visits)
        finished = f"{done} of {len(self.visits)} in {self.seconds:.0f} s"
        lines.append(f"{'finished':22}{finished:>20}")
        lines.append(f"{'all memory':22}{self.most / 2**30:16.1f} GiB")
        lines.append(f"{'errors':22}{len(self.errors):>20}")
        lines += self.errors
        return "\n".join(lines)


def _row(name: str, values: Sequence[float], text_of: Callable[[float], str]) -> str:
    if not values:
        return f"{name:22}{'-':>10}{'-':>10}"
    return f"{name:22}{text_of(statistics.median(values)):>10}{text_of(max(values)):>10}"


def load(users: int, notebook: Path, over: float, shared: Path) -> Load:
    """Let `users` students connect over `over` seconds and run a notebook."""
    cells = [c.source for c in nbformat.read(notebook, as_version=4).cells if c.cell_type == "code"]
    with tempfile.TemporaryDirectory(prefix="hub-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        names = [f"student{number}" for number in range(users)]
        for user in names:
            (folder / user / "course").mkdir(parents=True)
        # in a thread, because the caller's thread may have a running event loop
        with running(folder, shared) as hub, ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, _class(hub, names, cells, over)).result()


async def _class(hub: Hub, names: Sequence[str], cells: Sequence[str], over: float) -> Load:
    began, most = time.monotonic(), 0
    coming = [
        asyncio.create_task(visit(hub, name, cells, over * n / len(names)))
        for n, name in enumerate(names)
    ]
    waiting = set(coming)
    while waiting:
        _, waiting = await asyncio.wait(waiting, timeout=SAMPLED)
        sizes = await asyncio.to_thread(memory, hub.process.pid)
        most = max(most, sum(sizes.values()))
    took = time.monotonic() - began
    own = {name: sizes[name] for name in names if name in sizes}
    return Load(tuple(task.result() for task in coming), took, own, most)


def memory(process: int) -> dict[str, int]:
    """Bytes of a process and its children, by student ("" for the hub's own processes)."""
    found: dict[str, int] = defaultdict(int)
    root = psutil.Process(process)
    for one in [root, *root.children(recursive=True)]:
        try:
            user = one.environ().get("JUPYTERHUB_USER", "")
            found[user] += one.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def filled(folder: Path, notebook: Path) -> Path:
    """A class cache with the compiled code of a notebook, for kernels with one thread."""
    command = Path(sys.executable).with_name("inductor-lab")
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([command, "warm", notebook, "--into", folder], env=env, check=True)
    return folder


def main() -> int:
    """Print the waiting times; returns 1 if anything failed or took more than ten minutes."""
    parser = argparse.ArgumentParser(prog="python -m deploy.jupyterhub.load", description=__doc__)
    parser.add_argument("--users", type=int, default=30)
    parser.add_argument("--notebook", type=Path, default=TUTORIAL)
    parser.add_argument("--over", type=float, default=60.0, help="seconds for all to connect")
    parser.add_argument("--cache", type=Path, help="the class cache; default: a new one is filled")
    given = parser.parse_args()
    cores, free = os.cpu_count(), psutil.virtual_memory().available / 2**30
    print(f"{given.users} students, {given.notebook.name}; {cores} cores, {free:.1f} GiB free")
    with tempfile.TemporaryDirectory(prefix="class-") as scratch:
        shared = given.cache or filled(Path(scratch), given.notebook)
        found = load(given.users, given.notebook, given.over, shared)
    print(found)
    late = found.seconds > 60 * MINUTES
    return int(bool(found.errors) or late)


if __name__ == "__main__":
    sys.exit(main())
