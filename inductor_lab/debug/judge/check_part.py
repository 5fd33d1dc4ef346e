"""Judge a part of a compilation, with an edited kernel, in a fork of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from inductor_lab.debug.judge.applied import Applied
from inductor_lab.debug.judge.cases import Cases
from inductor_lab.debug.judge.judge import cases_of, judged
from inductor_lab.debug.judge.serve_candidate import CLASSES
from inductor_lab.debug.judge.verdict import JudgeVerdict
from inductor_lab.debug.untrusted.confine import Limits
from inductor_lab.debug.untrusted.remote import Process, copy_of_this_process


class EditedPart(Protocol):
    """What is judged: the part with the edited kernel, its graph, its inputs in one call."""

    @property
    def kernel(self) -> str: ...
    @property
    def graph(self) -> Callable[..., Any]: ...
    @property
    def edited(self) -> Callable[..., Any]: ...
    @property
    def inputs(self) -> Sequence[Any]: ...


@dataclass(frozen=True)
class Judging:
    """The process of a part, its reference and its cases."""

    reference: Applied
    process: Process
    cases: Cases


@contextmanager
def judge_part(part: EditedPart, limit: float) -> Iterator[tuple[JudgeVerdict, Judging]]:
    """The verdict about the results of a part; its process ends with the context.

    Raises BadArguments if the part has random numbers.
    """
    reference = Applied(part.graph)
    cases = cases_of(reference, [(tuple(part.inputs), {})], fixed=True)
    with copy_of_this_process(part.edited, Limits(limit, limit), CLASSES) as process:
        verdict = judged(reference, process, cases, part.kernel, False, limit)
        yield verdict, Judging(reference, process, cases)
