"""Axes of charts: values to pixels, and round values for the ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` on pixels from `start` to `end`, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value; values out of range are clamped."""
        low, high, value = (self._level(v) for v in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.0
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def _level(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self.log else value

    def ticks(self) -> list[float]:
        """About five round values: powers of ten, or multiples of 1, 2 or 5."""
        if self.log:
            first, last = math.floor(self._level(self.low)), math.floor(self._level(self.high))
            stride = max(1, round((last - first) / 6))
            between = (1, 2, 5) if last - first <= 2 else (1,)
            found = [m * 10.0**p for p in range(first, last + 1, stride) for m in between]
            return [value for value in found if self.low <= value <= self.high]
        rough = (self.high - self.low) / 5 or 1.0
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
        count = int((self.high - self.low) / step + 1e-9)
        return [self.low + step * n for n in range(count + 1)]


def log_scale(values: list[float], start: float, end: float) -> Scale:
    """A logarithmic scale that contains all values, with a margin."""
    return Scale(min(values) / 1.5, max(values) * 1.5, start, end, log=True)
