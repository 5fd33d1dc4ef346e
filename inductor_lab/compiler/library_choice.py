"""The choice of a library for a matrix product, from measured times."""

from __future__ import annotations

import math
from dataclasses import dataclass

MARGIN = 0.9
"""oneDNN must take less than this fraction of ATen's time.  A tie keeps ATen, as in eager mode."""
PACKED_MARGIN = 0.95
"""The same for a packed weight, compared with the faster of the two.  A tie saves the memory."""
OWN = "inductor_lab packed"
OWN_MARGIN = 0.95
"""Another library with a packed weight must take less than this fraction of the time of our own,
whose threads take small parts of the work (see `accelerate/own_products.py`)."""


@dataclass(frozen=True, repr=False)
class Choice:
    """One product, the seconds of each candidate, and the chosen one.

    The candidates on a CPU are "ATen" and "oneDNN", and if the weight can be packed, "oneDNN
    packed", "MKL packed" and "inductor_lab packed".  On a GPU they are "ATen" and "Triton" (our own
    kernel), each with its epilogue (`tune_matmul.py`).  A convolution is a product of its windows
    with the weight; it has only "oneDNN packed" and "inductor_lab packed".
    """

    op: str
    sizes: tuple[int, int, int]
    dtype: str
    seconds: tuple[tuple[str, float], ...]

    @property
    def plain(self) -> str:
        """The fastest candidate that does not pack the weight."""
        took = dict(self.seconds)
        other, margin = ("Triton", PACKED_MARGIN) if "Triton" in took else ("oneDNN", MARGIN)
        faster = took.get(other, math.inf) < margin * took.get("ATen", math.inf)
        return other if faster else "ATen"

    @property
    def chosen(self) -> str:
        took = dict(self.seconds)
        best = min(took, key=lambda candidate: took[candidate])
        if OWN in took and took[best] >= OWN_MARGIN * took[OWN]:
            best = OWN
        plain = took.get(self.plain, math.inf)
        good = best.endswith("packed") and took[best] < PACKED_MARGIN * plain
        return best if good else self.plain

    @property
    def packed(self) -> str | None:
        """The library for which the weight is packed, or None."""
        return self.chosen.removesuffix(" packed") if self.chosen.endswith("packed") else None

    def __str__(self) -> str:
        m, k, n = self.sizes
        times = ", ".join(f"{name} {seconds * 1e3:.3f} ms" for name, seconds in self.seconds)
        return f"{self.op} ({m}, {k}) x ({k}, {n}) {self.dtype}: {times}: {self.chosen}"

    def __repr__(self) -> str:
        return f"<{self}>"
