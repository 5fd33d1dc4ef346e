"""Grade a student's notebook: its code runs in confined processes, and is judged outside of them.

    with Grader(secret, hidden=[course_folder]) as grader:
        grader.verdict("1.1", cells, "stack_machine")

The process of the student's code has no judge, no reference, no expected value and no seed, and
cannot read them from files (`debug/untrusted`).  It is sent inputs, and returns outputs.  The cases
are drawn from the secret, so they are others than those of the student's own checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import inductor_lab
from inductor_lab.course.checking import Verdict, exercise_named, judged
from inductor_lab.debug.untrusted.confine import Limits
from inductor_lab.debug.untrusted.fresh import Fresh
from inductor_lab.debug.untrusted.remote import Process, Raised, Stopped

PACKAGE = Path(inductor_lab.__file__).parent
JUDGES = (PACKAGE / "course" / "labs", PACKAGE / "notebooks")
"""Judges with their references, and notebooks."""
IN_A_CHECKOUT = ("notebooks", "tests", ".git")
CELLS = 60.0
"""Seconds for the cells of a notebook, before the limit of an exercise begins."""
CLASSES = "inductor_lab.course.given.classes:CLASSES"
PRELOADED = ("inductor_lab.course.student", "inductor_lab.course.gpu",
             "inductor_lab.course.given.whole", "inductor_lab.course.given.fusion")  # fmt: skip


class Grader:
    """Grades notebooks with the cases of one secret.

    hidden  files and folders that the students' code cannot read, besides the judges: the course,
            with the secret and what others submitted
    """

    def __init__(self, secret: str, hidden: Iterable[Path] = ()) -> None:
        self.secret = secret
        checkout = PACKAGE.parent
        own = [checkout / name for name in IN_A_CHECKOUT] if (checkout / "tests").is_dir() else []
        self.hidden = [path for path in (*JUDGES, *own, *hidden) if path.exists()]
        self.fresh = Fresh(PRELOADED)

    def verdict(self, name: str, cells: Sequence[str], solution: str) -> Verdict:
        """Judge what cells call `solution`.  Raises BadArguments for an unknown exercise."""
        asked = exercise_named(name)

        def start() -> Process:
            return self.process(cells, solution, asked.limit)

        return judged(asked, start, f"{self.secret} {name}")

    def process(self, cells: Sequence[str], solution: str, limit: float) -> Process:
        """A process whose root is what cells call `solution`; it has `limit` seconds."""
        argument = {"cells": list(cells), "solution": solution}
        return self._start("solution_of", argument, Limits(limit, start=CELLS))

    def transcript(self, cells: Sequence[str]) -> list[str]:
        """What each cell prints; "" for cells that do not come to an end."""
        limits = Limits(2 * CELLS)
        with self._start("transcript", {"cells": list(cells)}, limits) as process:
            try:
                found = process.begin()
            except (Raised, Stopped):
                found = []
        texts = [text if isinstance(text, str) else "" for text in found] \
            if isinstance(found, list) else []  # fmt: skip
        return [*texts, *[""] * len(cells)][: len(cells)]

    def _start(self, begin: str, argument: object, limits: Limits) -> Process:
        where = f"inductor_lab.course.student:{begin}"
        return self.fresh.start(where, argument, limits, CLASSES, self.hidden)

    def close(self) -> None:
        """End the server of the processes."""
        self.fresh.close()

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
