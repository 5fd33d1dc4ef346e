"""Lab 3, the joint graph: gradients, what the backward needs, what is enough, the minimum cut."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from inductor_lab.compiler.autograd.forward_value import ForwardValue
from inductor_lab.compiler.autograd.mincut import Pipe, cheapest_cut
from inductor_lab.course.exercise import Exercise, exercise, expected
from inductor_lab.course.labs.wrong_values import marked, short
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Picture

Node = tuple[str, str, Any, Any]
"""(name, op, left, right): op is +, - or *; an operand is a name or a number."""

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


@dataclass(frozen=True)
class Tape:
    """A recorded function of a and b, as in lab 1, and values for its arguments."""

    nodes: tuple[Node, ...]
    arguments: dict[str, int]

    @property
    def result(self) -> str:
        return self.nodes[-1][0]

    def __str__(self) -> str:
        lines = [f"{name} = {left} {op} {right}" for name, op, left, right in self.nodes]
        given = ", ".join(f"{name}={value}" for name, value in self.arguments.items())
        return "\n".join([*lines, f"return {self.result}      {given}"])

    def every_gradient(self) -> tuple[dict[str, float], dict[str, int]]:
        """By name: the derivative of the result by each value, and the values."""
        values: dict[str, Any] = dict(self.arguments)
        for name, op, left, right in self.nodes:
            values[name] = OPERATIONS[op](values.get(left, left), values.get(right, right))
        by = dict.fromkeys(values, 0)
        by[self.result] = 1
        for name, op, left, right in reversed(self.nodes):
            one, other = (values[v] if isinstance(v, str) else v for v in (left, right))
            for side, slope in ((left, other if op == "*" else 1),
                                (right, one if op == "*" else -1 if op == "-" else 1)):  # fmt: skip
                if isinstance(side, str):
                    by[side] += by[name] * slope
        return dict(by), values


class _OnTapes(Exercise):
    def cases(self, draw: random.Random) -> Iterator[Tape]:
        for n in range(80):
            known: list[str] = ["a", "b"]
            nodes: list[Node] = []
            for k in range(1 + n // 16):
                right = draw.randint(2, 5) if draw.random() < 0.2 else draw.choice(known[-4:])
                nodes.append((f"v{k}", draw.choice("+-**"), draw.choice(known[-3:]), right))
                known.append(f"v{k}")
            yield Tape(tuple(nodes), {"a": draw.randint(-5, 5), "b": draw.randint(-5, 5)})

    def smaller(self, case: Tape) -> Iterable[Tape]:
        for n in range(len(case.nodes)):
            gone, rest = case.nodes[n][0], case.nodes[:n] + case.nodes[n + 1 :]
            if rest:
                yield replace(case, nodes=tuple(
                    (name, op, *("a" if side == gone else side for side in sides))  # type: ignore[misc]
                    for name, op, *sides in rest))  # fmt: skip


@exercise("3.1", "Gradients, backwards", "反向求导", points=3)
class Gradients(_OnTapes):
    """`gradients(nodes, values)`: the derivative of the last node by "a" and by "b"."""

    def judge(self, solution: Any, case: Tape) -> str | None:
        values: dict[str, Any] = dict(case.arguments)
        for name, op, left, right in case.nodes:
            values[name] = OPERATIONS[op](values.get(left, left), values.get(right, right))
        found = solution(list(case.nodes), values)
        wrong = expected(dict, found)
        if wrong:
            return wrong
        by, _ = case.every_gradient()
        for name in case.arguments:
            wanted = by[name]
            if found.get(name, 0) != wanted:
                return say(
                    "the derivative with respect to {n} is {a}; your answer: {b}",
                    n=name, a=wanted, b=found.get(name, 0),
                )  # fmt: skip
        return None

    def picture(self, solution: Any, case: Tape) -> Picture:
        by, values = case.every_gradient()
        rows = [(name, [(str(values[name]), False), (short(by[name]), False)]) for name in values]
        title = say("values, and the derivative of the result with respect to each")  # fmt: skip
        return marked(title, rows)


@exercise("3.2", "What the backward needs", "反向需要哪些值", points=2)
class Needed(_OnTapes):
    """`needed(nodes)`: names of the values that the gradients of all nodes read."""

    def judge(self, solution: Any, case: Tape) -> str | None:
        found = solution(list(case.nodes))
        wrong = expected((set, list, tuple, frozenset), found)
        if wrong:
            return wrong
        wanted = _read_by_gradients(case)
        if extra := set(found) - wanted:
            return say("{e}: no derivative reads it", e=_listed(extra))
        if missing := wanted - set(found):
            return say("a derivative reads {m}, which your answer leaves out", m=_listed(missing))
        return None

    def picture(self, solution: Any, case: Tape) -> Picture:
        right, mine = _read_by_gradients(case), set(solution(list(case.nodes)))
        read, not_read = say("to be read"), say("not to be read")
        rows = [
            (name, [(read if name in right else not_read, False),
                    (read if name in mine else not_read, (name in right) != (name in mine))])
            for name in (*case.arguments, *(node[0] for node in case.nodes))
        ]  # fmt: skip
        title = say("whether the derivatives read it: right, and yours")
        return marked(title, rows)


def _read_by_gradients(tape: Tape) -> set[str]:
    """d(l * r) = dl * r + l * dr: the other factor, where the one depends on an argument."""
    wanted: set[str] = set()
    for _, op, left, right in tape.nodes:
        if op == "*":
            wanted |= {
                one for one, other in ((left, right), (right, left)) if isinstance(other, str)
            }
    return {name for name in wanted if isinstance(name, str)}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names, key=lambda name: (len(name), name)))


@dataclass(frozen=True)
class Forward:
    """The values of a forward, and which of them are saved."""

    values: tuple[ForwardValue, ...]
    saved: frozenset[str] = frozenset()

    def __str__(self) -> str:
        lines = []
        for v in self.values:
            facts = {
                say("input"): v.is_input,
                say("cannot be recomputed"): not v.repeatable and not v.is_input,
                say("the backward needs it"): v.needed,
                say("saved"): v.name in self.saved,
            }
            marks = [word for word, holds in facts.items() if holds]
            made = f" = f({', '.join(v.inputs)})" if v.inputs else ""
            lines.append(f"{v.name}{made}: {', '.join((f'{v.nbytes} B', *marks))}")
        return "\n".join(lines)


def _forward(draw: random.Random, count: int) -> Forward:
    values = [ForwardValue("x", "input", (), 8, 0, False, False, True)]
    for n in range(count):
        inputs = tuple(dict.fromkeys(draw.choice(values[-3:]).name for _ in range(2)))
        size = draw.choice([1, 2, 4, 8])
        random_op = draw.random() < 0.2
        values.append(ForwardValue(f"v{n}", "rand" if random_op else "f", inputs, size, 1,
                                   not random_op, draw.random() < 0.5, False))  # fmt: skip
    saved = frozenset(v.name for v in values[1:] if draw.random() < 0.4)
    return Forward(tuple(values), saved)


class _OnForwards(Exercise):
    def cases(self, draw: random.Random) -> Iterator[Forward]:
        for n in range(100):
            yield _forward(draw, 1 + n // 12)

    def smaller(self, case: Forward) -> Iterable[Forward]:
        for gone in case.values[1:]:
            rest = tuple(
                replace(
                    v, inputs=tuple(dict.fromkeys("x" if n == gone.name else n for n in v.inputs))
                )
                for v in case.values
                if v is not gone
            )
            if len(rest) > 1:
                yield Forward(rest, case.saved - {gone.name})

    def saved_by(self, solution: Any, case: Forward) -> Iterable[str]:
        """What the picture takes for saved."""
        return case.saved

    def picture(self, solution: Any, case: Forward) -> Picture:
        """Each value: saved, recomputed from the others, or not computable."""
        saved = set(self.saved_by(solution, case))
        have, rows = set(saved), list[tuple[str, list[tuple[str, bool]]]]()
        for v in case.values:
            if v.is_input or (v.repeatable and set(v.inputs) <= have):
                have.add(v.name)
            how = (say("saved") if v.name in saved else say("input")
                   if v.is_input else say("recomputed") if v.name in have else "")  # fmt: skip
            need = say("needed") if v.needed else ""
            rows.append((f"{v.name} ({v.nbytes} B)",
                         [(how, False), (need, v.needed and v.name not in have)]))  # fmt: skip
        return marked(say("what the backward can compute"), rows)


def missing_from(values: Iterable[ForwardValue], saved: Iterable[str]) -> str | None:
    """A value that the backward needs and that can be had neither from what is saved nor from the
    inputs; None if all can."""
    known, have = {v.name: v for v in values}, set(saved)
    for value in known.values():
        if value.is_input or (value.repeatable and set(value.inputs) <= have):
            have.add(value.name)
    return next((v.name for v in known.values() if v.needed and v.name not in have), None)


@exercise("3.3", "Is it enough?", "够不够？", points=2)
class Enough(_OnForwards):
    """`enough(values, saved)`: can the backward compute all values that it needs?"""

    def judge(self, solution: Any, case: Forward) -> str | None:
        found = solution(list(case.values), set(case.saved))
        wrong = expected(bool, found)
        missing = missing_from(case.values, case.saved)
        if wrong or found == (missing is None):
            return wrong
        if missing is None:
            return say("it is enough; your answer is that it is not")
        return say("your answer is that it is enough, but {m} cannot be computed", m=missing)


@exercise("3.4", "The minimum cut", "最小割", points=3, limit=60.0)
class Cheapest(_OnForwards):
    """`cheapest(values)`: the names to save that are enough and take the fewest bytes."""

    def described(self, case: Forward) -> str:
        return str(replace(case, saved=frozenset()))

    def judge(self, solution: Any, case: Forward) -> str | None:
        found = solution(list(case.values))
        wrong = expected((set, list, tuple, frozenset), found)
        if wrong:
            return wrong
        sizes = {v.name: 0 if v.is_input else v.nbytes for v in case.values}
        if unknown := set(found) - sizes.keys():
            return say("{u}: no such value", u=_listed(unknown))
        missing = missing_from(case.values, found)
        if missing:
            return say(
                "saving {s} is not enough: {m} cannot be computed",
                s=_listed(found) or "nothing", m=missing,
            )  # fmt: skip
        best = best_cut(case.values)
        mine, least = (sum(sizes[name] for name in names) for names in (found, best))
        if mine == least:
            return None
        return say(
            "you save {s}: {a} bytes; {t} is enough: {b} bytes",
            s=_listed(found), a=mine, b=least, t=_listed(best) or "nothing",
        )  # fmt: skip

    def saved_by(self, solution: Any, case: Forward) -> Iterable[str]:
        found: Iterable[str] = solution(list(case.values))
        return found


def best_cut(values: Iterable[ForwardValue]) -> frozenset[str]:
    """What our own minimum cut saves; inputs are excluded, they are free."""
    listed = list(values)
    inputs = {v.name for v in listed if v.is_input}
    pipes = [
        Pipe(v.name, v.inputs, 1 if v.is_input else 1000 * v.nbytes, not v.repeatable, v.needed)
        for v in listed
    ]
    return (cheapest_cut(pipes) or frozenset()) - inputs
