"""What all verdicts of a run add up to."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.opinfo.check import AGREE, EAGER, RAISES, TORCH, WRONG, Verdict
from tests.processes import CRASH, HANG

KNOWN = Path(__file__).with_name("known.toml")
BAD = (WRONG, RAISES, CRASH, HANG)

LIBRARY_OPS = re.compile(
    r"^aten\.(_?linalg|_?fft|sort|stable_sort|topk|kthvalue|median|nanmedian|mode|msort|argsort"
    r"|_?cholesky|lu_|triangular_solve|ormqr|geqrf|orgqr|_scaled_dot|_efficient_attention"
    r"|_flash_attention|convolution|_convolution|mm|bmm|addmm|addbmm|baddbmm|dot|vdot|mv|addmv"
    r"|_addmm|_int_mm|_weight_int|_stft|stft|istft|_unique|unique)"
)
"""Matmul, convolution, attention, sort (and selection by it), FFT, linear algebra."""


HEAD = "dtype       ops   pairs   agree      %   wrong  raises  crash  hang  known  skipped    own"


@dataclass(frozen=True)
class Known:
    """Failures that are not ours: which, and why.  `dtype` and `verdict` may be "" for any."""

    op: str
    reason: str
    dtype: str = ""
    verdict: str = ""
    detail: str = ""

    def covers(self, verdict: Verdict) -> bool:
        return (
            self.op == verdict.op
            and self.dtype in ("", verdict.dtype)
            and self.verdict in ("", verdict.verdict)
            and self.detail in verdict.detail
        )


def known() -> tuple[Known, ...]:
    """The entries of `known.toml`."""
    entries = tomllib.loads(KNOWN.read_text(encoding="utf-8")).get("known", [])
    return tuple(Known(**entry) for entry in entries)


def excused(verdict: Verdict, entries: Sequence[Known]) -> bool:
    return any(entry.covers(verdict) for entry in entries)


@dataclass(frozen=True)
class Results:
    """What a results file holds: the verdicts, and how many samples each (op, dtype) has in all."""

    verdicts: tuple[Verdict, ...]
    counts: Mapping[tuple[str, str], int]

    def known(self, op: str, dtype: str) -> frozenset[int]:
        """The samples of an op that have a verdict."""
        return self._known.get((op, dtype), frozenset())

    @cached_property
    def _known(self) -> Mapping[tuple[str, str], frozenset[int]]:
        found: dict[tuple[str, str], set[int]] = {}
        for verdict in self.verdicts:
            found.setdefault((verdict.op, verdict.dtype), set()).add(verdict.sample)
        return {key: frozenset(numbers) for key, numbers in found.items()}

    def unfinished(self, op: str, dtype: str) -> bool:
        return len(self.known(op, dtype)) < self.counts.get((op, dtype), math.inf)


def read(path: Path) -> Results:
    """A results file: one JSON object a line, the latest of each sample counts."""
    found: dict[tuple[str, str, int], Verdict] = {}
    counts: dict[tuple[str, str], int] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if "samples" in entry:
                counts[entry["op"], entry["dtype"]] = entry["samples"]
            else:
                verdict = Verdict(**entry)
                found[verdict.op, verdict.dtype, verdict.sample] = verdict
    return Results(tuple(found.values()), counts)


def is_own_code(verdict: Verdict) -> bool:
    """No call into a library but those that are meant to be one, and drawing one seed."""
    return all(
        LIBRARY_OPS.match(call) or call.endswith("(random seed)") for call in verdict.externs
    )


def table(verdicts: Sequence[Verdict], entries: Sequence[Known] = ()) -> str:
    """Counts by dtype, then each failure by op and cause."""
    rows = [HEAD, *(found.row for found in sums(verdicts, entries))]
    notes = Counter(v.note for v in verdicts if v.verdict == AGREE and v.note)
    rows.append("")
    rows.append(
        "pairs: samples that eager runs; skipped: eager raises, or torch.compile without "
        "any compiler does; own: no library call but matmul, convolution, attention, "
        "sort, FFT, linear algebra"
    )
    rows.append("of those that agree: " + ", ".join(f"{n} {_NOTES[k]}" for k, n in notes.items()))
    return "\n".join([*rows, "", *failures(verdicts, entries)])


_NOTES = {
    "float64": "differ from eager, and are as near to the result in float64",
    "random": "are random (dtypes and sizes compared)",
    "strides": "have other strides than eager",
    "memory": "share memory where eager's do not, or the other way round",
}


@dataclass(frozen=True)
class Sums:
    """The counts of one dtype.  `pairs`: samples that eager runs; the others are `skipped`."""

    dtype: str
    ops: int
    pairs: int
    agree: int
    wrong: int
    raises: int
    crash: int
    hang: int
    known: int
    skipped: int
    own: int

    @property
    def row(self) -> str:
        return (
            f"{self.dtype:10} {self.ops:4d}  {self.pairs:6d}  {self.agree:6d}"
            f" {_floored(self.agree, self.pairs):>6}  {self.wrong:6d}  {self.raises:6d}"
            f"  {self.crash:5d} {self.hang:5d}  {self.known:5d}  {self.skipped:7d}"
            f"  {self.own / max(self.pairs, 1):.1%}"
        )


def sums(verdicts: Sequence[Verdict], entries: Sequence[Known]) -> list[Sums]:
    """One for each dtype."""
    return [
        _sums(dtype, [v for v in verdicts if v.dtype == dtype], entries)
        for dtype in dict.fromkeys(v.dtype for v in verdicts)
    ]


def _sums(dtype: str, verdicts: Sequence[Verdict], entries: Sequence[Known]) -> Sums:
    count = Counter(v.verdict for v in verdicts)
    skipped = count[EAGER] + count[TORCH]
    return Sums(
        dtype=dtype,
        ops=len({v.op for v in verdicts if v.verdict not in (EAGER, TORCH)}),
        pairs=len(verdicts) - skipped,
        agree=count[AGREE],
        wrong=count[WRONG],
        raises=count[RAISES],
        crash=count[CRASH],
        hang=count[HANG],
        known=sum(v.verdict in BAD and excused(v, entries) for v in verdicts),
        skipped=skipped,
        own=sum(v.verdict == AGREE and is_own_code(v) for v in verdicts),
    )


def _floored(part: int, whole: int) -> str:
    """A percentage that says 100 only where nothing is missing."""
    return f"{int(10_000 * part / whole) / 100:.2f}" if whole else "-"


def failures(verdicts: Iterable[Verdict], entries: Sequence[Known] = ()) -> list[str]:
    """One line for each op, dtype and cause, with how often and an example."""
    groups: dict[tuple[str, str, str, str], list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.verdict in BAD and not excused(verdict, entries):
            cause = re.sub(r"[-+.\d]*\d[e\d+-]*", "#", verdict.detail)[:60]
            key = verdict.verdict, verdict.op, verdict.dtype, cause
            groups.setdefault(key, []).append(verdict)
    return [
        f"{kind:6} {op} {dtype} x{len(group)} (sample {group[0].sample}): {group[0].detail[:230]}"
        for (kind, op, dtype, _), group in sorted(groups.items())
    ]
