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

from inductor_lab.bench.machine import ceilings
from inductor_lab.debug.judge.judge import Judge
from inductor_lab.debug.untrusted.confine import confinable
from tests.judge import candidates

ROTATED = 512 << 20
"""Bytes of different inputs for plain timing, so that L2 has none of them."""
REPEATED, SAMPLES = 64, 15
ADD = "def candidate(x):\n    return x + 1\n"
PRODUCT = "def candidate(x, y):\n    return x @ y\n"
PRODUCT_TWICE = "def candidate(x, y):\n    x @ y\n    return x @ y\n"
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
    "product, 1024": Kernel(product, PRODUCT, ((1024, 1024), (1024, 1024))),
    "product twice, 1024": Kernel(product, PRODUCT_TWICE, ((1024, 1024), (1024, 1024))),
    "Triton softmax, 1024 x 1024": Kernel(softmax, candidates.TRITON, ((1024, 1024),)),
    "Triton softmax twice, 1024 x 1024": Kernel(softmax, TWICE, ((1024, 1024),)),
    "x + 1, 1 M": Kernel(add, ADD, ((1 << 20,),)),
}
"""The products take longer than it takes to launch them on the CPU."""


@dataclass(frozen=True)
class Row:
    """Microseconds of a candidate: by the judge, with cold caches, its interval, and by events.

    speedup  the interval of its speedup over the reference
    """

    name: str
    judged: float
    low: float
    high: float
    cold: float
    reference: float
    plain_reference: float
    plain: float
    speedup: tuple[float, float]
    verdict: str

    def __str__(self) -> str:
        return (f"{self.name:36} {self.judged:8.1f} [{self.low:7.1f}, {self.high:7.1f}]"
                f" {self.cold:8.1f} {self.plain:8.1f} {self.judged / self.plain:6.2f}"
                f" {self.reference:8.1f} {self.plain_reference:8.1f}")  # fmt: skip


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


def row(judge: Judge, name: str, tell: Callable[[str], None] = lambda text: None,
        seconds: float = 1.0) -> Row:  # fmt: skip
    """Judge and time one kernel; `tell` is called with the progress."""
    kernel = KERNELS[name]
    args = tuple(torch.randn(shape, device="cuda") for shape in kernel.shapes)
    found = judge.judge(kernel.reference, kernel.candidate, [args], seconds=seconds, tell=tell)
    assert found.accepted and found.timings.rounds, str(found)
    low, high = found.timings.median_interval("candidate")
    return Row(
        name, 1e3 * found.timings.median_ms("candidate"), 1e6 * low, 1e6 * high,
        1e3 * found.timings.median_ms("candidate with cold caches"),
        1e3 * found.timings.median_ms("reference"),
        1e6 * plain_seconds(kernel.reference, kernel.shapes),
        1e6 * plain_seconds(_function(kernel.candidate), kernel.shapes),
        found.timings.interval("candidate", "reference"),
        f"{found}\n  {found.timings.rounds} rounds: "
        + " ".join(f"{1e6 * each:.1f}" for each in found.timings.seconds["candidate"]),
    )  # fmt: skip


def main() -> None:
    began = time.perf_counter()

    def tell(text: str) -> None:
        if "case" not in text or text.startswith("case 1:"):
            print(f"    {time.perf_counter() - began:6.1f} s  {text}", flush=True)

    print(torch.cuda.get_device_name(), torch.__version__, f"Landlock {confinable()}")
    print(ceilings("cuda"))
    tell("roof measured")
    print(HEAD)
    with Judge() as judge:
        for name in KERNELS:
            try:
                found = row(judge, name, tell)
            except AssertionError as failed:
                print(f"{name}: {failed}", flush=True)
                continue
            print(found)
            print("    " + found.verdict.replace("\n", "\n    "))
            tell("judged")


if __name__ == "__main__":
    main()
