"""What the commands of `inductor-lab` share: their answers, their exit codes, their progress."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from inductor_lab.bench.progress import StatusLine
from inductor_lab.compiler.base.display import Documented
from inductor_lab.compiler.base.observer import Observer
from inductor_lab.debug.user_file import load_function

SUCCESS, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
"""The exit codes (docs/json.md): 1 means that a check found something wrong."""


@dataclass(frozen=True)
class Answer:
    """What a command has found: its text, the value that `--json` prints, the exit code."""

    text: str
    value: Any = None
    code: int = SUCCESS


@dataclass(frozen=True, repr=False)
class Printed(Documented):
    """The text of a command that has no other result."""

    text: str

    def __repr__(self) -> str:
        return self.text.partition("\n")[0]

    def __str__(self) -> str:
        return self.text


class PhaseProgress(Observer):
    """Shows the running phase with its elapsed time; silent if the output is not a terminal.

    `tell` is called with the same texts, if it is given.
    """

    def __init__(self, title: str, tell: Callable[[str], None] | None = None) -> None:
        self._line = StatusLine(sys.stdout)
        self._title = title
        self._told = tell
        self._tell(title)

    def entered(self, phase: str) -> None:
        self._tell(f"{self._title}: {phase}")

    def left(self, phase: str, result: Any) -> None:
        self._tell(f"{self._title}: {phase} done")

    def close(self) -> None:
        self._line.close()

    def _tell(self, text: str) -> None:
        self._line.tell(text)
        if self._told is not None:
            self._told(text)


def inspected(
    given: argparse.Namespace, where: str, target: str | None = None,
    compiler: str = "inductor_lab",
) -> Any:  # fmt: skip
    """Inspect `FILE:FUNCTION`, or read a file that `explain --save` wrote."""
    from inductor_lab import load

    if where.endswith(".json"):
        return load(where)
    from inductor_lab import inspect

    fn, args = load_function(where, given.args)
    with closing(PhaseProgress(where, given.tell)) as observer:
        return inspect(fn, *args, target=target, observer=observer, compiler=compiler)


def seconds(text: str) -> float:
    """A time limit; raises ArgumentTypeError if it is not a positive number."""
    with suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
