"""Benchmark one function over several sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from inductor_lab.api.arguments import Seconds, checked
from inductor_lab.bench.bench_result import BenchResult, SweepResult
from inductor_lab.bench.machine import machine
from inductor_lab.bench.progress import Progress, usual_progress
from inductor_lab.bench.run import bench
from inductor_lab.bench.series import in_series
from inductor_lab.compiler.base.errors import BadArguments


@checked
def sweep(
    fn: Callable[..., Any],
    make: Callable[[int], Any],
    sizes: Iterable[int],
    *,
    seconds: Seconds = 1.0,
    progress: Progress | None = None,
    **options: Any,
) -> SweepResult:
    """`lab.bench` at each size, on the arguments `make(size)` (a tuple, or one argument).

    Each size is compiled separately with static sizes, and disk caches are used; compile times are
    not measured.  `seconds` is the time for each size; `options` are those of `lab.bench`.

    lab.bench.sweep(f, lambda n: torch.randn(n), [2**k for k in range(8, 24, 2)])
    """
    chosen = tuple(sizes)
    if not chosen:
        raise BadArguments("no sizes to measure", todo="for example sizes=[256, 4096, 65536]")
    name = getattr(fn, "__name__", type(fn).__name__)

    def made(results: tuple[BenchResult, ...], complete: bool) -> SweepResult:
        where = results[0].machine if results else machine()
        return SweepResult(f"{name} over sizes", where, chosen, results, complete)

    def run(size: int, inner: Progress) -> BenchResult:
        args = make(size)
        given = args if isinstance(args, tuple) else (args,)
        title = f"{name} {size:,}"
        return bench(fn, *given, seconds=seconds, cold=False, kernels=False, title=title,
                     progress=inner, **options)  # fmt: skip

    return in_series(chosen, run, made, progress or usual_progress())
