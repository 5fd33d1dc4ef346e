"""The input of passes over FX graphs, besides the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch.fx import Node

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.compiler.ir.program import Write
from inductor_lab.compiler.library_choice import Choice


@dataclass(frozen=True)
class RewriteFacts:
    """The facts of passes over FX graphs.

    off      rules that are left out
    span_of  a node's place in the user's code, where it is recorded
    name     "forward" or "backward"; `trained`: there are both
    writes   what the last results are to inputs
    choices  what passes measured, in order; they add to it
    """

    off: frozenset[str]
    span_of: Callable[[Node], Span | None]
    options: Options
    name: str = ""
    trained: bool = False
    writes: tuple[Write, ...] = ()
    choices: list[Choice] = field(default_factory=list)
