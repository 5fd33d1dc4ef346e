"""The measurements as tables: what is slower than another system comes first."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import geometric_mean

from benchmarks.peers.systems import EAGER, OURS, SYSTEMS
from inductor_lab.bench.bench_result import Table
from inductor_lab.bench.timings import Timings

SLACK = 20.0
"""How many times the error of eager mode is tolerated."""
ROUNDING = {"float32": 1e-5, "bfloat16": 1e-2}
"""Tolerated where eager mode is exact; relative to the largest value."""


@dataclass
class Row:
    """The measurements of one workload; all seconds are lists with a value for each round.

    errors    of each system: the largest difference from float64, relative to the largest value
    failures  why a system was not timed
    busy      the same while another process occupies one processor
    floor     the least seconds; 0 if it was not computed
    """

    name: str
    kind: str
    dtype: str
    first: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    busy: dict[str, list[float]] = field(default_factory=dict)
    floor: float = 0.0

    @property
    def tolerance(self) -> float:
        return max(SLACK * self.errors.get(EAGER, 0.0), ROUNDING[self.dtype])

    def ratio(self, busy: bool = False) -> float | None:
        """The time of the best other system divided by ours; None if one of them is missing."""
        best = self.best(busy)
        return self._timings(busy).ratio(best, OURS) if best else None

    def best(self, busy: bool = False) -> str:
        """The fastest other system; "" if ours or all others were not timed."""
        seconds = self.busy if busy else self.seconds
        others = [name for name in seconds if name != OURS]
        if OURS not in seconds or not others:
            return ""
        return min(others, key=self._timings(busy).median_ms)

    def shown(self, system: str, busy: bool = False) -> str:
        seconds = self.busy if busy else self.seconds
        return f"{self._timings(busy).median_ms(system):.3g}" if system in seconds else ""

    def _timings(self, busy: bool) -> Timings:
        taken = self.busy if busy else self.seconds
        return Timings({name: tuple(values) for name, values in taken.items()})


def save(rows: Sequence[Row], path: Path) -> None:
    path.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")


def load(path: Path) -> list[Row]:
    return [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))]


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Times of models and of kernels, with their geometric means, and the first calls."""
    for kind in ("model", "kernel"):
        of_kind = [row for row in rows if row.kind == kind]
        if of_kind:
            yield times(of_kind, f"{kind}s, ms")
        if any(row.busy for row in of_kind):
            yield times(of_kind, f"{kind}s while another process occupies a processor, ms", True)
    with_first = [row for row in rows if row.kind == "model" and row.first]
    if with_first:
        columns = ("workload", *(f">{name}" for name in SYSTEMS))
        lines = [(row.name, *(f"{row.first[n]:.1f}" if n in row.first else "" for n in SYSTEMS))
                 for row in with_first]  # fmt: skip
        yield Table("convert, compile and the first call, s", columns, tuple(lines)).without_empty()


def times(rows: Sequence[Row], title: str, busy: bool = False) -> Table:
    """A line for each workload, the one with the lowest ratio first."""
    columns = ("workload", *(f">{name}" for name in SYSTEMS), ">floor", "best other", ">other/ours")
    lines = []
    ratios = [(row, row.ratio(busy)) for row in rows]
    for row, ratio in sorted(ratios, key=lambda one: math.inf if one[1] is None else one[1]):
        floor = f"{row.floor * 1e3:.3g}" if row.floor and not busy else ""
        cells = (row.shown(name, busy) for name in SYSTEMS)
        shown = "" if ratio is None else f"{ratio:.2f}x"
        lines.append((row.name, *cells, floor, row.best(busy), shown))
    known = [ratio for _, ratio in ratios if ratio is not None]
    if known:
        mean = f"{geometric_mean(known):.2f}x"
        lines.append((f"geometric mean of {len(known)}", *[""] * len(SYSTEMS), "", "", mean))
    return Table(title, columns, tuple(lines)).without_empty()


def remarks(rows: Sequence[Row]) -> Iterator[str]:
    """What failed or is wrong, and was not timed."""
    for row in rows:
        for system, why in row.failures.items():
            yield f"{row.name}, {system}: {why}"
