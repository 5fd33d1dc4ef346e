"""Times of the judge on a GPU, next to plain timing with CUDA events.

    python -m tests.gpu.judged_times
"""

from __future__ import annotations

import linecache
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.debug.judge.judge import Judge
from tests.judge import candidates

ROTATED = 512 << 20
"""Bytes of different inputs for plain timing, so that L2 has none of them."""
REPEATED, SAMPLES = 64, 15
ADD = "def candidate(x):\n    return x + 1\n"
PRODUCT = "def candidate(x, y):\n    return x @ y\n"
TWICE = candidates.TRITON.replace(
    "    return out\n",
    "    other = torch.empty_like(x)\n"
    "    if x.numel():\n"
    "        rows[(x.shape[0],)](x, other, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))\n"
    "    return out\n",
)
"""The kernel runs twice."""


@dataclass(frozen=True)
class Kernel:
    """A reference, its candidate, and the shapes of its arguments."""

    reference: Callable[..., torch.Tensor]
    candidate: str
    shapes: tuple[tuple[int, ...], ...]


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(2 * x, -1)


def add(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x @ y


KERNELS = {
    "Triton softmax, 4096 x 1024": Kernel(softmax, candidates.TRITON, ((4096, 1024),)),
    "Triton softmax twice, 4096 x 1024": Kernel(softmax, TWICE, ((4096, 1024),)),
    "x + 1, 4 M": Kernel(add, ADD, ((1 << 22,),)),
    "product, 1024": Kernel(product, PRODUCT, ((1024, 1024), (1024, 1024))),
    "Triton softmax, 33 x 40": Kernel(softmax, candidates.TRITON, ((33, 40),)),
}


@dataclass(frozen=True)
class Row:
    """Microseconds of a candidate: by the judge, with cold caches, its interval, and by events."""

    name: str
    judged: float
    low: float
    high: float
    cold: float
    reference: float
    overhead_of_reference: float
    plain: float
    verdict: str

    def __str__(self) -> str:
        return (f"{self.name:36} {self.judged:8.1f} [{self.low:7.1f}, {self.high:7.1f}]"
                f" {self.cold:8.1f} {self.plain:8.1f} {self.judged / self.plain:6.2f}"
                f" {self.reference:8.1f} {self.overhead_of_reference:8.1f}")  # fmt: skip


HEAD = (f"{'microseconds':36} {'judged':>8} {'interval':>18} {'cold':>8} {'events':>8}"
        f" {'ratio':>6} {'ref.':>8} {'events':>8}")  # fmt: skip


def plain_seconds(function: Callable[..., torch.Tensor], shapes: tuple[tuple[int, ...], ...],
                  ) -> float:  # fmt: skip
    """Seconds per call by CUDA events, with different inputs; the median of some samples."""
    one = sum(4 * torch.Size(shape).numel() for shape in shapes)
    count = max(2, min(REPEATED, ROTATED // one))
    inputs = [[torch.randn(shape, device="cuda") for shape in shapes] for _ in range(count)]
    found = []
    for _ in range(SAMPLES):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        first.record()
        kept = [function(*args) for args in inputs]
        last.record()
        last.synchronize()
        found.append(first.elapsed_time(last) / 1e3 / count)
        del kept
    return sorted(found)[SAMPLES // 2]


def _function(text: str) -> Callable[..., torch.Tensor]:
    """The candidate in this process; Triton reads the text of a kernel as inspect does."""
    file, names = f"<judged {hash(text)}>", dict[str, Any]()
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    found: Callable[..., torch.Tensor] = names["candidate"]
    return found


def row(judge: Judge, name: str, seconds: float = 0.5) -> Row:
    """Judge and time one kernel."""
    kernel = KERNELS[name]
    args = tuple(torch.randn(shape, device="cuda") for shape in kernel.shapes)
    found = judge.judge(kernel.reference, kernel.candidate, [args], seconds=seconds)
    assert found.accepted and found.timings.rounds, str(found)
    low, high = found.timings.median_interval("candidate")
    return Row(
        name, 1e3 * found.timings.median_ms("candidate"), 1e6 * low, 1e6 * high,
        1e3 * found.timings.median_ms("candidate with cold caches"),
        1e3 * found.timings.median_ms("reference"),
        1e6 * plain_seconds(kernel.reference, kernel.shapes),
        1e6 * plain_seconds(_function(kernel.candidate), kernel.shapes),
        str(found),
    )  # fmt: skip


def main() -> None:
    print(torch.cuda.get_device_name(), torch.__version__)
    print(HEAD)
    with Judge() as judge:
        for name in KERNELS:
            start = time.perf_counter()
            try:
                found = row(judge, name)
            except AssertionError as failed:
                print(f"{name}: {failed}", flush=True)
                continue
            print(found)
            print("    " + found.verdict.replace("\n", "\n    "))
            print(f"    judged in {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
