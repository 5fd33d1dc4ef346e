"""Memory levels off: calls of ever new sizes, and functions that are compiled and dropped.

    python -m tests.runtime.growth --calls 20000 --recompiles 300

prints the resident memory after each tenth as JSON; `test_growth` runs a shorter form.
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
    """Bytes of this process that lie in memory."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def libraries() -> int:
    """How many libraries of ours are loaded."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return len({line.split()[-1] for line in lines if "kernel.so" in line})


def tenths(count: int, work: Callable[[int], None]) -> Iterator[int]:
    """Do it so many times; the memory after each tenth."""
    for n in range(count):
        work(n)
        if (n + 1) % (count // TENTHS) == 0:
            yield resident()


def sizes(count: int) -> list[int]:
    """Calls of one function, of a new size each: the pool's memory, and what is known of sizes."""
    fast = lab.compile(lambda x: x.sin() * 2, dynamic=True)
    base = torch.randn(40_000 + count)

    def work(n: int) -> None:
        fast(base[: 40_000 + n])

    return list(tenths(count, work))


def recompiles(count: int, backend: str) -> list[int]:
    """Functions of other numbers, each trained once and then forgotten."""
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
