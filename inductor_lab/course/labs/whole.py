"""Lab 12, a model, whole: kernels, bytes, guards and recompiles foretold; a rule that pays;
programs drawn from a name."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.api.backend import inspect
from inductor_lab.api.override import override
from inductor_lab.compiler.rewrite.aten.identities import RULES, Edit, identity
from inductor_lab.course.exercise import Exercise, exercise, expected
from inductor_lab.course.labs.beside import foretold, lines, marked, numbers, still_possible
from inductor_lab.course.labs.drawn import HOW_MANY, drawn
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Picture, Row

aten = torch.ops.aten


def wave(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return ((x + 1) * 2).sin()


def attend(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ w, -1)


def two_sums(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sum(0), x.sum(1)


def perceptron(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w) @ w


def waiting(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x / x.sum()


FIVE = (wave, attend, two_sums, perceptron, waiting)
"""Programs of x and w, 64 x 64 floats each: 16,384 bytes."""


def _pair() -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(64, 64, generator=draw), torch.randn(64, 64, generator=draw)


class _Foretold(Exercise):
    """A solution returns a dict with a number for each program; a case is a program."""

    programs: tuple[Any, ...] = FIVE

    def cases(self, draw: random.Random) -> Iterator[Any]:
        return iter(self.programs)

    def told(self, case: Any) -> str:
        return str(case.__name__)

    def truth(self, case: Any) -> int:
        """What the real compile says."""
        raise NotImplementedError

    def judge(self, solution: Any, case: Any) -> str | None:
        found = solution()
        if not isinstance(found, dict):
            return expected(dict, found)
        said = found.get(self.told(case))
        if isinstance(said, bool) or not isinstance(said, int):
            return say("no number for {n}", n=self.told(case))
        right = self.truth(case)
        if said == right:
            return None
        if said < right:
            return say("{n}: more than {s}", n=self.told(case), s=said)
        return say("{n}: fewer than {s}", n=self.told(case), s=said)

    def picture(self, solution: Any, case: Any) -> Picture:
        mine = solution()[self.told(case)]
        return still_possible(mine, self.truth(case) > mine, self.most(case), 1, self.above(case))

    def most(self, case: Any) -> int:
        """A number that the right one cannot be above."""
        return int(inspect(case, *_pair()).before.kernels)

    def above(self, case: Any) -> list[Row]:
        """What a picture shows above the numbers."""
        return []


@exercise("12.1", "Kernels, before running", "先猜 kernel 数", points=2, limit=120.0)
class Kernels(_Foretold):
    """`kernels()`: how many kernels each of the five programs has."""

    def truth(self, case: Any) -> int:
        return int(inspect(case, *_pair()).after.kernels)


@exercise("12.2", "Bytes, before running", "先猜字节数", points=2, limit=120.0)
class Moved(_Foretold):
    """`moved()`: how many bytes the generated kernels and libraries of each program move."""

    programs = (wave, two_sums, waiting)

    def truth(self, case: Any) -> int:
        return int(inspect(case, *_pair()).after.bytes)

    def picture(self, solution: Any, case: Any) -> Picture:
        before = int(inspect(case, *_pair()).before.bytes)
        known = [(say("the matrix, once"), 16384), (say("before fusion"), before)]
        return foretold(solution()[self.told(case)], self.truth(case), known)


# ---- guards and recompiles -----------------------------------------------------------------------


@dataclass(frozen=True)
class Calls:
    """A function, and the calls that are made of it, one after the other."""

    name: str
    function: Callable[..., Any]
    calls: tuple[tuple[Any, ...], ...]

    def told(self) -> list[str]:
        """The arguments of each call, in short."""
        return [", ".join(map(_in_short, arguments)) for arguments in self.calls]

    def compiled(self) -> int:
        """How many graphs TorchDynamo makes of these calls."""
        graphs = 0

        def backend(module: torch.fx.GraphModule, inputs: Any) -> Any:
            nonlocal graphs
            graphs += 1
            return module.forward

        torch.compiler.reset()
        fast = torch.compile(self.function, backend=backend)
        for arguments in self.calls:
            fast(*arguments)
        torch.compiler.reset()
        return graphs


def _in_short(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return str(value)
    shape = "x".join(map(str, value.shape))
    more = "" if value.is_contiguous() else ".t()"
    return f"{str(value.dtype)[6:]} {shape}{more}{' grad' if value.requires_grad else ''}"


def scaled(x: torch.Tensor, n: int | float) -> torch.Tensor:
    return x * n


def branched(x: torch.Tensor, flag: bool) -> torch.Tensor:
    return x.sin() if flag else x.cos()


def printed(x: torch.Tensor, n: int) -> torch.Tensor:
    y = x.sin()
    print(end="")
    return y.cos() * n


_TWO, _THREE, _FOUR = torch.ones(2, 4), torch.ones(3, 4), torch.ones(4, 4)

SECONDS = (
    Calls("other_data", scaled, ((_TWO, 2), (_TWO + 1, 2))),
    Calls("other_dtype", scaled, ((_TWO, 2), (_TWO.double(), 2))),
    Calls("other_size", scaled, ((_TWO, 2), (_THREE, 2))),
    Calls("other_flag", branched, ((_TWO, True), (_TWO, False))),
    Calls("other_layout", scaled, ((_FOUR, 2), (_FOUR.t(), 2))),
    Calls("needs_gradient", scaled, ((_TWO, 2), (_TWO.clone().requires_grad_(), 2))),
)
"""Two calls each: does what was compiled for the first serve the second?"""

SERIES = (
    Calls("sizes", scaled, ((_TWO, 2), (_THREE, 2), (_FOUR, 2), (torch.ones(5, 4), 2))),
    Calls("flags", branched, ((_TWO, True), (_TWO, False), (_TWO, True), (_TWO, False))),
    Calls("broken", printed, ((_TWO, 2), (_TWO, 2))),
    Calls("numbers", scaled, ((_TWO, 2), (_TWO, 3), (_TWO, 4), (_TWO, 5))),
)
"""Several calls each: how many graphs are compiled?"""


@exercise("12.3", "Guards, before running", "先猜守卫", points=2, limit=120.0)
class Served(Exercise):
    """`served()`: for each pair of calls, whether the second one's guards hold."""

    def cases(self, draw: random.Random) -> Iterator[Any]:
        yield SECONDS

    def told(self, case: Any) -> str:
        return ", ".join(each.name for each in case)

    def judge(self, solution: Any, case: tuple[Calls, ...]) -> str | None:
        found = solution()
        if not isinstance(found, dict):
            return expected(dict, found)
        unsaid = [each.name for each in case if not isinstance(found.get(each.name), bool)]
        if unsaid:
            return say("True or False for {n}?", n=", ".join(unsaid))
        right = sum(found[each.name] == (each.compiled() == 1) for each in case)
        if right == len(case):
            return None
        return say("{a} of {b} are right", a=right, b=len(case))

    def picture(self, solution: Any, case: tuple[Calls, ...]) -> Picture:
        """The pairs of calls, what the solution says of each, and how many of that are right."""
        found = solution()
        right = sum(found[each.name] == (each.compiled() == 1) for each in case)
        rows = []
        for each in case:
            verdict = say("serves") if found[each.name] else say("compiles again")
            rows.append((each.name, [*((text, False) for text in each.told()), (verdict, False)]))
        score = [("✓", False)] * right + [("–", True)] * (len(case) - right)
        title = say("first call, second call, what you say; below, how many are right")
        named = say("{a} of {b} are right", a=right, b=len(case))
        return marked(title, [*rows, (named, score[:3]), ("", score[3:])])


