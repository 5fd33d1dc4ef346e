"""Which library computes one matrix product: the measured times, and the choice that follows."""

from __future__ import annotations

from dataclasses import dataclass

MARGIN = 0.9
"""oneDNN must take less than this share of ATen's time: a tie keeps what eager does."""
PACKED_MARGIN = 0.95
"""The same for a packed weight, against the faster of the two: a tie keeps the memory."""


@dataclass(frozen=True, repr=False)
class Choice:
    """One product, the seconds that each candidate took, and which was chosen.

    The candidates are "ATen", on a CPU "oneDNN", and, where the weight may be packed, "oneDNN
    packed" and "MKL packed"; on a GPU "Triton", a kernel of ours, each with what comes after it
    (`tune_matmul.py`).
    """

    op: str
    sizes: tuple[int, int, int]
    dtype: str
    seconds: tuple[tuple[str, float], ...]

    @property
    def plain(self) -> str:
        """The faster candidate that takes the weight as it is."""
        took = dict(self.seconds)
        other, margin = ("Triton", PACKED_MARGIN) if "Triton" in took else ("oneDNN", MARGIN)
        return other if took[other] < margin * took["ATen"] else "ATen"

    @property
    def chosen(self) -> str:
        took = dict(self.seconds)
        best = min(took, key=lambda candidate: took[candidate])
        good = best.endswith("packed") and took[best] < PACKED_MARGIN * took[self.plain]
        return best if good else self.plain

    @property
    def packed(self) -> str | None:
        """The library that a weight is packed for."""
        return self.chosen.removesuffix(" packed") if self.chosen.endswith("packed") else None

    def __str__(self) -> str:
        m, k, n = self.sizes
        times = ", ".join(f"{name} {seconds * 1e3:.3f} ms" for name, seconds in self.seconds)
        return f"{self.op} ({m}, {k}) x ({k}, {n}) {self.dtype}: {times}: {self.chosen}"

    def __repr__(self) -> str:
        return f"<{self}>"
