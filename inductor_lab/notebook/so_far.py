"""The results of the compiler up to an error."""

from __future__ import annotations

from typing import Any

from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.compiler.base.observer import Observer

OUTER = ("total", "graph")
"""Phases that contain other phases and have no result."""


class SoFar(Observer, Shown):
    """Keeps the result of every finished phase, and the name of the failed one.

    finished  (phase, result), in order
    failed    the innermost phase that raised; "" if no phase of the compiler did
    error     the exception, if the caller passes it to `give_up`
    """

    def __init__(self) -> None:
        self.finished: list[tuple[str, Any]] = []
        self.failed = ""
        self.error: BaseException | None = None
        self._open: list[str] = []

    def entered(self, phase: str) -> None:
        self._open.append(phase)

    def left(self, phase: str, result: Any) -> None:
        self._open.pop()
        if phase in OUTER:
            return
        if result is None:
            self.failed = self.failed or phase
        else:
            self.finished.append((phase, result))

    def give_up(self, error: BaseException) -> SoFar:
        """Store the exception; returns itself."""
        self.error = error
        return self

    def __repr__(self) -> str:
        finished = counted(len(self.finished), "phase")
        return f"SoFar({finished} finished, {self.failed or 'none'} failed)"

    def __str__(self) -> str:
        lines = [f"ok      {phase}" for phase, _ in self.finished]
        if self.failed:
            lines.append(f"FAILED  {self.failed}: {self.error}")
        return "\n".join(lines)