@exercise("12.4", "Recompiles, before running", "先猜重新编译", points=2, limit=120.0)
class Recompiled(_Foretold):
    """`graphs()`: how many graphs each series of calls compiles."""

    programs = SERIES

    def told(self, case: Any) -> str:
        return str(case.name)

    def truth(self, case: Any) -> int:
        return int(case.compiled())

    def most(self, case: Any) -> int:
        return 2 * len(case.calls)

    def above(self, case: Any) -> list[Row]:
        return [(f"{say('call {n}', n=n)}: {text}", []) for n, text in enumerate(case.told())]


# ---- a rule that pays ----------------------------------------------------------------------------


def pooled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.tanh((x @ w).mean(0))


def over_columns(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.tanh((x @ w).mean(1))


def squashed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ w).mean(0)


def kept(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).mean(0, keepdim=True) + 1


POOLING = (pooled, over_columns, squashed, kept)
"""Programs of x [128, 32] and w [32, 48]; the rule applies to the first, and may to the last."""


class Edits:
    """`add(operator, *arguments)`: a new node, which knows its own shape."""

    def __init__(self, edit: Edit) -> None:
        self._edit = edit

    def add(self, target: Any, *args: Any) -> torch.fx.Node:
        """Add the node; raises what the operator raises for such arguments."""
        new = self._edit.add(target, *args)
        new.meta["val"] = target(*torch.fx.map_arg(args, lambda node: node.meta["val"]))
        return new


