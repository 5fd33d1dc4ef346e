"""The samples of callables that were timed in rounds, and what they say; `timing.py` takes them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inductor_lab.notebook.language import say

FEWEST_ROUNDS = 3
SAME = 1.03
"""Speeds that differ by less than this factor are called the same."""


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
