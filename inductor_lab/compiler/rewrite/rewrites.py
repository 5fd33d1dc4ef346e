"""The record of the FX passes: one entry for each pass, with the graph before and after it.

Inductor: `fx_passes/`; there the passes mutate the graph and log counters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.compiler.capture.fx_graph import FxGraph, Span
from inductor_lab.compiler.library_choice import Choice


@dataclass(frozen=True, slots=True)
class Fired:
    """One application of a rule: `became` has replaced `node`.

    `became` is the name of a node, or "" if no replacement was needed; `span` is the user's line;
    `why` is the estimate that led to the decision, if there was one.
    """

    rule: str
    node: str
    became: str
    span: Span | None = None
    why: str = ""

    @property
    def span_text(self) -> str:
        """`file:line  code`, or "" if the line is unknown."""
        return f"{self.span}  {self.span.code}".rstrip() if self.span else ""

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        return f"{self.rule}: {self.node} -> {self.became or 'nothing'}{why}"


@dataclass(frozen=True, eq=False)
class Step(Shown):
    """One pass.  `before` and `after` are the same object if the pass changed nothing.

    Both are None in compilations that are not inspected (`record=False`).  `seconds` is its
    duration.
    """

    name: str
    before: FxGraph | None
    after: FxGraph | None
    fired: tuple[Fired, ...]
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        return bool(self.fired)

    def __repr__(self) -> str:
        return f"Step({self.name}: {counted(len(self.fired), 'rule')} fired)"

    def __str__(self) -> str:
        return "\n".join([self.name, *(f"  {fired}" for fired in self.fired)])


@dataclass(frozen=True, eq=False)
class Rewrites(Shown):
    """All passes in order, the resulting module, and what passes measured (both live)."""

    steps: tuple[Step, ...]
    module: Any = field(default=None, repr=False, metadata={"live": True})
    choices: tuple[Choice, ...] = field(default=(), repr=False, metadata={"live": True})

    @property
    def fired(self) -> tuple[Fired, ...]:
        return tuple(fired for step in self.steps for fired in step.fired)

    def __repr__(self) -> str:
        fired = counted(len(self.fired), "rule")
        return f"Rewrites({counted(len(self.steps), 'pass')}, {fired} fired)"

    def __str__(self) -> str:
        return "\n".join(str(step) for step in self.steps)
