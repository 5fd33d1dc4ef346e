"""Lab 12, a complete model: predict kernels, bytes, guards, recompiles; a rule that saves work;
programs drawn from a name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import torch

from inductor_lab.api.backend import inspect
from inductor_lab.course.exercise import Exercise, exercise, expected, run_there
from inductor_lab.course.given.drawn import HOW_MANY, drawn
from inductor_lab.course.given.graph_data import rebuilt
from inductor_lab.course.given.whole import (
    FIVE,
    POOLING,
    SECONDS,
    SERIES,
    Calls,
    pair,
    pooled,
    tokens,
    two_sums,
    waiting,
    wave,
)
from inductor_lab.course.labs.wrong_values import lines, marked, numbers, prediction, still_possible
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Picture, Row

aten = torch.ops.aten


class _Foretold(Exercise):
    """A solution returns a dict with a number for each program; a case is a program."""

    programs: tuple[Any, ...] = FIVE

    def cases(self, draw: random.Random) -> Iterator[Any]:
        return iter(self.programs)

    def described(self, case: Any) -> str:
        return str(case.__name__)

    def truth(self, case: Any) -> int:
        """The result of the real compile."""
        raise NotImplementedError

    def judge(self, solution: Any, case: Any) -> str | None:
        found = solution()
        if not isinstance(found, dict):
            return expected(dict, found)
        said = found.get(self.described(case))
        if isinstance(said, bool) or not isinstance(said, int):
            return say("no number for {n}", n=self.described(case))
        right = self.truth(case)
        if said == right:
            return None
        if said < right:
            return say("{n}: more than {s}", n=self.described(case), s=said)
        return say("{n}: fewer than {s}", n=self.described(case), s=said)

    def picture(self, solution: Any, case: Any) -> Picture:
        mine = solution()[self.described(case)]
        return still_possible(mine, self.truth(case) > mine, self.most(case), 1, self.above(case))

    def most(self, case: Any) -> int:
        """A number that the right one cannot be above."""
        return int(inspect(case, *pair()).before.kernels)

    def above(self, case: Any) -> list[Row]:
        """What a picture shows above the numbers."""
        return []


@exercise("12.1", "Kernels, before running", "先猜 kernel 数", points=2, limit=120.0)
class Kernels(_Foretold):
    """`kernels()`: how many kernels each of the five programs has."""

    def truth(self, case: Any) -> int:
        return int(inspect(case, *pair()).after.kernels)


@exercise("12.2", "Bytes, before running", "先猜字节数", points=2, limit=120.0)
class Moved(_Foretold):
    """`moved()`: how many bytes the generated kernels and libraries of each program move."""

    programs = (wave, two_sums, waiting)

    def truth(self, case: Any) -> int:
        return int(inspect(case, *pair()).after.bytes)

    def picture(self, solution: Any, case: Any) -> Picture:
        before = int(inspect(case, *pair()).before.bytes)
        known = [(say("the matrix, once"), 16384), (say("before fusion"), before)]
        return prediction(solution()[self.described(case)], self.truth(case), known)


# ---- guards and recompiles -----------------------------------------------------------------------


def compiled_in(calls: Calls) -> int:
    """How many graphs TorchDynamo makes of these calls."""
    graphs = 0

    def backend(module: torch.fx.GraphModule, inputs: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return module.forward

    torch.compiler.reset()
    fast = torch.compile(calls.function, backend=backend)
    for arguments in calls.calls:
        fast(*arguments)
    torch.compiler.reset()
    return graphs


@exercise("12.3", "Guards, before running", "先猜守卫", points=2, limit=120.0)
class Served(Exercise):
    """`served()`: for each pair of calls, whether the second one's guards hold."""

    def cases(self, draw: random.Random) -> Iterator[Any]:
        yield SECONDS

    def described(self, case: Any) -> str:
        return ", ".join(each.name for each in case)

    def judge(self, solution: Any, case: tuple[Calls, ...]) -> str | None:
        found = solution()
        if not isinstance(found, dict):
            return expected(dict, found)
        unsaid = [each.name for each in case if not isinstance(found.get(each.name), bool)]
        if unsaid:
            return say("True or False for {n}?", n=", ".join(unsaid))
        right = sum(found[each.name] == (compiled_in(each) == 1) for each in case)
        if right == len(case):
            return None
        return say("{a} of {b} are right", a=right, b=len(case))

    def picture(self, solution: Any, case: tuple[Calls, ...]) -> Picture:
        """The pairs of calls, the solution's answers, and the number of right answers."""
        found = solution()
        right = sum(found[each.name] == (compiled_in(each) == 1) for each in case)
        rows = []
        for each in case:
            verdict = say("is reused") if found[each.name] else say("compiles again")
            texts = [*each.described(), verdict]
            rows.append((each.name, [(text, False) for text in texts]))
        score = [("✓", False)] * right + [("–", True)] * (len(case) - right)
        title = say("first call, second call, your answer; below: the number of right answers")
        named = say("{a} of {b} are right", a=right, b=len(case))
        return marked(title, [*rows, (named, score[:3]), ("", score[3:])])


