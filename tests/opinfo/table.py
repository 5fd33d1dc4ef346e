"""What all verdicts of a run add up to."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.opinfo.check import AGREE, CRASH, EAGER, HANG, RAISES, TORCH, WRONG, Verdict

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


def read(path: Path) -> list[Verdict]:
    """The verdicts in a results file, the latest of each sample."""
    found: dict[tuple[str, str, int], Verdict] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            verdict = Verdict(**json.loads(line))
            found[verdict.op, verdict.dtype, verdict.sample] = verdict
    return list(found.values())


def is_own_code(verdict: Verdict) -> bool:
    """No call into a library but those that are meant to be one."""
    return all(LIBRARY_OPS.match(call) for call in verdict.externs)


def table(verdicts: Sequence[Verdict], entries: Sequence[Known] = ()) -> str:
    """Counts by dtype, then each failure by op and cause."""
    rows = [HEAD]
    for dtype in dict.fromkeys(v.dtype for v in verdicts):
        rows.append(_row(dtype, [v for v in verdicts if v.dtype == dtype], entries))
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


def _row(dtype: str, verdicts: Sequence[Verdict], entries: Sequence[Known]) -> str:
    count = Counter(v.verdict for v in verdicts)
    skipped = count[EAGER] + count[TORCH]
    pairs = len(verdicts) - skipped
    agree = [v for v in verdicts if v.verdict == AGREE]
    excuses = sum(v.verdict in BAD and excused(v, entries) for v in verdicts)
    own = sum(map(is_own_code, agree))
    ops = len({v.op for v in verdicts if v.verdict not in (EAGER, TORCH)})
    share = f"{_floored(len(agree), pairs)}"
    return (
        f"{dtype:10} {ops:4d}  {pairs:6d}  {len(agree):6d} {share:>6}  {count[WRONG]:6d}"
        f"  {count[RAISES]:6d}  {count[CRASH]:5d} {count[HANG]:5d}  {excuses:5d}  {skipped:7d}"
        f"  {own / max(pairs, 1):.1%}"
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
