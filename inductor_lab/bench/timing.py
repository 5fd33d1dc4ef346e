"""Reliable timing: callables are interleaved in one process.

The speed of a machine changes during a measurement (clock rate, heat, other programs).  Programs
that are timed one after the other run under different conditions.  Interleaved programs run under
the same conditions in each round, so per-round ratios are more exact than a ratio of averages.

Inductor: `do_bench` in `runtime/benchmarking.py`, which times one callable at a time.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.compiler.torch_door.torch_names import optional
from inductor_lab.notebook.language import say

WARMUP_CALLS = 2
FEWEST_ROUNDS = 3
HEAD_START = 500_000
"""Cycles for which a GPU is kept busy, so that it never waits for the host."""
SAME = 1.03
"""Speeds that differ by less than this factor are called the same."""
SHORTEST_SAMPLE = 200e-6
"""Seconds; faster calls are repeated within a sample, because of the clock's resolution."""


@dataclass(frozen=True)
class Timings:
    """Seconds per call of each callable, one value for each round.

    Those in `apart` were timed before, so their samples belong to no round.
    """

    seconds: Mapping[str, tuple[float, ...]]
    apart: tuple[str, ...] = ()

    @property
    def rounds(self) -> int:
        return len(next((s for name, s in self.seconds.items() if name not in self.apart), ()))

    def of(self, *names: str) -> Timings:
        """The samples of these callables."""
        apart = tuple(name for name in names if name in self.apart)
        return Timings({name: self.seconds[name] for name in names}, apart)

    def median_ms(self, name: str) -> float:
        """The median in milliseconds."""
        return statistics.median(self.seconds[name]) * 1e3

    def spread(self, name: str) -> float:
        """Half the interquartile range over the median: 0.05 means "give or take 5 %"."""
        samples = self.seconds[name]
        return _half_quartiles(samples) / statistics.median(samples)

    def median_interval(self, name: str) -> tuple[float, float]:
        """The 95 % confidence interval of the median, in seconds; all rounds if there are few."""
        found = sorted(self.seconds[name])
        cut = _rank(len(found))
        return found[cut], found[-1 - cut]

    def ratio(self, name: str, base: str) -> float:
        """The slowdown compared with `base`: the median of per-round ratios; the ratio of medians
        if one of the two was timed before."""
        if name in self.apart or base in self.apart:
            return self.median_ms(name) / self.median_ms(base)
        pairs = zip(self.seconds[name], self.seconds[base], strict=True)
        return statistics.median(one / other for one, other in pairs)

    def speedups(self, name: str, base: str) -> tuple[float, ...]:
        """The speedup over `base` in each round, sorted."""
        pairs = zip(self.seconds[base], self.seconds[name], strict=True)
        return tuple(sorted(other / one for other, one in pairs))

    def interval(self, name: str, base: str) -> tuple[float, float]:
        """The 95 % confidence interval of the speedup; with fewer than six rounds, their range.

        Order statistics of per-round speedups.  They assume nothing about the distribution of
        times, but they need independent rounds.  If one of the two was timed before, the range that
        the intervals of the two medians allow.
        """
        if name in self.apart or base in self.apart:
            one, other = self.median_interval(name), self.median_interval(base)
            return other[0] / one[1], other[1] / one[0]
        found = self.speedups(name, base)
        cut = _rank(len(found))
        return found[cut], found[-1 - cut]

    def verdict(self, name: str, base: str) -> str:
        """`1.9 to 2.3x faster than eager`: the interval of the ratio, or `too noisy to tell`."""
        rounds = min(len(self.seconds[name]), len(self.seconds[base]))
        if rounds < FEWEST_ROUNDS:
            text = "inconclusive: only 1 round" if rounds == 1 else "inconclusive: only {n} rounds"
            return say(text, n=rounds)
        low, high = self.interval(name, base)
        if low > 1 / SAME and high < SAME:
            return say("as fast as {base}, {low:.2f} to {high:.2f}x", base=base, low=low, high=high)
        if low > 1:
            return say("{times} faster than {base}", times=_range(low, high), base=base)
        if high < 1:
            return say("{times} slower than {base}", times=_range(1 / high, 1 / low), base=base)
        return say(
            "too noisy to tell: {low:.2f}x to {high:.2f}x of {base}'s speed",
            base=base, low=low, high=high,
        )  # fmt: skip

    def __str__(self) -> str:
        base = next(iter(self.seconds))
        width = max(map(len, self.seconds))
        return "\n".join(
            f"{name:{width}}  {self.median_ms(name):9.3f} ms  ±{self.spread(name):4.0%}"
            f"  {self.ratio(name, base):5.2f}x of {base}"
            for name in self.seconds
        )


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


def _range(low: float, high: float) -> str:
    """`1.9 to 2.3x`, `2x`; never `1x`, because that would mean no difference.

    >>> _range(1.92, 2.31), _range(2.0, 2.01), _range(1.001, 1.06), _range(12.3, 104.9)
    ('1.9 to 2.3x', '2x', 'up to 1.06x', '12 to 105x')
    """
    least, most = _times(low), _times(high)
    if least == "1":
        return say("up to {most}x", most=most)
    if least == most:
        return say("{most}x", most=most)
    return say("{least} to {most}x", least=least, most=most)


def _times(ratio: float) -> str:
    digits = 0 if ratio >= 10 else 1 if ratio >= 1.2 else 2
    text = f"{ratio:.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text


def _half_quartiles(samples: Sequence[float]) -> float:
    """Half the interquartile range; 0 for a single sample."""
    if len(samples) < 2:
        return 0.0
    low, _, high = statistics.quantiles(samples, n=4)
    return (high - low) / 2


def _rank(rounds: int) -> int:
    """The number of values on each side that are outside the median's 95 % interval."""
    return max(0, int(rounds / 2 - 0.98 * math.sqrt(rounds)) - 1)


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
