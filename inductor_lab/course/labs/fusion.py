"""Lab 5, fusion: inlining, traffic, legality, an order, a user-defined scheduler."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

from inductor_lab.course.exercise import Exercise, exercise, expected, given
from inductor_lab.course.labs.wrong_values import amounts, marked, matrices
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Picture

Tree: TypeAlias = Any
"""("load", buffer, axes) or (op, left, right)."""

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


@dataclass(frozen=True)
class Nests:
    """A producer `p[axes] = made` and the body of a consumer over i and j that loads it."""

    axes: tuple[str, str]
    made: Tree
    body: Tree

    def __str__(self) -> str:
        return (
            f"p[{', '.join(self.axes)}] = {tree_text(self.made)}\nc[i, j] = {tree_text(self.body)}"
        )


def tree_text(tree: Tree) -> str:
    """`add(x[i, j], p[j, i])`."""
    if tree[0] == "load":
        return f"{tree[1]}[{', '.join(tree[2])}]"
    return f"{tree[0]}({', '.join(map(tree_text, tree[1:]))})"


def value_of(tree: Tree, buffers: dict[str, Any], at: dict[str, int]) -> int:
    """A tree at one point; a buffer is a function of its indices."""
    if tree[0] == "load":
        return int(buffers[tree[1]](*(at[axis] for axis in tree[2])))
    return OPERATIONS[tree[0]](*(value_of(part, buffers, at) for part in tree[1:]))


def _x(i: int, j: int) -> int:
    return 7 * i + 3 * j + 1


@exercise("5.1", "Inlining is substitution", "内联就是代入", points=2)
class Inlining(Exercise):
    """`inline(body, axes, made)`: the body, each load of "p" replaced by its value there."""

    def cases(self, draw: random.Random) -> Iterator[Nests]:
        for n in range(80):
            axes = ("i", "j") if n < 4 else draw.choice([("a", "b"), ("j", "i"), ("i", "j")])
            made = self._tree(draw, axes, ["x"], 1 + n // 40)
            body = self._tree(draw, ("i", "j"), ["p", "p", "x"], n // 25)
            yield Nests(axes, made, body)

    def _tree(
        self, draw: random.Random, axes: tuple[str, str], names: list[str], depth: int
    ) -> Tree:
        if depth == 0:
            place = draw.choice([axes, axes, axes[::-1], (axes[0], axes[0])])
            return ("load", draw.choice(names), place)
        parts = (self._tree(draw, axes, names, depth - 1) for _ in range(2))
        return (draw.choice(list(OPERATIONS)), *parts)

    def smaller(self, case: Nests) -> Iterable[Nests]:
        for part in case.body[1:] if case.body[0] != "load" else ():
            yield replace(case, body=part)
        for part in case.made[1:] if case.made[0] != "load" else ():
            yield replace(case, made=part)

    def judge(self, solution: Any, case: Nests) -> str | None:
        found = solution(case.body, case.axes, case.made)
        wrong = expected(tuple, found)
        if wrong:
            return wrong
        if "p" in _loads(found):
            return say("p is still loaded: {t}", t=tree_text(found))

        def p(*place: int) -> int:
            return value_of(case.made, {"x": _x}, dict(zip(case.axes, place, strict=True)))

        for i, j in product(range(3), repeat=2):
            wanted = value_of(case.body, {"x": _x, "p": p}, {"i": i, "j": j})
            try:
                value = value_of(found, {"x": _x}, {"i": i, "j": j})
            except KeyError as axis:
                return say(
                    "{t} has the axis {a}, which the consumer does not have",
                    t=tree_text(found),
                    a=axis,
                )
            if value != wanted:
                return say(
                    "at i={i}, j={j} it should be {a}; {t} is {b}",
                    i=i, j=j, a=wanted, b=value, t=tree_text(found),
                )  # fmt: skip
        return None

    def picture(self, solution: Any, case: Nests) -> Picture:
        def p(*place: int) -> int:
            return value_of(case.made, {"x": _x}, dict(zip(case.axes, place, strict=True)))

        found = solution(case.body, case.axes, case.made)
        right, mine = (
            [[value_of(tree, {"x": _x, "p": p}, {"i": i, "j": j}) for j in range(3)]
             for i in range(3)]
            for tree in (case.body, found)
        )  # fmt: skip
        return matrices(say("c[i, j], a row for each i"), right, mine)


def _loads(tree: Tree) -> set[str]:
    if tree[0] == "load":
        return {tree[1]}
    return set().union(*map(_loads, tree[1:]))


@dataclass(frozen=True)
class Graph:
    """Nests in order with the buffers that each reads, sizes in bytes, outputs, and groups."""

    reads: dict[str, tuple[str, ...]]
    nbytes: dict[str, int]
    outputs: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}: {size} B" for name, size in self.nbytes.items())
        lines = [say("{name} reads {what}", name=name, what=", ".join(reads))
                 for name, reads in self.reads.items()]  # fmt: skip
        kernels = " | ".join(" ".join(group) for group in self.groups)
        returned = say("returned: {names}", names=", ".join(self.outputs))
        return "\n".join([*lines, sizes, returned, say("kernels: {names}", names=kernels)])


def _graph(draw: random.Random, count: int) -> Graph:
    known, reads = ["x", "y"], dict[str, tuple[str, ...]]()
    for n in range(count):
        reads[f"b{n}"] = tuple(dict.fromkeys(draw.choice(known[-4:]) for _ in range(2)))
        known.append(f"b{n}")
    nbytes = {name: draw.choice([4, 8, 64]) for name in known}
    groups: list[list[str]] = []
    for name in reads:
        if groups and draw.random() < 0.6:
            draw.choice(groups).append(name)
        else:
            groups.append([name])
    used = {name for names in reads.values() for name in names}
    outputs = tuple(name for name in reads if name not in used or draw.random() < 0.15)
    return Graph(reads, nbytes, outputs, tuple(map(tuple, groups)))


class _OnGraphs(Exercise):
    def cases(self, draw: random.Random) -> Iterator[Graph]:
        for n in range(80):
            yield _graph(draw, 1 + n // 10)

    def smaller(self, case: Graph) -> Iterable[Graph]:
        for name in reversed(case.reads):
            reads = {n: tuple("x" if r == name else r for r in rs)
                     for n, rs in case.reads.items() if n != name}  # fmt: skip
            groups = tuple(tuple(n for n in group if n != name) for group in case.groups)
            outputs = tuple(n for n in case.outputs if n != name)
            if reads and outputs:
                yield replace(case, reads={n: tuple(dict.fromkeys(r)) for n, r in reads.items()},
                              groups=tuple(filter(None, groups)), outputs=outputs)  # fmt: skip


def _lists(graph: Graph) -> list[list[str]]:
    return [list(group) for group in graph.groups]


@exercise("5.2", "Count the traffic", "数一数访存量", points=2)
class Traffic(_OnGraphs):
    """`traffic(reads, nbytes, outputs, groups)`: bytes read and written by all kernels."""

    def judge(self, solution: Any, case: Graph) -> str | None:
        found = solution(*given(case.reads, case.nbytes, case.outputs, _lists(case)))
        if not isinstance(found, tuple) or len(found) != 2:
            return expected(tuple, found) or say("it should return (bytes read, bytes written)")
        for what, mine, right in zip(
            (say("read"), say("written")), found, traffic(case), strict=True
        ):
            if mine != right:
                return say("{a} bytes are {w}; your answer: {b}", w=what, a=right, b=mine)
        return None

    def picture(self, solution: Any, case: Graph) -> Picture:
        found = solution(*given(case.reads, case.nbytes, case.outputs, _lists(case)))
        names = say("read, "), say("written, ")
        pairs = list(zip(names, traffic(case), found, strict=True))
        title = say("bytes of all kernels")
        return amounts(title, say("right"), pairs)


def traffic(graph: Graph) -> tuple[int, int]:
    """Bytes read and written: a kernel reads each buffer from outside once, and writes what others
    need."""
    read = written = 0
    for group in graph.groups:
        outside = {name for nest in group for name in graph.reads[nest]} - set(group)
        others = {
            name for nest, names in graph.reads.items() if nest not in group for name in names
        }
        read += sum(graph.nbytes[name] for name in outside)
        written += sum(graph.nbytes[n] for n in group if n in others or n in graph.outputs)
    return read, written


@dataclass(frozen=True)
class _Shared:
    """Axes that both nests share, axes of the consumer alone, and where it loads p[i, j]."""

    shared: tuple[str, ...]
    inner: tuple[str, ...]
    index: tuple[str, str]

    def __str__(self) -> str:
        shared, index = ", ".join(self.shared) or say("nothing"), ", ".join(self.index)
        if not self.inner:
            return say("shared: {axes}; c reads p[{index}]", axes=shared, index=index)
        return say(
            "shared: {axes}; at each point c runs over {inner} and reads p[{index}]",
            axes=shared, inner=", ".join(self.inner), index=index,
        )  # fmt: skip

    def elsewhere(self) -> tuple[dict[str, int], list[int]] | None:
        """A point of the shared axes that reads a value of another point, and the position."""
        size = 3
        for point in product(range(size), repeat=len(self.shared)):
            at = dict(zip(self.shared, point, strict=True))
            for rest in product(range(size), repeat=len(self.inner)):
                values = {**at, **dict(zip(self.inner, rest, strict=True)), "0": 0}
                place = [values[axis] for axis in self.index]
                made = dict(zip(("i", "j"), place, strict=True))
                if any(made[axis] != at[axis] for axis in self.shared):
                    return at, place
        return None


def _place(point: dict[str, int]) -> str:
    return ", ".join(f"{axis}={place}" for axis, place in point.items())


@exercise("5.3", "What must hold", "必须满足的条件", points=2)
class MustHold(Exercise):
    """`refuse(shared, inner, index)`: a reason against one kernel, or None."""

    def cases(self, draw: random.Random) -> Iterator[Any]:
        for shared, inner in (
            (("i", "j"), ()),
            (("i",), ("r",)),
            (("i",), ("j",)),
            ((), ("r", "s")),
        ):
            axes = (*shared, *inner, "0")
            yield from (_Shared(shared, inner, index) for index in product(axes, repeat=2))

    def judge(self, solution: Any, case: _Shared) -> str | None:
        found = solution(case.shared, case.inner, case.index)
        wrong = None if found is None else expected(str, found)
        if wrong:
            return wrong
        elsewhere = case.elsewhere()
        if elsewhere and found is None:
            return say(
                "your answer allows it, but at {p} the kernel reads p{q}, which another point "
                "computes",
                p=_place(elsewhere[0]), q=elsewhere[1],
            )  # fmt: skip
        if not elsewhere and found is not None:
            return say(
                "every point reads only values that it has computed, but your answer refuses "
                "it: {r}", r=found
            )
        return None

    def picture(self, solution: Any, case: _Shared) -> Picture:
        """What one point of the shared axes reads; the one that is refused, if any."""
        elsewhere = case.elsewhere()
        at = elsewhere[0] if elsewhere else dict.fromkeys(case.shared, 1)
        rows = []
        for i in range(3):
            line = []
            for j in range(3):
                made = {"i": i, "j": j}
                read = any(
                    [{**at, **dict(zip(case.inner, rest, strict=True)), "0": 0}[axis]
                     for axis in case.index] == [i, j]
                    for rest in product(range(3), repeat=len(case.inner))
                )  # fmt: skip
                own = all(made[axis] == at[axis] for axis in case.shared)
                line.append((f"p[{i},{j}]" if read else "", read and not own))
            rows.append(("", line))
        title = say("what the point ({p}) reads; a cross: another point computes it", p=_place(at))
        return marked(title, rows)


@exercise("5.4", "An order for the kernels", "给 kernel 排序", points=2)
class InOrder(_OnGraphs):
    """`order(reads, groups)`: the groups so that each runs after what it reads; None if none is."""

    def judge(self, solution: Any, case: Graph) -> str | None:
        found = solution(*given(case.reads, _lists(case)))
        possible = _ordered(case)
        if found is None:
            if possible is None:
                return None
            names = " | ".join(" ".join(group) for group in possible)
            return say("there is an order: {n}", n=names)
        wrong = expected(list, found)
        if wrong:
            return wrong
        if sorted(map(sorted, found)) != sorted(map(sorted, case.groups)):
            return say("these are not the groups that were given")
        ready = {"x", "y"}
        for group in found:
            for name in group:
                for read in case.reads[name]:
                    if read not in ready and read not in group:
                        return say(
                            "{n} reads {r}, which no kernel has computed yet",
                            n=name, r=read,
                        )  # fmt: skip
            ready.update(group)
        return None

    def picture(self, solution: Any, case: Graph) -> Picture:
        found = solution(*given(case.reads, _lists(case)))
        ready, rows = {"x", "y"}, list[tuple[str, list[tuple[str, bool]]]]()
        for n, group in enumerate(found if found is not None else case.groups):
            rows.append((f"kernel {n}", [
                (name, not set(case.reads[name]) <= ready | set(group)) for name in group
            ]))  # fmt: skip
            ready.update(group)
        return marked(
            say("a cross: reads a buffer that no kernel has computed yet"), rows
        )


def _ordered(graph: Graph) -> list[tuple[str, ...]] | None:
    ready, waiting, found = {"x", "y"}, list(graph.groups), list[tuple[str, ...]]()
    while waiting:
        free = [g for g in waiting if all({*graph.reads[n]} <= ready | set(g) for n in g)]
        if not free:
            return None
        found.append(free[0])
        waiting.remove(free[0])
        ready.update(free[0])
    return found
