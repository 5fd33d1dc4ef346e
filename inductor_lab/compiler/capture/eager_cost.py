"""The cost of a captured graph in eager mode, as data; `eager.py` counts it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class EagerCost:
    """Eager mode's kernels for one graph, forward and backward.

    calls         (operator, count) of those that compute something, in order of their first call
    bytes_read    each call reads each of its operands once; `bytes_written` likewise
    kept          bytes that autograd keeps for the backward; `kept_inputs` of them are inputs of
                  the graph, which stay in memory anyway
    """

    calls: tuple[tuple[str, int], ...] = ()
    bytes_read: int = 0
    bytes_written: int = 0
    kept: int = 0
    kept_inputs: int = 0

    @property
    def kernels(self) -> int:
        """Operator calls; one call may launch several kernels of its library."""
        return sum(count for _, count in self.calls)

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written

    @property
    def kept_without_inputs(self) -> int:
        return self.kept - self.kept_inputs

    def __add__(self, other: EagerCost) -> EagerCost:
        calls = Counter(dict(self.calls))
        calls.update(dict(other.calls))
        return EagerCost(
            tuple(calls.items()),
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
            self.kept + other.kept,
            self.kept_inputs + other.kept_inputs,
        )

    def __str__(self) -> str:
        calls = ", ".join(f"{n} x {op}" if n > 1 else op for op, n in self.calls)
        noun = "call" if self.kernels == 1 else "calls"
        return f"{self.kernels} operator {noun}, {self.bytes:,} bytes moved: {calls}"
