"""Lab 1, capture: a stack machine, a recorder, guards, graph breaks, recompiles."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from inductor_lab.course.exercise import Exercise, exercise, expected, given, run_there
from inductor_lab.course.given.capture import (
    OPERATIONS,
    bytecode,
    compiles_in,
    gate,
)
from inductor_lab.course.given.graph_data import rebuilt
from inductor_lab.course.labs.straight import Program, programs, simpler
from inductor_lab.course.labs.wrong_values import marked, short
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Picture, cells


class _OnPrograms(Exercise):
    """Cases are straight-line programs with values for their arguments."""

    def cases(self, draw: random.Random) -> Iterator[Program]:
        return programs(draw, 60)

    def smaller(self, case: Program) -> Iterable[Program]:
        return simpler(case)


def stacks(instructions: list[tuple[str, Any]], arguments: Mapping[str, int]) -> Picture:
    """The right stack after each instruction."""
    known, stack, rows = dict(arguments), list[int](), list[tuple[str, list[tuple[str, bool]]]]()
    for name, what in instructions:
        if name == "LOAD_FAST":
            stack.append(known[what])
        elif name == "LOAD_CONST":
            stack.append(what)
        elif name == "STORE_FAST":
            known[what] = stack.pop()
        elif name == "BINARY_OP":
            right, left = stack.pop(), stack.pop()
            stack.append(OPERATIONS[what](left, right))
        said = f"{name} {'' if what is None else what}".strip()
        rows.append((said, [(str(value), False) for value in stack]))
    return marked(say("the stack after each instruction, as it should be"), rows)  # fmt: skip


@exercise("1.1", "A stack machine", "栈式虚拟机", points=2)
class StackMachine(_OnPrograms):
    """`stack_machine(instructions, arguments)` returns what the function returns."""

    def judge(self, solution: Any, case: Program) -> str | None:
        wanted = case.value()
        found = solution(bytecode(case.function()), dict(case.arguments))
        wrong = expected(int, found)
        if wrong or found == wanted:
            return wrong
        return say("Python returns {a}; your machine returns {b}", a=wanted, b=found)

    def picture(self, solution: Any, case: Program) -> Picture:
        return stacks(bytecode(case.function()), case.arguments)


@exercise("1.2", "Record instead of computing", "只记录，不计算", points=3)
class Recorder(_OnPrograms):
    """`record(instructions)` returns (nodes, result); a node is (name, op, left, right)."""

    def judge(self, solution: Any, case: Program) -> str | None:
        instructions = bytecode(case.function())
        found = solution(instructions)
        if not isinstance(found, tuple) or len(found) != 2:
            return expected(tuple, found) or say("it should return the pair (nodes, result)")
        nodes, result = found
        wrong = expected(list, nodes) or _wrong_nodes(nodes, case)
        if wrong:
            return wrong
        wanted = sum(name == "BINARY_OP" for name, _ in instructions)
        if len(nodes) != wanted:
            return say("the function has {a} operations, you recorded {b}", a=wanted, b=len(nodes))
        values: dict[str, Any] = dict(case.arguments)
        for name, op, left, right in nodes:
            values[name] = OPERATIONS[op](values.get(left, left), values.get(right, right))
        if isinstance(result, str) and result not in values:
            return say("the result {r!r} is neither an argument nor a node", r=result)
        value = values.get(result, result)
        if value == case.value():
            return None
        return say(
            "with {args} Python returns {a}; your graph {g} returns {b}",
            args=case.described_arguments(), a=case.value(), b=value, g=f"{nodes} → {result!r}",
        )

    def picture(self, solution: Any, case: Program) -> Picture:
        nodes, result = solution(bytecode(case.function()))
        known, rows = set(case.arguments), list[tuple[str, list[tuple[str, bool]]]]()
        for name, op, left, right in nodes:
            sides = [(short(side), isinstance(side, str) and side not in known)
                     for side in (left, right)]  # fmt: skip
            rows.append((str(name), [(op, False), *sides]))
            known.add(name)
        rows.append(("return", [(short(result), isinstance(result, str) and result not in known)]))
        return marked(say("your graph; a cross: read before it is computed"), rows)  # fmt: skip


def _wrong_nodes(nodes: list[Any], case: Program) -> str | None:
    known = set(case.arguments)
    for node in nodes:
        if not isinstance(node, tuple) or len(node) != 4 or node[1] not in OPERATIONS:
            return say("a node is a tuple (name, op, left, right), not {n!r}", n=node)
        name, _, left, right = node
        if name in known:
            return say("two values have the name {n!r}: each node needs its own name", n=name)
        for operand in (left, right):
            if isinstance(operand, str) and operand not in known:
                return say("{n!r} reads {o!r}, which no earlier node computes", n=name, o=operand)
        known.add(name)
    return None


@dataclass(frozen=True)
class Calls:
    """Two calls of one function, and whether the second can reuse the graph of the first."""

    first: dict[str, Any]
    second: dict[str, Any]
    serves: bool

    def __str__(self) -> str:
        return f"make_guard({_arguments(self.first)})\nholds({_arguments(self.second)})"


def _arguments(given: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_kind(value)}" for name, value in given.items())


def _kind(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"


@exercise("1.3", "Guards", "守卫", points=2)
class Guards(Exercise):
    """`make_guard(arguments)` returns `holds(arguments)`: may the graph be reused?"""

    def cases(self, draw: random.Random) -> Iterator[Calls]:
        for _ in range(60):
            rows, columns = draw.randint(1, 4), draw.randint(1, 4)
            first = {"x": torch.randn(rows, columns), "n": draw.randint(0, 3)}
            same: dict[str, Any] = {"x": torch.randn(rows, columns), "n": first["n"]}
            others: list[dict[str, Any]] = [
                {"x": same["x"].double()},
                {"x": torch.randn(rows + 1, columns)},
                {"x": torch.randn(rows)},
                {"x": torch.randn(1, rows, columns)},
                {"n": same["n"] + 1},
                {"n": bool(same["n"]), "x": same["x"]} if same["n"] < 2 else {"n": -same["n"]},
                {"n": float(same["n"])},
                {"x": 3},
            ]
            yield Calls(first, same, True)
            yield Calls(first, {**same, **draw.choice(others)}, False)

    def judge(self, solution: Any, case: Calls) -> str | None:
        holds = solution(dict(case.first))
        if not callable(holds):
            return say("make_guard should return a function")
        answer = holds(dict(case.second))
        if bool(answer) == case.serves:
            return None
        if case.serves:
            return say(
                "only the data differ, so the graph can be reused: this guard causes a "
                "recompile in every call",
            )
        changed = [n for n in case.first if _kind(case.first[n]) != _kind(case.second[n])]
        return say(
            "{n} has another type or value now, so the graph would be wrong, but the guard holds",
            n=", ".join(changed),
        )

    def picture(self, solution: Any, case: Calls) -> Picture:
        rows = []
        for name, first in case.first.items():
            kinds = _kind(first), _kind(case.second[name])
            rows.append((name, [(kinds[0], False), (kinds[1], kinds[0] != kinds[1])]))
        return marked(say("the first call, and the second"), rows)


Step: TypeAlias = tuple[str, str, tuple[str, ...]]
"""(target, op, reads); the op "python" cannot be in a graph."""


@dataclass(frozen=True)
class Body:
    """Steps of a function, and the name that it returns; `x` and `w` are its arguments."""

    steps: tuple[Step, ...]
    result: str

    def __str__(self) -> str:
        lines = [f"{target} = {op}({', '.join(reads)})" for target, op, reads in self.steps]
        return "\n".join([*lines, f"return {self.result}"])


@exercise("1.4", "Graph breaks", "图中断", points=3)
class Split(Exercise):
    """`split(steps, result)` returns the graphs, each as (inputs, names, outputs)."""

    def cases(self, draw: random.Random) -> Iterator[Body]:
        for size in [1, 2, 2, 3, 3, 3, *[draw.randint(3, 9) for _ in range(80)]]:
            known, steps = ["x", "w"], list[Step]()
            for n in range(size):
                op = draw.choice(["add", "mul", "sin", "python"])
                count = 1 if op in ("sin", "python") else 2
                steps.append((f"t{n}", op, tuple(draw.choice(known[-4:]) for _ in range(count))))
                known.append(f"t{n}")
            yield Body(tuple(steps), draw.choice(known[-2:]))

    def smaller(self, case: Body) -> Iterable[Body]:
        for n in range(len(case.steps)):
            gone = case.steps[n][0]
            rest = case.steps[:n] + case.steps[n + 1 :]
            renamed = tuple(
                (t, op, tuple("x" if r == gone else r for r in reads)) for t, op, reads in rest
            )
            yield Body(renamed, "x" if case.result == gone else case.result)

    def judge(self, solution: Any, case: Body) -> str | None:
        found = solution(list(case.steps), case.result)
        wrong = expected(list, found)
        if wrong:
            return wrong
        wanted = _graphs(case)
        if any(not isinstance(graph, tuple | list) or len(graph) != 3 for graph in found):
            return say("a graph is (inputs, names, outputs)")
        names = [list(graph[1]) for graph in found]
        if names != [graph[1] for graph in wanted]:
            return say(
                "the graphs should contain {a}; yours contain {b}",
                a=[graph[1] for graph in wanted], b=names,
            )
        for (inputs, held, outputs), right in zip(found, wanted, strict=True):
            for what, mine, theirs in (
                (say("takes"), set(inputs), set(right[0])),
                (say("returns"), set(outputs), set(right[2])),
            ):
                if mine != theirs:
                    return say(
                        "the graph of {h} {w} {a}; your answer: {b}",
                        h=held, w=what, a=sorted(theirs), b=sorted(mine),
                    )
        return None

    def picture(self, solution: Any, case: Body) -> Picture:
        wanted, found = _graphs(case), solution(list(case.steps), case.result)
        right, mine = (
            {name: n for n, (_, names, _) in enumerate(graphs) for name in names}
            for graphs in (wanted, found)
        )
        rows = [
            (f"{name} = {op}({', '.join(reads)})",
             [(str(right.get(name, "-")), False),
              (str(mine.get(name, "-")), right.get(name) != mine.get(name))])
            for name, op, reads in case.steps
        ]  # fmt: skip
        for n, (theirs, yours) in enumerate(zip(wanted, found, strict=False)):
            for what, part in ((say("inputs of {n}", n=n), 0), (say("outputs of {n}", n=n), 2)):
                if set(theirs[part]) != set(yours[part]):
                    names = (" ".join(sorted(each[part])) or "-" for each in (theirs, yours))
                    rows.append((what, list(zip(names, (False, True), strict=True))))
        if len(wanted) != len(found):
            counts = [(str(len(wanted)), False), (str(len(found)), True)]
            rows.append((say("how many graphs"), counts))
        return marked(say("number of the graph: right, and yours"), rows)


def _graphs(body: Body) -> list[tuple[list[str], list[str], list[str]]]:
    pieces: list[list[int]] = [[]]
    for n, (_, op, _) in enumerate(body.steps):
        if op == "python":
            pieces.append([])
        else:
            pieces[-1].append(n)
    graphs = []
    for piece in filter(None, pieces):
        made = [body.steps[n][0] for n in piece]
        reads = dict.fromkeys(r for n in piece for r in body.steps[n][2] if r not in made)
        later = {r for _, _, rs in body.steps[piece[-1] + 1 :] for r in rs} | {body.result}
        graphs.append((list(reads), made, [name for name in made if name in later]))
    return graphs


CAPTURED = "inductor_lab.course.given.capture:operations_captured"
TRACED = "inductor_lab.course.given.graph_data:traced"


@exercise("1.5", "One graph", "合并为一个图", points=2, limit=90.0)
class OneGraph(Exercise):
    """`whole(x, w)` computes what `gate` does, in one graph of the real TorchDynamo."""

    def cases(self, draw: random.Random) -> Iterator[tuple[Any, Any]]:
        for scale in (0.1, 4.0, 0.1, 4.0):
            seed = torch.Generator().manual_seed(draw.randint(0, 1 << 20))
            yield (scale * torch.randn(4, 8, generator=seed), torch.randn(8, 6, generator=seed))

    def described(self, case: tuple[Any, Any]) -> str:
        top = float(torch.softmax(case[0] @ case[1], -1).max())
        return f"x, w: float32[4, 8], float32[8, 6]; y.max() = {top:.2f}"

    def judge(self, solution: Any, case: tuple[Any, Any]) -> str | None:
        found, wanted = solution(*given(*case)), gate(*case)
        wrong = expected(torch.Tensor, found)
        if wrong:
            return wrong
        if found.shape != wanted.shape or not torch.allclose(found, wanted, atol=1e-6):
            return say("the result differs from that of gate")
        graphs = len(run_there(solution, CAPTURED, solution, *case))
        if graphs != 1:
            return say("TorchDynamo captures {n} graphs, not one", n=graphs)
        # traced with other values: what it does with these is seen here
        others = [torch.ones_like(value) for value in case]
        program = rebuilt(run_there(solution, TRACED, solution, *others))
        if torch.allclose(program(*case), wanted, atol=1e-6):
            return None
        return say("the result of the graph of your function differs from that of your function")

    def picture(self, solution: Any, case: tuple[Any, Any]) -> Picture:
        rows = [
            (say("graph {n}", n=n), [(name, False) for name in names])
            for n, names in enumerate(run_there(solution, CAPTURED, solution, *case))
        ]
        return marked(say("what TorchDynamo captures"), rows)


@exercise("1.6", "Recompiles", "重新编译", points=2, limit=90.0)
class Recompiles(Exercise):
    """`compiles(rows)`: how many times is softmax(x @ w) compiled for calls with these rows?"""

    def cases(self, draw: random.Random) -> Iterator[list[int]]:
        yield from ([4], [4, 4], [4, 5], [4, 5, 6])
        for _ in range(10):
            yield [draw.choice([1, 2, 3, 4, 7]) for _ in range(draw.randint(2, 5))]

    def smaller(self, case: list[int]) -> Iterable[list[int]]:
        return (case[:n] + case[n + 1 :] for n in range(len(case)) if len(case) > 1)

    def described(self, case: list[int]) -> str:
        return f"compiles({case})"

    def judge(self, solution: Any, case: list[int]) -> str | None:
        found = solution(list(case))
        wrong = expected(int, found)
        if wrong:
            return wrong
        w = torch.randn(8, 6)
        wanted = compiles_in(_softmax, [(torch.randn(n, 8), w) for n in case])
        if found == wanted:
            return None
        return say("compiles of TorchDynamo: {a}; your answer: {b}", a=wanted, b=found)

    def picture(self, solution: Any, case: list[int]) -> Picture:
        w, seen, line = torch.randn(8, 6), 0, []
        for n in range(len(case)):
            calls = [(torch.randn(rows, 8), w) for rows in case[: n + 1]]
            compiled = compiles_in(_softmax, calls)
            line.append((str(case[n]), "wrong" if compiled > seen else "output"))
            seen = compiled
        title = say("rows of each call; a cross: this call compiles")
        return cells(title, [("", line)])


def _softmax(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ w, -1)
