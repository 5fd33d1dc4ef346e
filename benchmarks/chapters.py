"""Measure the ratios that chapters 6, 8 and 11 show on machines that are too noisy.

python -m benchmarks.chapters     prints the ratios of `inductor_lab/course/recorded.py`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import inductor_lab as lab
from inductor_lab.bench.timing import Timings, compare
from inductor_lab.course.measured import slowdown_intervals
from inductor_lab.debug.doctor import cpu_name

SECONDS = 8.0


def wave(x: torch.Tensor) -> torch.Tensor:
    return ((x + 1) * 2).sin()


def attend(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ w, -1)


def half_of_the_sum(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax(2 * (x[:, :256] @ w[:256]), -1)


def passes(function: Callable[..., Any], *args: torch.Tensor) -> Timings:
    return lab.inspect(function, *args).ablation(seconds=SECONDS).timings


def fusion() -> Timings:
    big = torch.randn(4_000_000)
    fused = lab.inspect(wave, big)
    programs = {"fused": fused.compiled, "naive": fused.what_if(fusion=False).compiled}
    return compare(programs, big, seconds=SECONDS)


def less_work() -> Timings:
    x, w = torch.randn(512, 512), torch.randn(512, 512)
    return compare({"sloppy": half_of_the_sum, "eager": attend}, x, w, seconds=SECONDS)


MEASURED: dict[str, tuple[str, Callable[[], Timings]]] = {
    "chapter 6, x.T + x": (
        "nothing", lambda: passes(lambda x: x.T + x, torch.randn(1024, 1024))
    ),
    "chapter 6, softmax(x @ w)": (
        "nothing", lambda: passes(attend, torch.randn(512, 128), torch.randn(128, 512))
    ),
    "chapter 8, fusion": ("fused", fusion),
    "chapter 11, less work": ("sloppy", less_work),
}  # fmt: skip
"""What is measured, and the baseline."""


def main() -> None:
    print(f"{cpu_name()}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    for title, (base, measure) in MEASURED.items():
        timings = measure()
        print(f"{title}: {timings.rounds} rounds")
        for name, (low, high) in slowdown_intervals(timings, base).items():
            print(f"  {name:12} {timings.ratio(name, base):6.2f}   {low:.2f} to {high:.2f}")


if __name__ == "__main__":
    main()
