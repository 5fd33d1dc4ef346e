"""Checks that memory stops growing with calls of new sizes, and with functions that are deleted.

    python -m tests.runtime.growth --calls 20000 --recompiles 300

prints the resident memory after each tenth as JSON.  `test_growth` runs a shorter form.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

import inductor_lab as lab
from tests.fresh import compile_always

TENTHS = 10


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def libraries() -> int:
    """Return the number of loaded kernel libraries."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return len({line.split()[-1] for line in lines if "kernel.so" in line})


def tenths(count: int, work: Callable[[int], None]) -> Iterator[int]:
    """Call `work` `count` times, and yield the memory after each tenth."""
    for n in range(count):
        work(n)
        if (n + 1) % (count // TENTHS) == 0:
            yield resident()


def sizes(count: int) -> list[int]:
    """Call one function with a new size each time: tests the pool and the records of sizes."""
    fast = lab.compile(lambda x: x.sin() * 2, dynamic=True)
    base = torch.randn(40_000 + count)

    def work(n: int) -> None:
        fast(base[: 40_000 + n])

    return list(tenths(count, work))


def recompiles(count: int, backend: str) -> list[int]:
    """Compile functions with different constants, train each once, and delete it."""
    x = torch.randn(500, requires_grad=True)

    def work(n: int) -> None:
        factor = 1.0 + n / 1000
        torch.compile(lambda x: (x.sin() * factor).sum(), backend=backend)(x).backward()
        torch._dynamo.reset()

    return list(tenths(count, work))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--recompiles", type=int, default=300)
    parser.add_argument("--backend", default="inductor_lab", help="of the recompiles")
    given = parser.parse_args()
    compile_always()
    found = {
        "sizes": sizes(given.calls),
        "recompiles": recompiles(given.recompiles, given.backend),
        "libraries": libraries(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
