"""The measured time of a kernel or library call, compared with the limits of the machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step of a schedule, timed inside the running program.

    name      of the group of the kernel, or of the library's operator
    seconds   the median of all rounds, including the call; `spread` as in `Timings`
    nbytes    bytes read and written; `flops` is 0 if it is unknown
    roof      the minimum seconds for these bytes and flops on this machine; None if the machine is
              too noisy to measure it
    memory    True if the bytes limit the time, False if the flops do
    interval  the 95 % confidence interval of the median
    """

    name: str
    generated: bool
    seconds: float
    spread: float
    nbytes: int
    flops: int
    roof: float | None = None
    memory: bool = True
    interval: tuple[float, float] | None = None

    @property
    def bandwidth(self) -> float:
        """Bytes per second."""
        return self.nbytes / self.seconds

    @property
    def flop_rate(self) -> float:
        """Floating-point operations per second."""
        return self.flops / self.seconds

    @property
    def share(self) -> float | None:
        """The fraction of the roof that it reaches; 1 is the limit of the machine."""
        return None if self.roof is None else self.roof / self.seconds

    @property
    def share_text(self) -> str:
        """`93 %`, or "" if the roof is unknown."""
        return "" if self.share is None else f"{100 * self.share:.0f} %"

    def __str__(self) -> str:
        kind = "memory" if self.memory else "arithmetic"
        of_roof = f", {self.share_text} of the {kind} roof" if self.share_text else ""
        return (
            f"{duration(self.seconds)}, {self.bandwidth / 1e9:.3g} GB/s, "
            f"{self.flop_rate / 1e9:.3g} GFLOP/s{of_roof}"
        )


@dataclass(frozen=True, slots=True)
class Spent:
    """The total seconds of measured steps: of generated kernels, and of library calls."""

    kernels: float = 0.0
    libraries: float = 0.0

    @staticmethod
    def of(times: Iterable[StepTime]) -> Spent:
        """Return the sums over some steps."""
        times = list(times)
        kernels, libraries = (
            sum(took.seconds for took in times if took.generated == generated)
            for generated in (True, False)
        )
        return Spent(kernels, libraries)

    @property
    def seconds(self) -> float:
        return self.kernels + self.libraries


def duration(seconds: float) -> str:
    """Format a duration with three digits and a unit.

    >>> duration(12.84e-6), duration(0.0034), duration(1.306), duration(0.99996)
    ('12.8 µs', '3.4 ms', '1.31 s', '1.00 s')
    """
    if seconds >= 0.9995:  # would be printed as 1e+03 of the smaller unit
        return f"{seconds:.2f} s"
    return f"{1e3 * seconds:.3g} ms" if seconds >= 0.9995e-3 else f"{1e6 * seconds:.3g} µs"
