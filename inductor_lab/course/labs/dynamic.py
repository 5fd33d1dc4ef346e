"""Lab 9, dynamic shapes: symbols, ranges, recompiles, a function for every size."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from inductor_lab.course.exercise import Exercise, exercise, expected, given, run_there
from inductor_lab.course.given.capture import compiles_in, compiling_in
from inductor_lab.course.given.dynamic import RUNS, Shape, by_rows
from inductor_lab.course.given.graph_data import rebuilt
from inductor_lab.course.labs.wrong_values import matrices, still_possible
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Cell, Picture, Row, cells


def symbols_of(shapes: Sequence[Shape]) -> list[tuple[int | str, ...]]:
    """A name for each size, the same for equal ones; 0 and 1 stay numbers."""
    names: dict[int, str] = {}

    def size(length: int) -> int | str:
        return length if length < 2 else names.setdefault(length, f"s{len(names)}")

    return [tuple(map(size, shape)) for shape in shapes]


@dataclass(frozen=True)
class Inputs:
    """Shapes of a function's inputs, all dynamic."""

    shapes: tuple[Shape, ...]

    def __str__(self) -> str:
        return f"symbols({[list(shape) for shape in self.shapes]})"


@exercise("9.1", "A symbol for each size", "给每个尺寸一个符号", points=2)
class Symbols(Exercise):
    """`symbols(shapes)`: "s0", "s1", ... by first appearance; equal sizes share, 0 and 1 stay."""

    def cases(self, draw: random.Random) -> Iterator[Inputs]:
        for n in range(80):
            shapes = (tuple(draw.choice([0, 1, 2, 5, 5, 7]) for _ in range(draw.randint(1, 3)))
                      for _ in range(1 + n // 30))  # fmt: skip
            yield Inputs(tuple(shapes))

    def smaller(self, case: Inputs) -> Iterable[Inputs]:
        for n, shape in enumerate(case.shapes):
            if len(case.shapes) > 1:
                yield Inputs(case.shapes[:n] + case.shapes[n + 1 :])
            if len(shape) > 1:
                yield Inputs((*case.shapes[:n], shape[1:], *case.shapes[n + 1 :]))

    def judge(self, solution: Any, case: Inputs) -> str | None:
        found, wanted = solution([tuple(shape) for shape in case.shapes]), symbols_of(case.shapes)
        wrong = expected(list, found)
        if wrong or [tuple(shape) for shape in found] == wanted:
            return wrong
        return say("it should be {a}; your answer: {b}", a=wanted, b=found)

    def picture(self, solution: Any, case: Inputs) -> Picture:
        found = solution([tuple(shape) for shape in case.shapes])
        return matrices(say("names of the sizes"), symbols_of(case.shapes), found)


TESTS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FAR = 40
"""Sizes up to here are tried."""


@dataclass(frozen=True)
class Branches:
    """Comparisons of a size that a function makes, and the size that it was compiled with."""

    tests: tuple[tuple[str, int], ...]
    hint: int

    def __str__(self) -> str:
        return f"served({[f'n {op} {number}' for op, number in self.tests]}, hint={self.hint})"

    def path(self, size: int) -> list[bool]:
        return [TESTS[op](size, number) for op, number in self.tests]

    def sizes(self) -> list[int]:
        """All sizes for which every comparison has the same answer."""
        return [size for size in range(2, FAR) if self.path(size) == self.path(self.hint)]


@exercise("9.2", "The range of a symbol", "符号的取值范围", points=2)
class Ranges(Exercise):
    """`served(tests, hint)`: (smallest, largest) size for the graph; None for no limit."""

    def cases(self, draw: random.Random) -> Iterator[Branches]:
        for n in range(100):
            tests = ((draw.choice(list(TESTS)), draw.randint(3, 20)) for _ in range(n // 25))
            yield Branches(tuple(tests), draw.randint(2, 22))

    def smaller(self, case: Branches) -> Iterable[Branches]:
        for n in range(len(case.tests)):
            yield replace(case, tests=case.tests[:n] + case.tests[n + 1 :])

    def judge(self, solution: Any, case: Branches) -> str | None:
        found = solution(list(case.tests), case.hint)
        wrong = expected(tuple, found)
        if wrong or len(found) != 2:
            return wrong or say("it should return (least, largest)")
        sizes = case.sizes()
        wanted = (sizes[0], sizes[-1] if sizes[-1] < FAR - 1 else None)
        if tuple(found) == wanted:
            return None
        return say("sizes {a} take the same path; your answer: {b}", a=wanted, b=found)

    def picture(self, solution: Any, case: Branches) -> Picture:
        low, high = solution(list(case.tests), case.hint)
        mine = range(low, FAR if high is None else high + 1)
        right = set(case.sizes())

        def cell(size: int) -> Cell:
            role = "wrong" if (size in mine) != (size in right) else "input"
            return str(size), role if size in mine or size in right else "box"

        title = say("sizes of your answer; a cross: it should be the opposite")  # fmt: skip
        return cells(title, [("", [cell(size) for size in range(2, 26)])])


@dataclass(frozen=True)
class Sizes:
    """Rows and columns of x in one call after the other."""

    calls: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return f"compiles({list(self.calls)})"


@exercise("9.3", "Which calls compile", "哪些调用会编译", points=3, limit=120.0)
class Compiles(Exercise):
    """`compiles(calls)`: how many times `x * 2` is compiled for x of these sizes."""

    def cases(self, draw: random.Random) -> Iterator[Sizes]:
        yield Sizes(((4, 20), (5, 20), (6, 20)))
        yield Sizes(((4, 20), (5, 21), (4, 22)))
        yield Sizes(((4, 20), (5, 20), (5, 21)))
        for _ in range(12):
            count = draw.randint(2, 6)
            yield Sizes(tuple((draw.randint(4, 6), draw.randint(20, 21)) for _ in range(count)))

    def smaller(self, case: Sizes) -> Iterable[Sizes]:
        for n in range(len(case.calls)):
            if len(case.calls) > 1:
                yield Sizes(case.calls[:n] + case.calls[n + 1 :])

    def judge(self, solution: Any, case: Sizes) -> str | None:
        found = solution(list(case.calls))
        wrong = expected(int, found)
        if wrong:
            return wrong
        wanted = compiles_in(lambda x: x * 2, [(torch.ones(size),) for size in case.calls])
        if found == wanted:
            return None
        return say("compiles of TorchDynamo: {a}; your answer: {b}", a=wanted, b=found)  # fmt: skip

    def picture(self, solution: Any, case: Sizes) -> Picture:
        compiled = compiling_in(lambda x: x * 2, [(torch.ones(size),) for size in case.calls])
        calls = [f"{rows} x {columns}" for rows, columns in case.calls]
        return timeline(calls, compiled, solution(list(case.calls)))


def timeline(calls: Sequence[str], compiled: Sequence[int], mine: int | None = None) -> Picture:
    """Calls from left to right, and the graph that each call compiles."""
    line: list[Cell] = [("", "box")] * len(calls)
    for graph, place in enumerate(compiled):
        line[place] = (f"{line[place][0]} {graph}".strip(), "input")
    rows: list[Row] = [(say("call"), [(call, "other") for call in calls]), (say("graph"), line)]
    if mine is not None:
        rows.append((say("your answer"), [(str(mine), "wrong")]))
    legend = [(say("a graph is compiled"), "input"), (say("an existing graph is reused"), "box")]
    return cells(say("which call compiles"), rows, legend)


# ---- one graph for every size -------------------------------------------------------------------


COMPILING = "inductor_lab.course.given.capture:compiling_in"
TRACED = "inductor_lab.course.given.graph_data:traced_for_all_sizes"


@exercise("9.4", "One graph for every size", "一个图服务所有尺寸", points=3, limit=120.0)
class ForEverySize(Exercise):
    """`weighted(x)` computes what `by_rows` does; two graphs are enough for all numbers of rows."""

    def cases(self, draw: random.Random) -> Iterator[tuple[int, ...]]:
        yield (2, 3)
        yield (4, 5, 6, 7, 9)

    def described(self, case: tuple[int, ...]) -> str:
        return say("x of {s} rows, one after the other", s=", ".join(map(str, case)))

    def judge(self, solution: Any, case: tuple[int, ...]) -> str | None:
        inputs = [torch.arange(3.0 * rows).reshape(rows, 3) for rows in case]
        for x in inputs:
            (own,) = given(x)
            found = solution(own)
            wrong = expected(torch.Tensor, found)
            if wrong:
                return wrong
            if found.shape != (3,) or not torch.allclose(found, by_rows(x)):
                return say(
                    "for {n} rows by_rows computes {a}; yours computes {b}",
                    n=x.shape[0], a=by_rows(x).tolist(), b=found.tolist(),
                )  # fmt: skip
        count = len(run_there(solution, COMPILING, solution, [(x,) for x in inputs]))
        if count <= 2 and self._serves(solution, inputs):
            return None
        return say(
            "TorchDynamo compiles {n} graphs: what makes the number of rows a constant?",
            n=count,
        )

    def _serves(self, solution: Any, inputs: list[torch.Tensor]) -> bool:
        """Is one graph, traced for some number of rows, right for all?"""
        program = rebuilt(run_there(solution, TRACED, solution, torch.ones(11, 3)))
        try:
            return all(torch.allclose(program(x), by_rows(x)) for x in inputs)
        except (RuntimeError, IndexError):  # it has as many rows as were traced
            return False

    def picture(self, solution: Any, case: tuple[int, ...]) -> Picture:
        """The values where they are wrong; else which call compiles."""
        inputs = [torch.arange(3.0 * rows).reshape(rows, 3) for rows in case]
        for x in inputs:
            right, found = by_rows(x), solution(x)
            if found.shape != right.shape or not torch.allclose(found, right):
                title = say("x of {s} rows, one after the other", s=x.shape[0])
                return matrices(title, [right.tolist()], [found.tolist()])
        compiling = run_there(solution, COMPILING, solution, [(x,) for x in inputs])
        return timeline(list(map(str, case)), compiling)


# ---- predict ------------------------------------------------------------------------------------


def compiles_of(name: str) -> int:
    """How many times the real TorchDynamo compiles in these calls."""
    function, sizes = RUNS[name]
    return compiles_in(function, [(torch.ones(rows, 3),) for rows in sizes])


@exercise("9.5", "Predict the compiles", "预测编译次数", points=3, limit=120.0)
class PredictCompiles(Exercise):
    """`predicted`: how many times each is compiled."""

    def cases(self, draw: random.Random) -> Iterator[str]:
        return iter(RUNS)

    def judge(self, solution: Any, case: str) -> str | None:
        wrong = expected(dict, solution)
        if wrong or case not in solution:
            return wrong or say("no guess for {c!r}", c=case)
        wanted = compiles_of(case)
        if solution[case] == wanted:
            return None
        more = wanted > solution[case]
        return say(
            "it is compiled {how} than {g} times",
            g=solution[case], how=say("more") if more else say("fewer"),
        )

    def picture(self, solution: Any, case: str) -> Picture:
        mine, (_, sizes) = int(solution[case]), RUNS[case]
        calls: Row = (say("rows of x"), [(str(rows), "other") for rows in sizes])
        return still_possible(mine, compiles_of(case) > mine, len(sizes), 1, [calls])
