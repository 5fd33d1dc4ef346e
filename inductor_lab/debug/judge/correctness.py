"""Call the candidate on every case, and compare what it does with what the reference does.

Each case is called twice, with guarded memory on either side and with two patterns in new memory.
A candidate may refuse a derived case by an exception; a given case it must compute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from inductor_lab.debug.compare.compare_results import first_wrong, worst_ulp
from inductor_lab.debug.compare.values import Outcome, call, copies
from inductor_lab.debug.judge.applied import Applied
from inductor_lab.debug.judge.cases import Case
from inductor_lab.debug.judge.expected import Expected, expected, with_leaves
from inductor_lab.debug.judge.guarded import Edge
from inductor_lab.debug.judge.remote_call import RemoteCall, names_of, same_bits
from inductor_lab.debug.untrusted.remote import Raised, Stopped
from inductor_lab.saved.documents import comparison_types
from inductor_lab.saved.documents.kinds import finite

WRONG_CASES = 3
"""After so many the candidate is rejected without trying the rest."""
RUNS: tuple[tuple[Edge, int], ...] = (("end", 0x7F), ("start", 0xD5))
"""Where guarded memory ends, and the byte of new memory."""

Result = Literal["right", "wrong", "refused"]


@dataclass(frozen=True)
class Checked:
    """One case: what the candidate did.

    message  why it is wrong, or how it refused
    ulp      the worst distance from float64 in ULP; None if nothing was compared
    same     whether both calls gave the same bits
    """

    kind: str
    case: str
    result: Result
    message: str = ""
    ulp: float | None = None
    same: bool = True

    def as_data(self) -> comparison_types.JudgedCase:
        """What documents contain of it."""
        return comparison_types.JudgedCase(
            kind=self.kind, case=self.case, result=self.result, message=self.message,
            ulp=finite(self.ulp), same_bits=self.same,
        )  # fmt: skip


def check_all(
    reference: Applied, remote: RemoteCall, cases: Iterable[Case]
) -> Iterator[Checked]:
    """What the candidate does in each case, until it is clearly wrong."""
    wrong = 0
    for case in cases:
        found = _checked(reference, remote, case)
        yield found
        wrong += found.result == "wrong"
        if wrong >= WRONG_CASES:
            return


def _checked(reference: Applied, remote: RemoteCall, case: Case) -> Checked:
    kept = expected(reference, case.args)
    remote.results = kept.results
    outcomes: list[Outcome] = []
    ulp: float | None = None
    for edge, pattern in RUNS:
        try:
            got = _outcome(remote, reference, case, edge, pattern)
        except Raised as raised:
            message = str(raised).partition("\n")[0][:200]
            result: Result = "wrong" if case.kind == "given" or outcomes else "refused"
            return Checked(case.kind, str(case), result, f"it raised {message}")
        wrong, ulp = _wrong(kept, got, remote)
        if wrong:
            return Checked(case.kind, str(case), "wrong", wrong, ulp)
        outcomes.append(got)
    same = all(_equal(outcomes[1].get(name), value) for name, value in outcomes[0].items())
    return Checked(case.kind, str(case), "right", "", ulp, same)


def _outcome(
    remote: RemoteCall, reference: Applied, case: Case, edge: Edge, pattern: int
) -> dict[str, Any]:
    """What the candidate returns and writes."""
    candidate = Applied(lambda *args, **kwargs: remote((args, kwargs), edge, pattern))
    function, tensors, _ = with_leaves(candidate, case.args)
    return call(function, copies(tensors), names_of(reference.function, case.args), False)


def _wrong(kept: Expected, got: Outcome, remote: RemoteCall) -> tuple[str, float | None]:
    """What is wrong with an outcome, "" if nothing is; and its distance from float64."""
    for name, value in kept.plain.items():
        if isinstance(value, torch.Tensor) and not isinstance(got.get(name, value), torch.Tensor):
            return f"{name} is not a plain tensor", None
    judged = kept.judge(got)
    ulp = worst_ulp(judged)
    found = first_wrong(judged)
    if found is not None:
        return f"{kept.labels.get(found[0], found[0])} is {found[1]}", ulp
    more = [name for name in got if name not in kept.plain and name.startswith("result")]
    if more:
        return f"the reference does not return {more[0]}", ulp
    if kept.alone != remote.alone:
        what = "one tensor" if kept.alone else "a container of tensors"
        return f"the reference returns {what}", ulp
    for number, (its, placed) in enumerate(zip(kept.placed, remote.placed, strict=False)):
        if placed == (True, its[1]) and not its[0]:
            return f"result {number} is expanded: several elements share memory", ulp
        if its[1] and placed not in ((True, its[1]), (False, its[1])):
            return f"result {number} is not on the device {its[1]}", ulp
    for number, (own, other) in enumerate(zip(kept.shares, remote.shares, strict=False)):
        if own < 0 <= other:
            return f"result {number} shares memory with an argument", ulp
    if remote.changed:
        return "the result of an earlier call changes when it is called again", ulp
    return "", ulp


def _equal(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        return same_bits(first, second)
    return type(first) is type(second)


def stopped_text(stopped: Stopped, limit: float) -> str:
    """Why the process of a candidate gave no more answers."""
    texts: Mapping[str, str] = {
        "hung": f"it did not end within {limit:.0f} s",
        "memory": "it took more memory than the judge allows",
        "malformed": "what its process sent is not a result",
    }
    if stopped.how in texts:
        return texts[stopped.how]
    outside = stopped.kind in ("SIGSEGV", "SIGBUS")
    reason = ": it reads or writes outside of its tensors, or calls what is no function"
    return f"its process ended ({stopped.kind}){reason if outside else ''}"
