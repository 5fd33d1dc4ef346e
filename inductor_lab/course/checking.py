"""Check a student's function, with limits, and say what is wrong in a sentence.

    course.check("1.1", stack_machine)
    ✗ 1.1 A stack machine: 0 of 2 points
      f(a, b) = a - b with a=1, b=0: 1 was expected, the machine gave -1

The function runs in another process (`debug/untrusted`), which returns its outputs and nothing
else.  They are judged in a copy of this process, so an endless loop, a crash or a changed global
stays in those two.
"""

from __future__ import annotations

import html
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from inductor_lab.compiler.base.errors import BadArguments, NeedsTorch
from inductor_lab.compiler.torch_door.torch_types import INSTALLED
from inductor_lab.course.exercise import PRACTICE, Exercise, exercises, in_order
from inductor_lab.course.given.classes import CLASSES
from inductor_lab.course.language import language, say
from inductor_lab.course.lines import line_in
from inductor_lab.course.pictures import Picture
from inductor_lab.course.scores import points_text, record
from inductor_lab.debug.isolate import can_fork, run_isolated
from inductor_lab.debug.untrusted.confine import Limits
from inductor_lab.debug.untrusted.remote import Process, Raised, Stopped, copy_of_this_process

SLACK = 60.0
"""Seconds that a judge may take beyond the limit of the solution."""


@dataclass(frozen=True)
class Verdict:
    """The result of one check: `print` writes it, a notebook draws it.

    points   earned, of `possible`
    message  why not all of them, in a sentence; "" if there is nothing to say
    case     a case that went wrong, made small where the exercise can do that
    printed  what the function itself printed
    picture  what went wrong, drawn, where a picture helps
    """

    name: str
    title: str
    points: int
    possible: int
    message: str = ""
    case: str = ""
    printed: str = ""
    picture: Picture | None = None

    @property
    def right(self) -> bool:
        return self.points == self.possible

    def __str__(self) -> str:
        score = points_text(self.points, self.possible)
        mark = "✓" if self.right else "✗"
        lines = [say("{mark} {n} {title}: {score}", mark=mark, n=self.name, title=self.title,
                     score=score)]  # fmt: skip
        lines += [f"  {line}" for line in (*self.case.splitlines(), *self.message.splitlines())]
        if self.picture is not None:
            lines += [f"  {line}" for line in str(self.picture).splitlines()]
        if self.printed.strip():
            lines += [
                say("  printed:"),
                *(f"    {x}" for x in self.printed.splitlines()),
            ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        colour = "#1a7f37" if self.right else "#b35900"
        head, *rest = map(html.escape, str(replace(self, picture=None)).splitlines())
        body = f'<pre style="margin:.3em 0 0">{chr(10).join(rest)}</pre>' if rest else ""
        return (
            f'<div role="status" style="border-left:4px solid {colour};padding:.3em .8em">'
            f"<b>{head}</b>{body}{self.picture.html if self.picture else ''}</div>"
        )


def check(name: str, solution: Any) -> Verdict:
    """Judge a solution on random cases, and put its points on the board.

    Raises BadArguments if the exercise does not exist.
    """
    asked = exercise_named(name)
    if can_fork():
        limits = Limits(asked.limit)
        verdict = judged(asked, lambda: copy_of_this_process(solution, limits, CLASSES), PRACTICE)
    else:
        verdict = _verdict(asked, *_judged_here(asked, solution))
    record(name, verdict.points, asked.points)
    return verdict


def exercise_named(name: str) -> Exercise:
    """Raises BadArguments for an exercise that does not exist."""
    if name not in exercises():
        if not INSTALLED:
            raise NeedsTorch
        what = say("there is no exercise {n}", n=name)
        raise BadArguments(what, todo=", ".join(in_order()))
    return exercises()[name]


def judged(asked: Exercise, start: Callable[[], Process], seed: int | str) -> Verdict:
    """Judge what a process offers.  `start` begins it, and this process never runs its code.

    The judge works in a copy of this process, because it compiles, and may change settings.
    """
    ended = run_isolated(lambda _: _judged(asked, start, seed), asked.limit + SLACK)
    if ended.how == "returned":
        return _verdict(asked, *ended.value)
    how = {"hung": say("the check takes too long"), "raised": f"{ended.kind}: {ended.value}"}
    reason = how.get(ended.how, ended.kind)
    return _verdict(asked, say("the check cannot use your answer: {e}", e=reason))


Judged = tuple[str, str, Picture | None, str]
"""What is wrong, "" if nothing is; the case, its picture, and what was printed."""


def _judged(asked: Exercise, start: Callable[[], Process], seed: int | str) -> Judged:
    _quiet()
    with start() as process:
        try:
            found = _first_wrong(asked, process.begin(), seed)
            return *found, process.said
        except Stopped as stopped:
            return _stopped(stopped, asked, process.file), "", None, ""
        except Raised as raised:  # before there is any solution
            return say("the check ended with {k}: {v}", k=raised.kind, v=raised.text), "", None, ""


def _judged_here(asked: Exercise, solution: Any) -> Judged:
    """Where no process can be forked."""
    return *_first_wrong(asked, solution, PRACTICE), ""


def _first_wrong(asked: Exercise, solution: Any, seed: int | str) -> tuple[Any, Any, Any]:
    try:
        wrong = asked.first_wrong(solution, seed)
    except NotImplementedError:
        return say("not begun yet: replace the last line of the stub"), "", None
    if wrong is None:
        return "", asked.scored(), None
    return wrong.reason, asked.described(wrong.case), asked.drawn(solution, wrong.case)


def _quiet() -> None:
    """Warnings of a judge that handles what it cannot use are not the student's."""
    warnings.filterwarnings("ignore", module=r"inductor_lab\.course\.")
    warnings.formatwarning = lambda message, kind, *_, **__: f"{kind.__name__}: {message}\n"


def _verdict(asked: Exercise, message: str, case: str = "", picture: Picture | None = None,
             printed: str = "") -> Verdict:  # fmt: skip
    points = 0 if message else asked.points
    title = asked.title[language() == "zh"]
    return Verdict(asked.name, title, points, asked.points, message, case, printed, picture)


def _stopped(stopped: Stopped, asked: Exercise, file: str) -> str:
    """Why a process no longer answers, with the student's line."""
    line = line_in(stopped.frames[::-1], file)
    if stopped.how == "hung":
        return say("still running after {s:.0f} s: does the program end?{w}", s=asked.limit, w=line)
    if stopped.how == "memory":
        return say("it takes more memory than a check allows{w}", w=line)
    if stopped.how == "malformed":
        return say("what it returned cannot be read")
    return say("it ended its process ({k}){w}", k=stopped.kind, w=line)
