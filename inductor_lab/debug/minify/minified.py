"""The result of the minifier, and its steps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch.fx import GraphModule

from inductor_lab.compiler.base.display import Shown
from inductor_lab.debug.minify.candidate import Candidate
from inductor_lab.saved.documents import tool_types
from inductor_lab.saved.documents.kinds import document


@dataclass(frozen=True)
class Tried:
    """One successful step of a strategy: the graph before and after it."""

    strategy: str
    before: str
    after: str
    tries: int
    seconds: float

    def __str__(self) -> str:
        tries = f"{self.tries} tried, {self.seconds:.1f} s"
        return f"{self.strategy}: from {self.before} to {self.after}  ({tries})"


@dataclass(frozen=True, eq=False)
class Minified(Shown):
    """The smallest graph that fails in the same way as the original one.

    symptom   how it fails: what the check returned, or how its process ended
    log       every successful step, with the name of its strategy
    complete  False if it was interrupted: then it is the smallest so far
    script    a standalone program that reproduces the failure; `folder` (if given) has it with its
              inputs and a saved compilation (if the compiler succeeds)
    """

    name: str
    symptom: str
    candidate: Candidate
    log: tuple[Tried, ...]
    complete: bool
    script: str
    seconds: float
    folder: Path | None = None

    @property
    def nodes(self) -> int:
        """The number of inputs, calls and the output of the remaining graph."""
        return self.candidate.nodes

    @property
    def module(self) -> GraphModule:
        return self.candidate.module

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        steps = [
            tool_types.MinifyStep(strategy=each.strategy, before=each.before, after=each.after,
                                  tries=each.tries, seconds=each.seconds)
            for each in self.log
        ]  # fmt: skip
        return document(tool_types.Minified(
            id="minified",
            summary=repr(self),
            kind="minified",
            name=self.name,
            symptom=self.symptom,
            nodes=self.nodes,
            complete=self.complete,
            seconds=self.seconds,
            folder=None if self.folder is None else str(self.folder),
            script=self.script,
            steps=steps,
        ))  # fmt: skip

    def __repr__(self) -> str:
        how = "" if self.complete else ", interrupted"
        return f"Minified({self.name}: {self.symptom}, {self.candidate}{how})"

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.symptom}", *(f"  {tried}" for tried in self.log)]
        if not self.complete:
            lines.append("  interrupted: this is the smallest so far")
        return "\n".join([*lines, "", self.script])
