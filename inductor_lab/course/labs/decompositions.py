"""Lab 2, decompositions: softmax, layer norm and logsumexp of simple operators; a rewrite rule."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from inductor_lab.compiler.base.errors import Refused
from inductor_lab.course.exercise import Exercise, exercise, expected, run_there
from inductor_lab.course.given.decompositions import CHAIN, chain
from inductor_lab.course.given.graph_data import operators_of, rebuilt
from inductor_lab.course.given.graphs import Graph, Node, Ref
from inductor_lab.course.labs.wrong_values import lines, marked, matrices
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Picture

aten = torch.ops.aten
SIMPLE = frozenset(
    "add sub mul div neg exp log sqrt rsqrt sum mean amax amin maximum minimum where abs pow "
    "eq ne lt gt le ge isinf isfinite isnan full_like zeros_like ones_like full scalar_tensor "
    "lift_fresh_copy view reshape expand unsqueeze squeeze clone detach _to_copy logical_and "
    "bitwise_and select "
    "square logical_not bitwise_not masked_fill alias lift_fresh".split()
)
"""Operators that a decomposition may use."""


def _traced(solution: Any, case: torch.Tensor) -> Graph:
    """The operators of a solution, traced with other values of the same size.  The program is run
    on the case here, so its values are never where the solution is."""
    others = torch.linspace(-1.0, 1.0, case.numel()).reshape(case.shape)
    found = run_there(solution, "inductor_lab.course.given.graph_data:traced", solution, others)
    if not isinstance(found, Graph):
        raise Refused("no program")
    return found


class _Decomposition(Exercise):
    """Cases are tensors; a solution computes the same as torch with simple operators only."""

    values: tuple[float, ...] = ()

    def cases(self, draw: random.Random) -> Iterator[torch.Tensor]:
        for n in range(40):
            rows, columns = draw.randint(1, 2), draw.randint(1, 4)
            tensor = torch.tensor(
                [[draw.uniform(-3, 3) for _ in range(columns)] for _ in range(rows)]
            )
            if n >= 10 and self.values:
                tensor[draw.randrange(rows), draw.randrange(columns)] = draw.choice(self.values)
            if n >= 30 and self.values:
                tensor[0] = draw.choice(self.values)
            yield tensor

    def smaller(self, case: torch.Tensor) -> Iterable[torch.Tensor]:
        yield from (case[n : n + 1] for n in range(len(case)) if len(case) > 1)
        columns = case.shape[1]
        yield from (
            torch.cat([case[:, :n], case[:, n + 1 :]], 1) for n in range(columns) if columns > 1
        )

    def described(self, case: torch.Tensor) -> str:
        return f"x = {[[round(value, 2) for value in row] for row in case.tolist()]}"

    def wanted(self, case: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def judge(self, solution: Any, case: torch.Tensor) -> str | None:
        program = _traced(solution, case)
        if banned := [name for name in operators_of(program) if name not in SIMPLE]:
            return say("aten.{n} is not one of the simple operators", n=banned[0])
        found = rebuilt(program)(case)
        wrong = expected(torch.Tensor, found)
        if wrong:
            return wrong
        wanted = self.wanted(case)
        if found.shape != wanted.shape:
            return say(
                "the result has the size {b}; it should have the size {a}",
                a=list(wanted.shape), b=list(found.shape),
            )  # fmt: skip
        if torch.allclose(found, wanted, atol=1e-5, equal_nan=True):
            return None
        return say("torch computes {a}; yours computes {b}", a=wanted.tolist(), b=found.tolist())

    def picture(self, solution: Any, case: torch.Tensor) -> Picture:
        right, mine = self.wanted(case), rebuilt(_traced(solution, case))(case)
        return matrices(say("row by row"), right, mine)


@exercise("2.1", "Softmax with simple operators", "用简单算子写 softmax", points=2)
class Softmax(_Decomposition):
    """`softmax(x)` along each row; large numbers must not overflow."""

    values = (200.0, -200.0, 1e4)

    def wanted(self, case: torch.Tensor) -> torch.Tensor:
        return torch.softmax(case, -1)


@exercise("2.2", "Layer norm with simple operators", "用简单算子写 layer norm", points=2)
class LayerNorm(_Decomposition):
    """`layer_norm(x)` of each row, without weights, eps 1e-5."""

    def wanted(self, case: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(case, case.shape[-1:])


@exercise("2.3", "logsumexp, also for infinity", "logsumexp，包括无穷大", points=3)
class LogSumExp(_Decomposition):
    """`logsumexp(x)` along each row; infinities of both signs are values like any other."""

    values = (200.0, -200.0, float("-inf"), float("inf"))

    def wanted(self, case: torch.Tensor) -> torch.Tensor:
        return torch.logsumexp(case, -1)


@dataclass(frozen=True)
class Table:
    """Operators, and what each decomposes to; one without an entry is primitive."""

    operators: tuple[str, ...]
    table: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        rows = [f"{name} → {', '.join(became) or say('nothing')}" for name, became in self.table]
        return "\n".join([say("operators: {names}", names=", ".join(self.operators)), *rows])

    def primitives(self) -> list[str]:
        known = dict(self.table)

        def of(name: str) -> list[str]:
            return [p for part in known[name] for p in of(part)] if name in known else [name]

        return [primitive for name in self.operators for primitive in of(name)]


@exercise("2.4", "Decompose completely", "完全分解", points=2)
class Decompose(Exercise):
    """`decompose(operators, table)`: the primitive operators, in order."""

    def cases(self, draw: random.Random) -> Iterator[Table]:
        for n in range(60):
            names = [f"op{k}" for k in range(1 + n // 10)]
            rows = []
            for place, name in enumerate(names):
                parts = [*names[place + 1 :], "add", "exp", "sum"]
                rows.append((name, tuple(draw.choice(parts) for _ in range(draw.randint(0, 3)))))
            draw.shuffle(rows)
            operators = tuple(draw.choice([*names, "mul"]) for _ in range(1 + n // 20))
            yield Table(operators, tuple(rows))

    def smaller(self, case: Table) -> Iterable[Table]:
        for n in range(len(case.operators)):
            if len(case.operators) > 1:
                yield replace(case, operators=case.operators[:n] + case.operators[n + 1 :])
        for n in range(len(case.table)):
            yield replace(case, table=case.table[:n] + case.table[n + 1 :])

    def judge(self, solution: Any, case: Table) -> str | None:
        found = solution(list(case.operators), {name: list(to) for name, to in case.table})
        wrong = expected(list, found)
        if wrong or found == case.primitives():
            return wrong
        return say("it should be {a}; your answer: {b}", a=case.primitives(), b=found)

    def picture(self, solution: Any, case: Table) -> Picture:
        mine = solution(list(case.operators), {name: list(to) for name, to in case.table})
        return lines(say("the primitive operators"), case.primitives(), mine)


# ---- a rewrite rule in the real pipeline ---------------------------------------------------------

@exercise(
    "2.5", "A rewrite rule in the compiler", "把你的改写规则装进编译器", points=3, limit=120.0
)
class Rewrite(Exercise):
    """`rule(node, edit)`: relu(abs(x)) is abs(x); None for any other relu."""

    def cases(self, draw: random.Random) -> Iterator[tuple[str, ...]]:
        yield from (("abs", "relu"), ("sin", "relu"), ("abs", "neg", "relu"), ("relu", "abs"))
        yield from (tuple(draw.choice(list(CHAIN)) for _ in range(4)) for _ in range(4))

    def described(self, case: tuple[str, ...]) -> str:
        text = "x"
        for name in case:
            text = f"{name}({text})"
        return text

    def judge(self, solution: Any, case: tuple[str, ...]) -> str | None:
        x = torch.tensor([-2.0, -0.5, 0.0, 0.5, 2.0])
        wanted = chain(case)(x)
        program = self._rewritten(solution, case)
        found = rebuilt(program)(x)
        found = found[0] if isinstance(found, list | tuple) else found
        if not isinstance(found, torch.Tensor) or not torch.allclose(found, wanted):
            return say(
                "with your rule, x = {x} gives {b}; it should give {a}",
                x=x.tolist(), a=wanted.tolist(), b=found.tolist(),
            )  # fmt: skip
        if any(left for _, left in _relus_of_abs(program)):
            return say("a relu of an abs is still there")
        return None

    def _rewritten(self, solution: Any, case: tuple[str, ...]) -> Graph:
        where = "inductor_lab.course.given.decompositions:rewritten"
        found = run_there(solution, where, solution, case)
        if not isinstance(found, Graph):
            raise Refused("no program")
        return found

    def picture(self, solution: Any, case: tuple[str, ...]) -> Picture:
        line = _relus_of_abs(self._rewritten(solution, case))
        return marked(say("the graph after your rule"), [("", line)])


def _relus_of_abs(program: Graph) -> list[tuple[str, bool]]:
    """The operators in order, and whether each is a relu of an abs."""
    made = {node.name: node.target for node in program.nodes}

    def reads(node: Node) -> str:
        first = node.args[0] if node.args else None
        return made.get(first.name, "") if isinstance(first, Ref) else ""

    return [
        (node.target.split(".")[1],
         node.target.startswith("aten.relu.") and reads(node).startswith("aten.abs."))
        for node in program.nodes
    ]  # fmt: skip
