"""Lab 10, debugging: distances in ULP, bisection, minimal failures, first NaN, seeded bugs."""

from __future__ import annotations

import inspect as sources
import math
import random
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

import torch

from inductor_lab.api.backend import inspect
from inductor_lab.course.exercise import Exercise, exercise, expected, given
from inductor_lab.course.given.debugging import (
    BUGGY,
    Bug,
    Inputs,
    bugs,
)
from inductor_lab.course.labs.wrong_values import lines, marked, numbers
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Picture
from inductor_lab.debug.faults import CATALOGUE
from inductor_lab.debug.untrusted.remote import RemoteFunction


def float32(bits: int) -> float:
    """The float32 with these bits."""
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def _numbered(place: int) -> float:
    """The float32 that is `place` numbers away from zero."""
    return float32(place) if place >= 0 else -float32(-place)


FEW = 8
"""So many steps from a number to another are drawn one by one."""


@dataclass(frozen=True)
class Apart:
    """Two positions in the sequence of all float32 numbers, counted from zero."""

    first: int
    second: int

    @property
    def numbers(self) -> tuple[float, float]:
        return _numbered(self.first), _numbered(self.second)

    def __str__(self) -> str:
        return "a = {!r}, b = {!r}".format(*self.numbers)


@exercise("10.1", "A distance in ULP", "以 ULP 计的距离", points=2)
class Ulps(Exercise):
    """`ulps(a, b)`: the number of steps from one float32 to the next, from a to b."""

    def cases(self, draw: random.Random) -> Iterator[Apart]:
        one, largest = 0x3F800000, 0x7F7FFFFF
        yield from (Apart(one, one), Apart(one, one + 1), Apart(one, one - 1), Apart(0, 1))
        yield from (Apart(-1, 1), Apart(-one, -one - 3), Apart(-one, one), Apart(0, -one))
        for _ in range(60):
            first = draw.randint(-largest + 2000, largest - 2000)
            yield Apart(first, first + draw.randint(-1000, 1000))

    def judge(self, solution: Any, case: Apart) -> str | None:
        found = solution(*case.numbers)
        wanted = abs(case.first - case.second)
        if isinstance(found, bool) or not isinstance(found, int):
            return expected(int, found)
        if found == wanted:
            return None
        return say("they are {a} steps apart; your answer: {b}", a=wanted, b=found)  # fmt: skip

    def picture(self, solution: Any, case: Apart) -> Picture:
        """The numbers between them if they are few, else their count."""
        low, high = sorted((case.first, case.second))
        mine = int(solution(*case.numbers))
        if high - low > FEW:
            title = say("steps from one float32 to the next")
            return numbers(title, [(say("right"), high - low), (say("you"), mine)])
        way = [_numbered(place) for place in range(low, high + 1)]
        rows = [(repr(number), [(str(n), False)]) for n, number in enumerate(way)]
        return marked(say("all float32 numbers between them, and the steps"),
                      [*rows, (say("you"), [(str(mine), True)])])  # fmt: skip


@dataclass(frozen=True)
class Stages:
    """The number of stages, and the first that is wrong; None if all are right."""

    count: int
    first: int | None

    def __str__(self) -> str:
        if self.first is None:
            return say("stages: {n}; none is wrong", n=self.count)
        return say("stages: {n}; the first wrong one: {first}", n=self.count, first=self.first)


