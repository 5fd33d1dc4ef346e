"""Check a repository: `inductor-lab course check capstone`.

The student's files run in a confined process, which gets programs and returns data
(`process.py`).  The judge (`judges.py`) works in a copy of this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from inductor_lab.course.capstone.judges import judge_of
from inductor_lab.course.capstone.repository import (
    MINI,
    Step,
    copied,
    default_steps,
    handed_in,
    not_begun,
    title,
)
from inductor_lab.course.checking import Verdict, judged
from inductor_lab.course.exercise import PRACTICE
from inductor_lab.course.grading import JUDGES as HIDDEN
from inductor_lab.course.language import say
from inductor_lab.course.scores import record
from inductor_lab.debug.untrusted.confine import Limits
from inductor_lab.debug.untrusted.fresh import Fresh
from inductor_lab.debug.untrusted.remote import Process

START = 60.0
"""Seconds to import the student's files."""
OURS = "inductor_lab.course.capstone.process"
CLASSES = "inductor_lab.course.given.classes:CLASSES"
PRELOADED = (OURS, "inductor_lab.mini")
INTERPRETER = "triton.runtime.interpreter"
"""Preloaded for the Triton step, since importing it takes longer than a check."""
HERE = Path(__file__).parent
OURS_ONLY = ("generated", "grouping", "judge", "judges", "triton_printer")
"""Files that the student's process cannot read."""


def check(
    folder: Path, wanted: Sequence[Step] = (), secret: str = "", hidden: Sequence[Path] = (),
    refuse_copies: bool = False,
) -> Iterator[Verdict]:  # fmt: skip
    """The verdict of each step.  With a secret, cases are drawn from it and files are hidden.

    refuse_copies  a step whose functions are all those of inductor_lab.mini earns no points
    """
    texts = handed_in(folder)
    chosen = wanted or default_steps(texts)
    needs_triton = find_spec("triton") and any(step.name == "triton" for step in chosen)
    preloaded = (*PRELOADED, INTERPRETER) if needs_triton else PRELOADED
    own = [*HIDDEN, *hidden, MINI, *(HERE / f"{name}.py" for name in OURS_ONLY)]
    with ExitStack() as stack:
        fresh = None
        for step in chosen:
            verdict = _refused(step, texts, refuse_copies)
            if verdict is None:
                fresh = fresh or stack.enter_context(Fresh(preloaded, required=bool(secret)))
                verdict = _judged(step, texts, fresh, own, secret)
            if not secret:
                record(f"capstone {step.number}", verdict.points, step.points)
            yield verdict


def _refused(step: Step, texts: dict[str, str], refuse_copies: bool) -> Verdict | None:
    """The verdict for what does not run: a syntax error, a stub, or a copy."""
    try:
        empty = not_begun(step, texts)
        if empty:
            names = ", ".join(empty[:4]) + ", ..." * (len(empty) > 4)
            return _zero(step, say("step {n} is not written yet: {f}", n=step.number, f=names))
        if refuse_copies and step.bodies and len(copied(step, texts)) == len(step.bodies):
            return _zero(step, say("step {n} is a copy of inductor_lab.mini", n=step.number))
    except SyntaxError as error:
        what = say("{f}.py, line {n}: {e}", f=step.file, n=error.lineno, e=error.msg)
        return _zero(step, what)
    return None


def _zero(step: Step, message: str) -> Verdict:
    return Verdict(f"{step.number}", title(step), 0, step.points, message)


def _judged(step: Step, texts: dict[str, str], fresh: Fresh, hidden: list[Path],
            secret: str) -> Verdict:  # fmt: skip
    own = [(step.file, name) for name in step.bodies] if step.file else None
    limits = Limits(step.limit, start=START)

    def student() -> Process:
        argument = {"files": texts, "bodies": own}
        return fresh.start(f"{OURS}:begin", argument, limits, CLASSES, hidden)

    def runner() -> Process:
        return fresh.start(f"{OURS}:runner", None, limits, CLASSES, hidden)

    seed = f"{secret} capstone {step.number}" if secret else PRACTICE
    verdict = judged(judge_of(step, runner), student, seed)
    return replace(verdict, title=title(step))


