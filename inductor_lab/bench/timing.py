"""Reliable timing: callables are interleaved in one process.

The speed of a machine changes during a measurement (clock rate, heat, other programs).  Programs
that are timed one after the other run under different conditions.  Interleaved programs run under
the same conditions in each round, so per-round ratios are more exact than a ratio of averages.

Inductor: `do_bench` in `runtime/benchmarking.py`, which times one callable at a time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from inductor_lab.bench.timings import FEWEST_ROUNDS, Timings
from inductor_lab.compiler.torch_door.torch_names import optional

WARMUP_CALLS = 2
HEAD_START = 500_000
"""Cycles for which a GPU is kept busy, so that it never waits for the host."""
SHORTEST_SAMPLE = 200e-6
"""Seconds; faster calls are repeated within a sample, because of the clock's resolution."""


def compare(
    functions: Mapping[str, Callable[..., Any]],
    *args: Any,
    rounds: int | None = None,
    seconds: float = 2.0,
    at_least: int = FEWEST_ROUNDS,
    after_round: Callable[[Callable[[], Timings]], None] | None = None,
    **kwargs: Any,
) -> Timings:
    """Time `f(*args, **kwargs)` for each function, interleaved.

    Runs `rounds` rounds, or as many as fit into `seconds`, but never fewer than `at_least`.  Every
    second round has the reverse order, so that a function does not always follow the same one.
    Each sample waits for the GPU.  `after_round(so_far)` is called between rounds; `so_far()`
    returns all complete rounds, even if an exception has ended the last one.
    """
    wait = torch.cuda.synchronize if torch.cuda.is_available() else _nothing
    repeats = {name: _repeats(f, args, kwargs, wait) for name, f in functions.items()}
    samples: dict[str, list[float]] = {name: [] for name in functions}
    end = time.perf_counter() + seconds
    done = 0

    def so_far() -> Timings:
        return Timings({name: tuple(found[:done]) for name, found in samples.items()})

    with _no_garbage_collection():
        while done < (rounds or at_least) or (rounds is None and time.perf_counter() < end):
            order = list(functions.items())
            for name, function in order if done % 2 == 0 else reversed(order):
                took = _sample(function, args, kwargs, repeats[name], wait)
                samples[name].append(took)
            done += 1
            if after_round is not None:
                after_round(so_far)
    return so_far()


def _repeats(function: Callable[..., Any], args: Any, kwargs: Any, wait: Callable[[], None]) -> int:
    """Warm up, and compute how many calls a sample needs."""
    quickest = min(_sample(function, args, kwargs, 1, wait) for _ in range(WARMUP_CALLS))
    return max(1, min(1000, int(SHORTEST_SAMPLE / max(quickest, 1e-9))))


def _sample(
    function: Callable[..., Any], args: Any, kwargs: Any, calls: int, wait: Callable[[], None]
) -> float:
    """Seconds per call, the mean of consecutive calls."""
    wait()
    start = time.perf_counter()
    for _ in range(calls):
        function(*args, **kwargs)
    wait()
    return (time.perf_counter() - start) / calls


def clock_of(gpu: bool) -> Callable[[], Callable[[], Callable[[], float]]]:
    """A clock for one measurement: `stop = start()`, `seconds = stop()`, then `seconds()`.

    A GPU uses CUDA events.  It is kept busy first, so that the time for launches on the host does
    not count.
    """
    return _start_on_gpu if gpu else _start


def _start() -> Callable[[], Callable[[], float]]:
    began = time.perf_counter()

    def stop() -> Callable[[], float]:
        took = time.perf_counter() - began
        return lambda: took

    return stop


def _start_on_gpu() -> Callable[[], Callable[[], float]]:
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    optional("torch.cuda._sleep", lambda cycles: None)(HEAD_START)
    first.record()

    def stop() -> Callable[[], float]:
        last.record()

        def seconds() -> float:
            last.synchronize()
            return float(first.elapsed_time(last)) / 1e3

        return seconds

    return stop


def _nothing() -> None:
    pass


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
