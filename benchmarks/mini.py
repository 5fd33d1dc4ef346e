"""Pointwise chains and row reductions: eager, the compiler in 1,000 lines, the full compiler.

    python -m benchmarks.mini                         all workloads
    python -m benchmarks.mini softmax chain           only those whose name contains one of these
    python -m benchmarks.mini --threads 1 --rounds 50

Results are compared with eager before anything is timed.  Calls are interleaved; each number is the
median over the rounds in microseconds, and the last column is the median of the ratio per round of
`inductor_lab.mini` to the full compiler.  With accelerators, the full compiler reuses the memory of
large results; `--bare` measures it without them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional as F
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.bench.machine import machine
from inductor_lab.mini import inductor_lab_mini

Program = Callable[..., torch.Tensor]
GOAL = 2.0
"""The small compiler may take so many times as long as the full one."""
WORKLOADS: dict[str, tuple[Program, tuple[int, ...]]] = {
    "chain of 5": (lambda x: ((x + 1) * 2 - x * x).relu() / 3, (1024, 1024)),
    "chain, 16K": (lambda x: ((x + 1) * 2 - x * x).relu() / 3, (16, 1024)),
    "gelu": (lambda x: F.gelu(x) * x, (1024, 1024)),
    "sigmoid, tanh": (lambda x: x.sigmoid() * x.tanh() + x, (1024, 1024)),
    "row sum": (lambda x: (x * x).sum(1), (1024, 1024)),
    "row maximum": (lambda x: x.amax(1), (1024, 1024)),
    "softmax": (lambda x: x.softmax(1), (1024, 1024)),
    "softmax, long rows": (lambda x: x.softmax(1), (64, 16000)),
    "log softmax": (lambda x: x.log_softmax(1), (1024, 1024)),
    "layer norm": (lambda x: F.layer_norm(x, x.shape[1:]), (1024, 1024)),
    "RMS norm": (lambda x: x * (x * x).mean(1, keepdim=True).add(1e-6).rsqrt(), (1024, 1024)),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the requested workloads and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only workloads whose name contains one of these")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--bare", action="store_true", help="the full compiler's kernels alone")
    given = parser.parse_args(arguments)
    torch.set_num_threads(given.threads)
    print(f"{'':20}{'eager':>9}{'mini':>9}{'full':>9}   mini/full")
    for name, (program, size) in WORKLOADS.items():
        if not given.words or any(word in name for word in given.words):
            print(row(name, program, size, given.rounds, given.bare), flush=True)
    print(machine())


def row(name: str, program: Program, size: tuple[int, ...], rounds: int, bare: bool) -> str:
    options: dict[str, Any] = {"accelerators_off": "all"} if bare else {}
    x = torch.randn(size)
    contenders = [
        program,
        torch.compile(program, backend=inductor_lab_mini, dynamic=False),
        lab.compile(program, dynamic=False, options=options),
    ]
    for compiled in contenders[1:]:
        assert_close(compiled(x), program(x), rtol=1e-4, atol=1e-5)
    found = [[timed(each, x) for each in contenders] for _ in range(rounds)]
    eager, mini, full = (statistics.median(times) * 1e6 for times in zip(*found, strict=True))
    ratio = statistics.median(b / c for _, b, c in found)
    mark = "" if ratio <= GOAL else f"  more than {GOAL:g}"
    return f"{name:20}{eager:9.1f}{mini:9.1f}{full:9.1f}{ratio:12.2f}{mark}"


def timed(function: Program, x: torch.Tensor) -> float:
    """Seconds of the faster of two calls in a row: the first brings the input into the cache."""
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        function(x)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