@exercise("10.2", "The first wrong stage", "第一个出错的阶段", points=2)
class FirstWrong(Exercise):
    """`first_wrong(count, wrong)`: bisection; after the first wrong stage, all are wrong."""

    def cases(self, draw: random.Random) -> Iterator[Stages]:
        for count in (1, 2, 3, 4, 7, 8, 33):
            yield from (Stages(count, first) for first in (None, *range(count)))

    def judge(self, solution: Any, case: Stages) -> str | None:
        asked: list[int] = []

        def wrong(stage: int) -> bool:
            asked.append(stage)
            if not 0 <= stage < case.count:
                raise IndexError(f"there is no stage {stage}")
            return case.first is not None and stage >= case.first

        found = solution(case.count, wrong)
        if wrong_type := expected((int, NoneType), found):
            return wrong_type
        if found != case.first:
            return say("your answer is {f!r} after running {a}", f=found, a=asked)  # fmt: skip
        enough = math.ceil(math.log2(case.count + 1))
        if len(asked) <= enough:
            return None
        return say(
            "right, but you ran {a} stages; {b} are enough",
            a=len(asked), b=enough,
        )  # fmt: skip

    def picture(self, solution: Any, case: Stages) -> Picture:
        """The stages, and which of them were run, in which order."""
        asked: list[int] = []

        def wrong(stage: int) -> bool:
            asked.append(stage)
            return case.first is not None and stage >= case.first

        found = solution(case.count, wrong)
        stages = range(case.count)
        runs = [[n for n, at in enumerate(asked, 1) if at == stage] for stage in stages]
        enough = math.ceil(math.log2(case.count + 1))
        title = say("stages, a cross: wrong; then your runs in order, a cross: not necessary")
        return marked(title, [
            (say("stage"), [(str(at), case.first is not None and at >= case.first)
                            for at in stages]),
            (say("run"), [(",".join(map(str, each)), max(each, default=0) > enough)
                          for each in runs]),
            (say("your answer"), [(str(found), found != case.first)]),
        ])  # fmt: skip


@dataclass(frozen=True)
class Failing:
    """A program of some nodes, which fails as long as certain ones are in it."""

    nodes: tuple[str, ...]
    needed: frozenset[str]

    def __str__(self) -> str:
        return say(
            "nodes {n}; it fails with {needed}",
            n=" ".join(self.nodes), needed=" ".join(sorted(self.needed)),
        )  # fmt: skip