def with_rule(rule: Callable[..., Any], function: Callable[..., Any], *args: Any) -> Any:
    """Compile with one more rewrite rule, which is asked for each mean."""

    def mean_first(node: torch.fx.Node, edit: Edit) -> Any:
        return rule(node, Edits(edit))

    with override(rewrite={name: RULES[name] for name in RULES}):
        identity(aten.mean.dim)(mean_first)
        return inspect(function, *args)


def _tokens() -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(128, 32, generator=draw), torch.randn(32, 48, generator=draw)


@exercise("12.5", "A rule that pays", "一条划算的改写规则", points=4, limit=120.0)
class Pays(Exercise):
    """`rule(node, edit)`: the mean over rows goes before the product; None for any other mean."""

    def cases(self, draw: random.Random) -> Iterator[Any]:
        return iter(POOLING)

    def told(self, case: Any) -> str:
        return str(case.__name__)

    def judge(self, solution: Any, case: Any) -> str | None:
        x, w = _tokens()
        found = with_rule(solution, case, x, w)
        wanted = case(x, w)
        if found.result.shape != wanted.shape:
            return say(
                "with your rule the result is {a}, it should be {b}",
                a=tuple(found.result.shape), b=tuple(wanted.shape),
            )  # fmt: skip
        if not torch.allclose(found.result, wanted, rtol=1e-4, atol=1e-5):
            return say("with your rule the result is wrong")
        if case is not pooled:
            return None
        before, after = inspect(case, x, w).after.bytes, found.after.bytes
        if after < before * 2 / 3:
            return None
        return say(
            "right, but it does not pay: {a:,} bytes, without the rule {b:,}",
            a=after, b=before,
        )  # fmt: skip

    def picture(self, solution: Any, case: Any) -> Picture:
        """The numbers where they are wrong, else the bytes."""
        x, w = _tokens()
        found, wanted = with_rule(solution, case, x, w), case(x, w)
        result = found.result
        if result.shape != wanted.shape:
            return lines(say("sizes of the result"), wanted.shape, result.shape)
        if not torch.allclose(result, wanted, rtol=1e-4, atol=1e-5):
            return lines(say("the result"), wanted.flatten().tolist(), result.flatten().tolist())
        before = int(inspect(case, x, w).after.bytes)
        return numbers(say("bytes moved"), [
            (say("without the rule"), before), (say("enough"), before * 2 // 3),
            (say("with your rule"), int(found.after.bytes)),
        ], " B")  # fmt: skip


# ---- programs drawn from a name ------------------------------------------------------------------


@exercise("12.6", "Three programs of your own", "为你抽出的三个程序", points=3, limit=120.0)
class OfYourOwn(Exercise):
    """`mine()`: (name, [kernels of each program that the name draws])."""

    def cases(self, draw: random.Random) -> Iterator[int]:
        return iter(range(HOW_MANY))

    def told(self, case: int) -> str:
        return f"program_{case}"

    def judge(self, solution: Any, case: int) -> str | None:
        found = solution()
        if not isinstance(found, tuple) or len(found) != 2:
            return expected(tuple, found) or say("it should be (name, numbers)")  # fmt: skip
        name, numbers = found
        if not isinstance(name, str) or not name.strip():
            return say("a name is wanted, it draws the programs")
        if not isinstance(numbers, (list, tuple)) or len(numbers) != HOW_MANY:
            return say("a number for each of the {n} programs", n=HOW_MANY)  # fmt: skip
        compiled = inspect(drawn(name)[case].function(), *_pair())
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
        compiled = inspect(drawn(name)[case].function(), *_pair())
        return still_possible(int(said[case]), None, int(compiled.before.kernels), 1)
