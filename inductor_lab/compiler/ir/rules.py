"""The types of rules about loop programs, and the tables of all rules.

A rule returns what is wrong, or None.  `verify.py` has the rules about programs and steps,
`verify_body.py` the rules about expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.ir.index import Axis
from inductor_lab.compiler.ir.program import LoopProgram, Step
from inductor_lab.compiler.torch_door.torch_types import torch

HALF = (torch.float16, torch.bfloat16)
"""Dtypes for storage only: bodies compute in float32."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule; `where` is a buffer's name, or "program"."""

    rule: str
    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}  [{self.rule}]"


class InvalidProgram(AssertionError):
    """A phase made an illegal loop program.  This is a bug of the compiler, not of the user."""

    def __init__(self, name: str, violations: tuple[Violation, ...]) -> None:
        self.violations = violations
        lines = [f"the loop program {name} is not legal:"]
        super().__init__("\n  ".join([*lines, *map(str, violations)]))


@dataclass(frozen=True, slots=True)
class Context:
    """What a rule may look at: the program, the buffers computed before this step, and the loops.

    `masked` is true inside the body of a `Masked`, where indices may be out of range.
    """

    program: LoopProgram
    made: frozenset[str]
    axes: frozenset[Axis] = frozenset()
    masked: bool = False


ProgramRule = Callable[[LoopProgram], str | None]
StepRule = Callable[[Step, Context], str | None]
ExprRule = Callable[[Expr, Context], str | None]

PROGRAM_RULES: dict[str, ProgramRule] = {}
STEP_RULES: dict[str, StepRule] = {}
EXPR_RULES: dict[str, ExprRule] = {}


Rule = TypeVar("Rule", bound=Callable[..., str | None])


def rule_of(table: dict[str, Rule]) -> Callable[[Rule], Rule]:
    """A decorator that adds rules to a table, under their names."""

    def register(rule: Rule) -> Rule:
        assert rule.__name__ not in table, f"two rules are named {rule.__name__}"
        table[rule.__name__] = rule
        return rule

    return register


program_rule = rule_of(PROGRAM_RULES)
"""Register a rule about the whole program."""

step_rule = rule_of(STEP_RULES)
"""Register a rule about one loop nest or extern call."""

expr_rule = rule_of(EXPR_RULES)
"""Register a rule about one node of a body."""