@exercise("10.3", "Small enough to read", "小到一眼看完", points=2)
class Smallest(Exercise):
    """`smallest(nodes, fails)`: nodes that still fail; no single one can be removed."""

    def cases(self, draw: random.Random) -> Iterator[Failing]:
        for n in range(60):
            nodes = tuple(f"n{k}" for k in range(1 + n // 3))
            count = draw.randint(1, min(4, len(nodes)))
            yield Failing(nodes, frozenset(draw.sample(nodes, count)))

    def smaller(self, case: Failing) -> Iterable[Failing]:
        for name in case.nodes:
            rest = tuple(n for n in case.nodes if n != name)
            if case.needed - {name}:
                yield Failing(rest, case.needed - {name})

    def judge(self, solution: Any, case: Failing) -> str | None:
        runs = 0

        def fails(nodes: Iterable[str]) -> bool:
            nonlocal runs
            runs += 1
            return case.needed <= set(nodes)

        found = solution(list(case.nodes), fails)
        if not isinstance(found, list):
            return expected(list, found)
        if not case.needed <= set(found):
            return say("{f} does not fail", f=found)
        spare = [name for name in found if name not in case.needed]
        if spare:
            return say("{f} fails without {s} too", f=found, s=spare[0])
        if runs <= 2 * len(case.nodes) + 2:
            return None
        return say(
            "right, but it took {r} runs of {n} nodes",
            r=runs, n=len(case.nodes),
        )  # fmt: skip

    def picture(self, solution: Any, case: Failing) -> Picture:
        found = set(solution(list(case.nodes), lambda nodes: case.needed <= set(nodes)))
        return marked(say("a cross: a node that is not needed, or is missing"), [
            (say("must stay"), [(n if n in case.needed else "", False) for n in case.nodes]),
            (say("you"), [(n if n in found else "–", (n in found) != (n in case.needed))
                          for n in case.nodes]),
        ])  # fmt: skip


@dataclass(frozen=True)
class Values:
    """Nodes in order, what each reads, and what each is; "x" and "y" are inputs."""

    reads: dict[str, tuple[str, ...]]
    values: dict[str, float]

    def __str__(self) -> str:
        rows = [f"{n}({', '.join(reads)}) = {self.values[n]}" for n, reads in self.reads.items()]
        return "\n".join(rows)

    @property
    def born(self) -> list[str]:
        """The nodes that are NaN though nothing that they read is."""
        bad = {name for name, value in self.values.items() if math.isnan(value)}
        return [name for name in self.reads if name in bad and not bad & set(self.reads[name])]


OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fmax": lambda a, b: b if math.isnan(a) else a if math.isnan(b) else max(a, b),
}


@exercise("10.4", "Where does a NaN first appear?", "NaN 最先出现在哪里", points=1)
class FirstNan(Exercise):
    """`born(reads, values)`: the nodes that are NaN although none of their inputs is NaN."""

    def cases(self, draw: random.Random) -> Iterator[Values]:
        infinity = float("inf")
        for n in range(80):
            values = {"x": draw.choice([0.0, infinity, 1.0]), "y": draw.choice([0.0, infinity])}
            reads: dict[str, tuple[str, ...]] = {"x": (), "y": ()}
            for k in range(1 + n // 8):
                name = f"{draw.choice(list(OPERATIONS))}_{k}"
                reads[name] = tuple(draw.choice(list(values)) for _ in range(2))
                one, other = (values[read] for read in reads[name])
                values[name] = OPERATIONS[name.partition("_")[0]](one, other)
            yield Values(reads, values)

    def judge(self, solution: Any, case: Values) -> str | None:
        found = solution(*given(case.reads, case.values))
        if not isinstance(found, list):
            return expected(list, found)
        born = case.born
        if sorted(found) == sorted(born):
            return None
        return say("first NaN: {a}; your answer: {b}", a=born, b=found)

    def picture(self, solution: Any, case: Values) -> Picture:
        """A line for each node: its inputs, its value, and the solution's answer."""
        found, rows = solution(*given(case.reads, case.values)), []
        for name, reads in case.reads.items():
            says = (name in found, name in case.born)
            line = [(f"{read}={case.values[read]:g}", False) for read in reads]
            line += [("", False)] * (2 - len(line)) + [(f"→ {case.values[name]:g}", False)]
            said = say("first appears here") if says[0] else "–"
            rows.append((name, [*line, (said, says[0] != says[1])]))
        return marked(
            say("what each node reads, and its value; a cross: your answer differs"), rows
        )


# ---- seeded bugs ---------------------------------------------------------------------------------


STAGES = (
    *("guards", "joint", "partition", "decomposed", "rewrite: identities", "loops", "schedule"),
    *("loop tree: build", "loop tree: registers", "kernel", "host program"),
)
"""Where the catalogue plants its faults, in the order of the pipeline."""


class _OfBugs(Exercise):
    """A solution returns a name and one answer for each bug; a case is the number of a bug."""

    def cases(self, draw: random.Random) -> Iterator[int]:
        return iter(range(len(BUGGY)))

    def described(self, case: int) -> str:
        return say("bug {n}", n=case)

    def judge(self, solution: Any, case: int) -> str | None:
        found = solution()
        if not (isinstance(found, tuple) and len(found) == 2):
            return expected(tuple, found) or say("it should return (name, answers)")
        name, answers = found
        if not isinstance(answers, list) or len(answers) != len(BUGGY):
            return say("the answers should be a list of {n}, one for each bug", n=len(BUGGY))
        return self.answered(bugs(str(name))[case], answers[case])

    def answered(self, bug: Bug, said: Any) -> str | None:
        """What is wrong with the answer to one bug."""
        raise NotImplementedError


@exercise("10.5", "Seeded bugs, by blame", "用 blame 找出注入的错误", points=3, limit=60.0)
class ByBlame(_OfBugs):
    """`findings()`: the student's name, and for each bug the stage, and the line of the program."""

    def answered(self, bug: Bug, said: Any) -> str | None:
        if not (isinstance(said, tuple) and [type(part) for part in said] == [str, str]):
            return say("each answer is (stage, line), both text")
        stage, line = said
        if stage.strip() != CATALOGUE[bug.fault].stage:
            return say(
                "{s!r} is not the first stage that is wrong; what does lab.blame report inside "
                "`with bug.planted():`?",
                s=stage,
            )
        if bug.line not in line:
            return say("the stage is right, but the wrong value is not computed in {s!r}", s=line)
        return None

    def picture(self, solution: Any, case: int) -> Picture:
        """The stages in order, or the lines of the program: the one in the answer is crossed."""
        name, answers = solution()
        bug, (stage, line) = bugs(str(name))[case], answers[case]
        if stage.strip() != CATALOGUE[bug.fault].stage:
            return marked(say("stages in order; a cross: not the first that is wrong"), [
                ("", [(each, each == stage.strip())]) for each in STAGES
            ])  # fmt: skip
        text = sources.getsource(bug.function).strip().splitlines()
        return marked(say("a cross: the wrong value is not computed here"), [
            ("", [(each.strip(), line.strip() in each)]) for each in text
        ])  # fmt: skip


def _called(function: Callable[..., Any], inputs: Inputs) -> list[torch.Tensor]:
    """Results, and the arguments after the call."""
    if isinstance(function, RemoteFunction):
        result, mine = function.with_arguments(*inputs)
    else:
        mine = [value.clone() for value in inputs]
        result = function(*mine)
    return [*(result if isinstance(result, tuple) else (result,)), *mine]


def _differ(one: Sequence[Any], other: Sequence[Any]) -> tuple[int, Any, Any] | None:
    """The first value that differs, as (which one, here, there)."""
    for place, (a, b) in enumerate(zip(one, other, strict=True)):
        if not isinstance(b, torch.Tensor) or a.shape != b.shape:
            return place, tuple(a.shape), getattr(b, "shape", b)
        near = 1e-4 if a.is_floating_point() else 0.0
        off = ~torch.isclose(a.double(), b.double(), rtol=near, atol=near)
        if off.any():
            return place, a[off][0].item(), b[off][0].item()
    return None


@exercise("10.6", "Explain the seeded bugs", "解释注入的错误", points=4, limit=120.0)
class ByEye(_OfBugs):
    """`models()`: one's name, and for each bug a function in torch that computes what the faulty
    code computes."""

    def answered(self, bug: Bug, said: Any) -> str | None:
        for seed, wrong in enumerate(_faulty(bug), 1):
            mine = _called(said, bug.inputs(seed))
            if len(mine) != len(wrong):
                return say("it should return as many values as {f}", f=bug.function.__name__)
            differs = _differ(wrong, mine)
            if differs is None:
                continue
            if _differ(_called(bug.function, bug.inputs(seed)), mine) is None:
                return say(
                    "this is what the program should compute: what does it compute with the bug?",
                )
            return say(
                "for bug.inputs({s}) the faulty code computes {a}, and your model computes {b} "
                "(value {p} of results and arguments)",
                s=seed, a=differs[1], b=differs[2], p=differs[0],
            )  # fmt: skip
        return None

    def picture(self, solution: Any, case: int) -> Picture | None:
        """The value that differs, from the first element that does on."""
        name, answers = solution()
        bug = bugs(str(name))[case]
        for seed, wrong in enumerate(_faulty(bug), 1):
            mine = _called(answers[case], bug.inputs(seed))
            differs = _differ(wrong, mine)
            if differs is not None:
                a, b = wrong[differs[0]].double().flatten(), mine[differs[0]].double().flatten()
                off = (~torch.isclose(a, b, rtol=1e-4, atol=1e-4)).nonzero()
                part = slice(int(off[0]), int(off[0]) + FEW)
                title = say("from the first value that differs")
                return lines(title, a[part].tolist(), b[part].tolist(), say("faulty code"))
        return None


def _faulty(bug: Bug) -> list[list[torch.Tensor]]:
    """What the faulty code gives for three inputs."""
    with bug.planted():
        compiled = inspect(bug.function, *bug.inputs()).compiled
        return [_called(compiled, bug.inputs(seed)) for seed in range(1, 4)]
