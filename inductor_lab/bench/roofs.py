"""A machine, and the largest rates that were measured on it, as data; `machine.py` measures."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass, replace

from inductor_lab.compiler.base.display import Shown


@dataclass(frozen=True)
class Machine:
    """The machine of a measurement."""

    device: str
    threads: int
    torch: str

    def __str__(self) -> str:
        threads = f", {self.threads} {'thread' if self.threads == 1 else 'threads'}"
        return f"{self.device}{'' if self.threads == 0 else threads}, torch {self.torch}"


@dataclass(frozen=True)
class Ceilings(Shown):
    """The largest rates that were measured on a machine.

    bandwidth   (bytes moved by one copy, bytes per second), from small to large; copies that
                fit into a cache are faster
    flop_rates  dtype (`"float32"`) → floating-point operations per second of its matrix product
    on          the day of the measurement, as `2026-11-23`
    doubt       why these numbers are not reliable; "" if they are
    """

    machine: Machine
    bandwidth: tuple[tuple[int, float], ...]
    flop_rates: Mapping[str, float]
    on: str = ""
    doubt: str = ""

    def bytes_per_second(self, nbytes: int) -> float:
        """The bandwidth for this many bytes, interpolated between the measured sizes."""
        sizes = [math.log(size) for size, _ in self.bandwidth]
        rates = [rate for _, rate in self.bandwidth]
        at = math.log(max(nbytes, 1))
        right = bisect(sizes, at)
        if right in (0, len(sizes)):
            return rates[min(right, len(rates) - 1)]
        part = (at - sizes[right - 1]) / (sizes[right] - sizes[right - 1])
        return rates[right - 1] + part * (rates[right] - rates[right - 1])

    def flops_per_second(self, dtype: str) -> float:
        return self.flop_rates.get(dtype, self.flop_rates["float32"])

    def seconds(self, nbytes: int, flops: int, dtype: str = "float32") -> float:
        """The least time for this work on this machine: the slower of the two roofs."""
        moving = nbytes / self.bytes_per_second(nbytes) if nbytes else 0.0
        return max(moving, flops / self.flops_per_second(dtype))

    def raised(self, nbytes: int, bandwidth: float, flop_rate: float, dtype: str) -> Ceilings:
        """Limits that are at least as large as these measured rates."""
        rates = {**self.flop_rates, dtype: max(flop_rate, self.flops_per_second(dtype))}
        if nbytes and bandwidth > self.bytes_per_second(nbytes):
            others = ((size, rate) for size, rate in self.bandwidth if size != nbytes)
            return replace(
                self, bandwidth=falling({**dict(others), nbytes: bandwidth}), flop_rates=rates
            )
        return replace(self, flop_rates=rates)

    def __repr__(self) -> str:
        memory, most = self.bandwidth[-1][1], self.flop_rates["float32"]
        return f"Ceilings({memory / 1e9:.0f} GB/s, {most / 1e9:.0f} GFLOP/s)"

    def __str__(self) -> str:
        lines = [str(self.machine)]
        lines += [f"  {size_text(size):>8} copied   {rate / 1e9:8.1f} GB/s"
                  for size, rate in self.bandwidth]  # fmt: skip
        lines += [f"  {name:>8} product  {rate / 1e9:8.1f} GFLOP/s"
                  for name, rate in self.flop_rates.items()]  # fmt: skip
        said = (f"measured on {self.on}" if self.on else "", self.doubt)
        lines += [f"  {sentence}" for sentence in said if sentence]
        return "\n".join(lines)


def falling(rates: Mapping[int, float]) -> tuple[tuple[int, float], ...]:
    """Rates by size; a smaller copy is at least as fast as a larger one.

    A small copy loses time only to call overhead, which is not a limit of the memory."""
    found, highest = [], 0.0
    for nbytes in sorted(rates, reverse=True):
        highest = max(highest, rates[nbytes])
        found.append((nbytes, highest))
    return tuple(reversed(found))


def size_text(nbytes: int) -> str:
    return f"{nbytes / 1e6:.1f} MB" if nbytes >= 1e6 else f"{nbytes / 1e3:.0f} kB"
