"""Check a student's function in a separate process, with a time limit.

    course.check("1.1", stack_machine)
    ✗ 1.1 A stack machine: 0 of 2 points
      f(a, b) = a - b with a=1, b=0: 1 was expected, the machine gave -1

The function runs in a copy of this process, so an endless loop, a crash or a changed global does
not affect this process.
"""

from __future__ import annotations

import faulthandler
import html
import re
import sys
import threading
import warnings
from dataclasses import dataclass, replace
from typing import Any

from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.course.exercise import EXERCISES, Exercise, in_order
from inductor_lab.course.language import language, say
from inductor_lab.course.lines import file_of, line_now, line_text
from inductor_lab.course.pictures import Picture
from inductor_lab.course.scores import points_text, record
from inductor_lab.debug.isolate import Ended, Tell, run_isolated

_IN_TRACE = re.compile(r'File "([^"]+)", line (\d+) in')


@dataclass(frozen=True)
class Verdict:
    """The result of one check: `print` writes it, a notebook draws it.

    points   earned, of `possible`
    message  a sentence that explains the missing points; "" if there are none
    case     the smallest failing case
    printed  the output that the function itself printed
    picture  a picture of the failure, if one helps
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


def check(name: str, solution: Any, *, seed: int = 0) -> Verdict:
    """Check a solution on random cases, and record its points on the board.

    Raises BadArguments if the exercise does not exist.
    """
    if name not in EXERCISES:
        known = ", ".join(in_order())
        raise BadArguments(say("there is no exercise {n}", n=name), todo=known)
    asked = EXERCISES[name]
    ended = run_isolated(lambda tell: _judged(asked, solution, seed, tell), asked.limit)
    title = asked.title[language() == "zh"]
    message = _message(ended, asked, solution)
    found = ended.value if ended.how == "returned" else None
    case, picture = found[1:] if found else ("", None)
    points = 0 if message else asked.points
    printed = ended.printed if ended.how == "returned" else ""
    record(name, points, asked.points)
    return Verdict(name, title, points, asked.points, message, case, printed, picture)


def _judged(asked: Exercise, solution: Any, seed: int, tell: Tell) -> Any:
    """In the copy: the reason, the case and its picture, or None."""
    # a crash writes its line
    faulthandler.enable(sys.stdout, all_threads=False)
    # show a warning of the student's code without paths
    warnings.filterwarnings("ignore", module=r"inductor_lab\.course\.")
    warnings.formatwarning = lambda told, kind, *_, **__: f"{kind.__name__}: {told}\n"
    watched, over = threading.get_ident(), threading.Event()

    def watch() -> None:
        while not over.wait(asked.limit / 8):
            if line := line_now(watched, solution):
                tell(line)

    threading.Thread(target=watch, daemon=True).start()
    try:
        wrong = asked.first_wrong(solution, seed)
    except NotImplementedError:
        return "not begun", "", None
    finally:
        over.set()
    if wrong is None:
        return None
    return wrong.reason, asked.told(wrong.case), asked.drawn(solution, wrong.case)


def _message(ended: Ended, asked: Exercise, solution: Any) -> str:
    """A sentence that says what is wrong; "" if nothing is."""
    if ended.how == "hung":
        return say(
            "still running after {s:.0f} s: does it end?{w}",
            s=asked.limit, w=ended.messages[-1] if ended.messages else "",
        )
    if ended.how == "crashed":
        found = [m for m in _IN_TRACE.findall(ended.printed) if m[0] == file_of(solution)]
        where = line_text(*found[0]) if found else ""
        return say("it ended its process ({k}){w}", k=ended.kind, w=where)
    if ended.how == "raised":
        return say("the check ended with {k}: {v}", k=ended.kind, v=ended.value)
    text: str = ended.value[0] if ended.value else ""
    if text == "not begun":
        return say("not begun yet: replace the last line of the stub")
    return text