@exercise("12.4", "Recompiles, before running", "先猜重新编译", points=2, limit=120.0)
class Recompiled(_Foretold):
    """`graphs()`: how many graphs each series of calls compiles."""

    programs = SERIES

    def described(self, case: Any) -> str:
        return str(case.name)

    def truth(self, case: Any) -> int:
        return int(compiled_in(case))

    def most(self, case: Any) -> int:
        return 2 * len(case.calls)

    def above(self, case: Any) -> list[Row]:
        return [(f"{say('call {n}', n=n)}: {text}", []) for n, text in enumerate(case.described())]


# ---- a rule that pays ----------------------------------------------------------------------------


def _with_rule(solution: Any, case: Any) -> Any:
    """What the compiler makes of a program with the solution's rule, as a program to run here."""
    where = "inductor_lab.course.given.whole:rewritten"
    found = rebuilt(run_there(solution, where, solution, case.__name__))

    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        result = found(x, w)
        value: torch.Tensor = result[0] if isinstance(result, list | tuple) else result
        return value

    return program


@exercise("12.5", "A rule that saves work", "一条减少工作量的改写规则", points=4, limit=120.0)
class Pays(Exercise):
    """`rule(node, edit)`: the mean over rows goes before the product; None for any other mean."""

    def cases(self, draw: random.Random) -> Iterator[Any]:
        return iter(POOLING)

    def described(self, case: Any) -> str:
        return str(case.__name__)

    def judge(self, solution: Any, case: Any) -> str | None:
        x, w = tokens()
        program, wanted = _with_rule(solution, case), case(x, w)
        found = program(x, w)
        if found.shape != wanted.shape:
            return say(
                "with your rule the result is {a}, it should be {b}",
                a=tuple(found.shape), b=tuple(wanted.shape),
            )  # fmt: skip
        if not torch.allclose(found, wanted, rtol=1e-4, atol=1e-5):
            return say("with your rule the result is wrong")
        if case is not pooled:
            return None
        before, after = inspect(case, x, w).after.bytes, inspect(program, x, w).after.bytes
        if after < before * 2 / 3:
            return None
        return say(
            "right, but it does not save bytes: {a:,} bytes; without the rule {b:,}",
            a=after, b=before,
        )  # fmt: skip

    def picture(self, solution: Any, case: Any) -> Picture:
        """The numbers if they are wrong, else the bytes."""
        x, w = tokens()
        program, wanted = _with_rule(solution, case), case(x, w)
        result = program(x, w)
        if result.shape != wanted.shape:
            return lines(say("sizes of the result"), wanted.shape, result.shape)
        if not torch.allclose(result, wanted, rtol=1e-4, atol=1e-5):
            return lines(say("the result"), wanted.flatten().tolist(), result.flatten().tolist())
        before = int(inspect(case, x, w).after.bytes)
        return numbers(say("bytes moved"), [
            (say("without the rule"), before), (say("enough"), before * 2 // 3),
            (say("with your rule"), int(inspect(program, x, w).after.bytes)),
        ], " B")  # fmt: skip


# ---- programs drawn from a name ------------------------------------------------------------------


@exercise("12.6", "Three programs of your own", "为你抽出的三个程序", points=3, limit=120.0)
class OfYourOwn(Exercise):
    """`mine()`: (name, [kernels of each program that is drawn from it])."""

    def cases(self, draw: random.Random) -> Iterator[int]:
        return iter(range(HOW_MANY))

    def described(self, case: int) -> str:
        return f"program_{case}"

    def judge(self, solution: Any, case: int) -> str | None:
        found = solution()
        if not isinstance(found, tuple) or len(found) != 2:
            return expected(tuple, found) or say("it should be (name, numbers)")  # fmt: skip
        name, numbers = found
        if not isinstance(name, str) or not name.strip():
            return say("write your name; the programs are drawn from it")
        if not isinstance(numbers, (list, tuple)) or len(numbers) != HOW_MANY:
            return say("there must be a number for each of the {n} programs", n=HOW_MANY)
        compiled = inspect(drawn(name)[case].function(), *pair())
        right, said = int(compiled.after.kernels), numbers[case]
        if (wrong := expected(int, said)) or said == right:
            return wrong
        return say(
            "{s} is not the number of kernels; before fusion there are {b}",
            s=said, b=compiled.before.kernels,
        )  # fmt: skip

    def picture(self, solution: Any, case: int) -> Picture | None:
        name, said = solution()
        if not name.strip():
            return None
        compiled = inspect(drawn(name)[case].function(), *pair())
        return still_possible(int(said[case]), None, int(compiled.before.kernels), 1)
