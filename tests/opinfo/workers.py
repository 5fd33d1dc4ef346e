"""Some samples of one op, in a process of their own.

Where the process dies or stops answering, the sample at hand is to blame, and the next process goes
on behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.opinfo.check import Settings, Verdict
from tests.processes import STOPPED, Clock, Lost, messages

MOST = 40
"""Samples of one process: few, so that no process has much to do when the others are done."""


@dataclass(frozen=True)
class Part:
    """The first `MOST` samples of an op that are not known yet."""

    op: str
    settings: Settings
    known: frozenset[int] = frozenset()

    def todo(self, count: int) -> list[int]:
        """The numbers of the samples, where the op has `count` in all."""
        return [n for n in range(count) if n not in self.known][:MOST]


@dataclass
class Outcome:
    """The result of a part; `count`: the number of samples of the op, None if unknown."""

    part: Part
    count: int | None = None
    verdicts: list[Verdict] = field(default_factory=list)


def _work(send: Callable[[Any], None], part: Part) -> None:
    """What a process does: send how many samples there are, then each verdict."""
    from tests.opinfo.check import all_samples, verdicts

    count = len(all_samples(part.op, part.settings))
    send(count)
    for verdict in verdicts(part.op, part.settings, part.todo(count)):
        send(verdict)


def check(context: Any, part: Part, limit: float, clock: Clock) -> tuple[Outcome, list[Part]]:
    """The verdicts of a part, and the part that comes next; `limit` is in seconds per sample."""
    outcome, op, settings = Outcome(part), part.op, part.settings
    for message in messages(context, _work, (part,), limit, clock):
        match message:
            case int():
                outcome.count = message
            case Verdict():
                outcome.verdicts.append(message)
            case Lost() if message.how != STOPPED:
                left = part.todo(outcome.count or 1)[len(outcome.verdicts) :]
                lost = Verdict(op, settings.dtype, left[0], message.how, message.why)
                outcome.verdicts.append(lost)
    known = part.known | {verdict.sample for verdict in outcome.verdicts}
    rest = Part(op, settings, known)
    return outcome, [rest] if rest.todo(outcome.count or 0) else []
