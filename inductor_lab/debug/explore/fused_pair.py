"""Are two values computed by one kernel?  The answer for a pair, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.schedule.schedule import Decision, Verdict
from inductor_lab.compiler.schedule.text import decision_text
from inductor_lab.compiler.step_time import duration


@dataclass(frozen=True)
class OurAnswer:
    """The same pair in our compiler.

    pair   its buffers; empty if ours computes one of the two inside other loop nests only
    seconds, seconds_apart   measured times of the call, with the pair fused and kept apart
    """

    pair: tuple[str, ...]
    fused: bool
    bytes_saved: int
    seconds: float | None = None
    seconds_apart: float | None = None

    def __str__(self) -> str:
        if not self.pair:
            return "inductor_lab: has no loop nests for the two"
        if len(set(self.pair)) == 1:
            return f"inductor_lab: computes both in one loop nest ({self.pair[0]})"
        names = " and ".join(self.pair)
        if not self.fused:
            return f"inductor_lab: does not fuse them ({names})"
        text = f"inductor_lab: fuses them ({names}), which saves {bytes_text(self.bytes_saved)}"
        if self.seconds is not None and self.seconds_apart is not None:
            text += f"; the call takes {duration(self.seconds)} with and "
            text += f"{duration(self.seconds_apart)} without this fusion"
        return text


@dataclass(frozen=True)
class FusedPair:
    """The answer for one pair of buffers of one part.

    kernels   the kernel that computes each; "" if none does
    meanings  for each verdict: what it means, and what would have to change
    earlier   earlier decisions about the pair
    ours      the same pair in our compiler, for a pair of stock
    """

    part: str
    decision: Decision
    kernels: tuple[str, str]
    meanings: tuple[tuple[str, str], ...]
    earlier: tuple[Decision, ...] = ()
    ours: OurAnswer | None = None

    @property
    def fused(self) -> bool:
        return self.decision.fused

    def __str__(self) -> str:
        return self.text(self.decision.verdicts, set())

    def text(self, verdicts: Sequence[Verdict], explained: set[tuple[str, str]]) -> str:
        """The text with these verdicts, and without the meanings in `explained`, to which it adds
        those that it prints."""
        head, saves, *rules = decision_text(self.decision).split("\n")
        lines = [f"{self.part}: {head}", saves]
        here, there = self.kernels
        if here == there and here:
            apart = "" if self.fused else ", in separate loops"
            lines.append(f"  both in {here}{apart}")
        else:
            lines.append(f"  in {here or 'no kernel'} and {there or 'no kernel'}")
        for verdict, rule, (meaning, cure) in zip(
            self.decision.verdicts, rules, self.meanings, strict=True
        ):
            if verdict not in verdicts:
                continue
            lines.append(rule)
            if (meaning, cure) in explained:
                continue
            explained.add((meaning, cure))
            lines += [f"            means: {meaning}"] if meaning else []
            lines += [f"            to fuse: {cure}"] if cure else []
        lines += [f"  {self.ours}"] if self.ours is not None else []
        for number, decision in enumerate(self.earlier, 1):
            lines.append(f"  earlier attempt {number}: {decision_text(decision)}")
        return "\n".join(lines)
