"""The verdict about a candidate: accepted or rejected, the reasons, the cases, the times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from inductor_lab.bench.timings import Timings
from inductor_lab.compiler.base.display import Documented, counted
from inductor_lab.compiler.step_time import duration
from inductor_lab.debug.judge.correctness import Checked
from inductor_lab.debug.judge.speed import COLD, OWN, REFERENCE
from inductor_lab.saved.documents import comparison_types
from inductor_lab.saved.documents.kinds import document, finite


@dataclass(frozen=True, repr=False)
class JudgeVerdict(Documented):
    """What the judge found.

    name      of the candidate's function
    reasons   why it is rejected; empty if it is accepted
    checked   every case that was tried
    timings   seconds per call of `"reference"` and `"candidate"`, interleaved, and of
              `"reference with cold caches"` and `"candidate with cold caches"`
    bound     the least seconds for the bytes that must be moved; 0 if it is unknown
    notes     what the judge could not do here
    """

    name: str
    reasons: tuple[str, ...] = ()
    checked: tuple[Checked, ...] = ()
    timings: Timings = field(default_factory=lambda: Timings({}))
    bound: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Is it right in all cases, and did it not cheat?"""
        return not self.reasons

    @property
    def deterministic(self) -> bool:
        """Did all repeated calls give the same bits?"""
        return all(each.same for each in self.checked)

    @property
    def ulp(self) -> float | None:
        """The worst distance of right results from float64, in ULP, without special values."""
        right = (each for each in self.checked
                 if each.result == "right" and each.kind != "special values")  # fmt: skip
        known = (each.ulp for each in right if each.ulp is not None)
        return max((ulp for ulp in known if math.isfinite(ulp)), default=None)

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        timed = self.timings.rounds > 0
        speed = comparison_types.JudgedSpeed(
            reference_seconds=self.timings.median_ms(REFERENCE) / 1e3,
            candidate_seconds=self.timings.median_ms(OWN) / 1e3,
            candidate_interval=list(self.timings.median_interval(OWN)),
            speedup_interval=list(self.timings.interval(OWN, REFERENCE)),
            rounds=self.timings.rounds, bound_seconds=self.bound or None,
            verdict=self.timings.verdict(OWN, REFERENCE),
            cold_reference_seconds=self._cold(REFERENCE), cold_candidate_seconds=self._cold(OWN),
            cold_verdict=self.timings.verdict(OWN + COLD, REFERENCE + COLD) if self._cold(OWN)
            else None,
        ) if timed else None  # fmt: skip
        return document(comparison_types.Judgement(
            id="judgement", summary=str(self).partition("\n")[0], kind="judgement",
            name=self.name, accepted=self.accepted, reasons=list(self.reasons),
            ulp=finite(self.ulp), deterministic=self.deterministic,
            cases=[each.as_data() for each in self.checked],
            speed=speed, notes=list(self.notes),
        ))  # fmt: skip

    def _cold(self, name: str) -> float | None:
        """The median in seconds with cold caches; None if it was not measured."""
        known = name + COLD in self.timings.seconds
        return self.timings.median_ms(name + COLD) / 1e3 if known else None

    def __repr__(self) -> str:
        return str(self).partition("\n")[0]

    def __str__(self) -> str:
        how = "accepted" if self.accepted else "rejected"
        lines = [f"{self.name}: {how}", *(f"  {reason}" for reason in self.reasons)]
        right = [each for each in self.checked if each.result == "right"]
        if right:
            kinds = Counter(each.kind for each in right)
            listed = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
            worst = "" if self.ulp is None else f"; at most {self.ulp:.3g} ULP from float64"
            lines.append(f"  right in {counted(len(right), 'case')} ({listed}){worst}")
        lines += _refused(self.checked)
        if not self.deterministic:
            lines.append("  repeated calls differ in rounding")
        lines += self._times()
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def _times(self) -> list[str]:
        if not self.timings.rounds:
            return []
        lines = []
        for mode in ("", COLD):
            if OWN + mode in self.timings.seconds:
                own, other = (duration(self.timings.median_ms(name + mode) / 1e3)
                              for name in (OWN, REFERENCE))  # fmt: skip
                words = self.timings.verdict(OWN + mode, REFERENCE + mode)
                lines.append(f"  {own}, reference {other}: {words}")
        if self.bound:
            lines.append(f"  moving its bytes takes at least {duration(self.bound)}")
        return lines


def _refused(checked: Sequence[Checked]) -> list[str]:
    refused = [each for each in checked if each.result == "refused"]
    if not refused:
        return []
    kinds = Counter(each.kind for each in refused)
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return [f"  refused {counted(len(refused), 'case')} ({listed}): {refused[0].message}"]
