"""Lab 6, C++: a cache, an order in tiles, lanes, shares of threads, tile sizes, a pass."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch

from inductor_lab.api.backend import inspect
from inductor_lab.compiler.codegen.tree.loop_tree import Loop, Store, Tree
from inductor_lab.compiler.codegen.tree.run import run_trees
from inductor_lab.compiler.codegen.tree.text import tree_text
from inductor_lab.compiler.codegen.tree.verify import InvalidTree, verify_tree
from inductor_lab.compiler.codegen.tree.visit import walk
from inductor_lab.compiler.ir.value import Value
from inductor_lab.course.exercise import Exercise, exercise, expected
from inductor_lab.course.given.cpp import (
    ASKED,
    PROGRAMS,
    Nested,
    Place,
    spread,
    transposed_addresses,
    turned,
)
from inductor_lab.course.labs.wrong_values import MOST, marked, matrices, numbers
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Cell, Picture, cells


def hits(addresses: Sequence[int], lines: int, line: int) -> list[bool]:
    """For each access: is its line in a cache of `lines` lines of `line` elements?

    A new line takes the place of the one that was used longest ago (LRU).
    """
    held, found = OrderedDict[int, None](), []
    for address in addresses:
        wanted = address // line
        found.append(wanted in held)
        held[wanted] = None
        held.move_to_end(wanted)
        if len(held) > lines:
            held.popitem(last=False)
    return found


@dataclass(frozen=True)
class Accesses:
    """Addresses in order, and a cache."""

    addresses: tuple[int, ...]
    lines: int
    line: int

    def __str__(self) -> str:
        return f"misses({list(self.addresses)}, lines={self.lines}, line={self.line})"


@exercise("6.1", "A cache", "模拟一个缓存", points=2)
class Cache(Exercise):
    """`misses(addresses, lines, line)`: the number of accesses that are cache misses."""

    def cases(self, draw: random.Random) -> Iterator[Accesses]:
        for n in range(120):
            line, lines = draw.choice([2, 4]), draw.randint(1, 4)
            count, reach = 1 + n // 8, draw.choice([8, 16, 24])
            yield Accesses(tuple(draw.randrange(reach) for _ in range(count)), lines, line)

    def smaller(self, case: Accesses) -> Iterable[Accesses]:
        for n in range(len(case.addresses)):
            yield replace(case, addresses=case.addresses[:n] + case.addresses[n + 1 :])

    def judge(self, solution: Any, case: Accesses) -> str | None:
        found = solution(list(case.addresses), case.lines, case.line)
        wanted = hits(case.addresses, case.lines, case.line).count(False)
        wrong = expected(int, found)
        if wrong or found == wanted:
            return wrong
        return say("cache misses: {a}; your answer: {b}", a=wanted, b=found)  # fmt: skip

    def picture(self, solution: Any, case: Accesses) -> Picture:
        there = hits(case.addresses, case.lines, case.line)
        line: list[Cell] = [
            (f"{a}:{a // case.line}", "output" if hit else "wrong")
            for a, hit in zip(case.addresses, there, strict=True)
        ]
        title = say("address:line; a cross: a cache miss")
        return cells(title, [("", line)])


@dataclass(frozen=True)
class Tiled:
    """A matrix and the sides of a tile."""

    rows: int
    columns: int
    tile: Place

    def __str__(self) -> str:
        return f"tiled({self.rows}, {self.columns}, {self.tile})"


@exercise("6.2", "Tile by tile", "分块访问", points=2)
class TileOrder(Exercise):
    """`tiled(rows, columns, tile)`: all positions (i, j) of a matrix, one tile after the other."""

    def cases(self, draw: random.Random) -> Iterator[Tiled]:
        for n in range(80):
            most = 2 + n // 12
            tile = (draw.randint(1, 4), draw.randint(1, 4))
            yield Tiled(draw.randint(1, most), draw.randint(1, most), tile)

    def smaller(self, case: Tiled) -> Iterable[Tiled]:
        if case.rows > 1:
            yield replace(case, rows=case.rows - 1)
        if case.columns > 1:
            yield replace(case, columns=case.columns - 1)

    def judge(self, solution: Any, case: Tiled) -> str | None:
        found = list(map(tuple, solution(case.rows, case.columns, case.tile)))
        wanted = set(product(range(case.rows), range(case.columns)))
        if outside := sorted(set(found) - wanted):
            return say("{p} is outside of the matrix", p=outside[0])
        if missing := sorted(wanted - set(found)):
            return say("{p} is never visited", p=missing[0])
        if len(found) > len(wanted):
            return say("some positions are visited twice")
        tiles = [(i // case.tile[0], j // case.tile[1]) for i, j in found]
        for n, tile in enumerate(tiles[1:], 1):
            if tile != tiles[n - 1] and tile in tiles[:n]:
                return say("at {p} it returns to a tile that it had left", p=found[n])
        return None

    def picture(self, solution: Any, case: Tiled) -> Picture:
        found = list(map(tuple, solution(case.rows, case.columns, case.tile)))
        order = {place: str(n) for n, place in reversed(list(enumerate(found)))}

        def cell(i: int, j: int) -> Cell:
            tile = (i // case.tile[0] + j // case.tile[1]) % 2
            role = ("bar", "other")[tile] if (i, j) in order else "wrong"
            return order.get((i, j), ""), role

        rows = [(f"i={i}", [cell(i, j) for j in range(case.columns)]) for i in range(case.rows)]
        return cells(say("your order, and the tiles"), rows)


@dataclass(frozen=True)
class Summed:
    """Values to be summed in lanes."""

    values: tuple[int, ...]
    width: int

    def __str__(self) -> str:
        return f"lane_sums({list(self.values)}, width={self.width})"


@exercise("6.3", "A sum in lanes", "用向量 lane 求和", points=2)
class LaneSums(Exercise):
    """`lane_sums(values, width)`: (the accumulator of each lane, the sum of the tail)."""

    def cases(self, draw: random.Random) -> Iterator[Summed]:
        for n in range(80):
            values = tuple(draw.randint(-9, 9) for _ in range(n // 3))
            yield Summed(values, draw.choice([2, 4, 8]))

    def smaller(self, case: Summed) -> Iterable[Summed]:
        if case.values:
            yield replace(case, values=case.values[:-1])
            yield replace(case, values=case.values[1:])

    def judge(self, solution: Any, case: Summed) -> str | None:
        found = solution(list(case.values), case.width)
        wrong = expected(tuple, found)
        if wrong or len(found) != 2:
            return wrong or say("it should return (lanes, tail)")
        whole = len(case.values) // case.width * case.width
        lanes = [sum(case.values[k : whole : case.width]) for k in range(case.width)]
        tail = sum(case.values[whole:])
        if list(found[0]) == lanes and found[1] == tail:
            return None
        return say(
            "the lanes should have {a} and the tail {t}; yours have {b} and {u}",
            a=lanes, t=tail, b=list(found[0]), u=found[1],
        )  # fmt: skip

    def picture(self, solution: Any, case: Summed) -> Picture:
        whole = len(case.values) // case.width * case.width
        heads: list[Cell] = [(f"l{k}", "input") for k in range(case.width)]
        turns = [
            (f"{n}", [(str(v), "box") for v in case.values[n : n + case.width]])
            for n in range(0, whole, case.width)
        ]
        tail = ("", [(str(v), "other") for v in case.values[whole:]])
        return cells(say("each column is a lane; the rest is the tail"),
                     [("", heads), *turns, tail])  # fmt: skip


@dataclass(frozen=True)
class Shared:
    """Iterations of a loop, threads, and the number of elements in a cache line."""

    count: int
    threads: int
    line: int

    def __str__(self) -> str:
        return f"shares({self.count}, threads={self.threads}, line={self.line})"


@exercise("6.4", "Divide iterations among threads", "分给各个线程", points=2)
class Shares(Exercise):
    """`shares(count, threads, line)`: (begin, end) of each thread, no line in two of them."""

    def cases(self, draw: random.Random) -> Iterator[Shared]:
        for n in range(120):
            yield Shared(draw.randint(0, 4 + 2 * n), draw.randint(1, 5), draw.choice([1, 4, 16]))

    def smaller(self, case: Shared) -> Iterable[Shared]:
        yield from (replace(case, count=n) for n in (case.count // 2, case.count - 1) if n >= 0)
        if case.threads > 1:
            yield replace(case, threads=case.threads - 1)

    def judge(self, solution: Any, case: Shared) -> str | None:
        found = [tuple(share) for share in solution(case.count, case.threads, case.line)]
        if len(found) != case.threads:
            return say(
                "there must be {a} shares, one for each thread; your answer has {b}",
                a=case.threads, b=len(found),
            )  # fmt: skip
        reached = 0
        for begin, end in found:
            if begin != reached or end < begin:
                return say(
                    "the share after {r} is {s}: iterations are missing, or run twice",
                    r=reached, s=(begin, end),
                )  # fmt: skip
            reached = end
            if end != case.count and end % case.line:
                return say(
                    "the cache line of iteration {e} is written by two threads: false sharing",
                    e=end,
                )
        if reached != case.count:
            return say("iterations from {r} on are missing", r=reached)
        lines = [-(-(end - begin) // case.line) for begin, end in found]
        if max(lines) - min(lines) <= 1:
            return None
        return say(
            "one thread has {a} lines, another has {b}: the other threads wait for the slowest",
            a=max(lines), b=min(lines),
        )  # fmt: skip

    def picture(self, solution: Any, case: Shared) -> Picture:
        shares, line = list(solution(case.count, case.threads, case.line)), case.line
        there = range(min(-(-case.count // line), MOST))
        takes = [[begin < (k + 1) * line and k * line < end for k in there]
                 for begin, end in shares]  # fmt: skip
        owners = [sum(taken) for taken in zip(*takes, strict=True)]

        def cell(k: int, taken: bool) -> Cell:
            return (str(k), "wrong" if owners[k] > 1 else "bar") if taken else ("", "box")

        rows = [(say("thread {n}", n=n), [*map(cell, there, taken)])
                for n, taken in enumerate(takes)]  # fmt: skip
        if lost := [k for k in there if not owners[k]]:
            unowned = [(str(k), "wrong" if k in lost else "box") for k in there]
            rows.append((say("no thread"), unowned))
        return cells(
            say("cache lines of each thread; a cross: two threads write it, or none"), rows
        )


@dataclass(frozen=True)
class Transposed:
    """`out[i, j] = x[j, i]`: sizes of `out`, and a cache."""

    rows: int
    columns: int
    lines: int
    line: int

    def __str__(self) -> str:
        return f"tile_sizes({self.rows}, {self.columns}, lines={self.lines}, line={self.line})"


def transposed_misses(case: Transposed, tile: Place) -> int:
    """Cache misses of a transposed copy, tile by tile."""
    addresses = transposed_addresses(case.rows, case.columns, tile)
    return hits(addresses, case.lines, case.line).count(False)


def wrong_tile(found: Any) -> str | None:
    """A sentence if an answer is not the two sides of a tile."""
    wrong = expected(tuple, found)
    if wrong:
        return wrong
    if len(found) != 2 or not all(type(side) is int and side > 0 for side in found):
        return say("a tile has two sides, of 1 or more, not {f}", f=found)
    return None


ENOUGH = 1.1
"""Tiles may fetch so many times the lines that the best tiles fetch."""


def fewest(case: Transposed) -> int:
    """Cache misses of the best of some tiles."""
    needed = 2 * case.rows * case.columns // case.line
    best = transposed_misses(case, (1, case.columns))
    for height, power in product((case.line, case.line // 2, 2 * case.line), range(6)):
        if best == needed:
            break
        best = min(best, transposed_misses(case, (height, 2**power)))
    return best


@exercise("6.5", "Your own tile sizes", "自己选分块的大小", points=3, limit=60.0)
class TileSizes(Exercise):
    """`tile_sizes(rows, columns, lines, line)`: the sides of a tile for a transposed copy."""

    def cases(self, draw: random.Random) -> Iterator[Transposed]:
        for n in range(24):
            line, lines = draw.choice([8, 16]), draw.choice([5, 6, 9, 12, 20, 34])
            rows, columns = (line * draw.randint(1, 2 + n // 8) for _ in range(2))
            yield Transposed(rows, columns, lines, line)

    def smaller(self, case: Transposed) -> Iterable[Transposed]:
        for side in ("rows", "columns"):
            if getattr(case, side) > case.line:
                yield replace(case, **{side: getattr(case, side) - case.line})

    def judge(self, solution: Any, case: Transposed) -> str | None:
        found = solution(case.rows, case.columns, case.lines, case.line)
        wrong = wrong_tile(found)
        if wrong:
            return wrong
        fetched, allowed = transposed_misses(case, found), int(ENOUGH * fewest(case))
        if fetched <= allowed:
            return None
        return say(
            "tiles of {t} have {a} cache misses; {m} are allowed, because other tiles have fewer",
            t=found, a=fetched, m=allowed,
        )  # fmt: skip

    def picture(self, solution: Any, case: Transposed) -> Picture:
        found = solution(case.rows, case.columns, case.lines, case.line)
        return numbers(say("cache misses"), [
            (say("allowed"), int(ENOUGH * fewest(case))),
            (say("you"), transposed_misses(case, found)),
        ])  # fmt: skip


# ---- a pass over the real tree ------------------------------------------------------------------


@exercise("6.6", "A pass over the tree", "循环树上的 pass", points=3, limit=90.0)
class Interchange(Exercise):
    """`interchange(tree)`: the loops in an order in which consecutive stores are adjacent."""

    def cases(self, draw: random.Random) -> Iterator[Nested]:
        for size, function, swapped in product((3, 5), (spread, turned), (True, False)):
            yield Nested(function, size, swapped)

    def judge(self, solution: Any, case: Nested) -> str | None:
        schedule, tree, x = case.built()
        made = solution(tree)
        wrong = expected(tuple, made)
        if wrong:
            return wrong
        if not made or not all(isinstance(stmt, Value) for stmt in made):
            return say("a tree is a tuple of statements, not {m!r}", m=made)  # fmt: skip
        try:
            verify_tree(made)
        except InvalidTree as reason:
            return say("that is no legal tree: {r}", r=reason)
        (result,) = run_trees(schedule, lambda group: made, [x])
        if not torch.equal(result, case.function(x)):
            return say("your tree computes something else:\n{t}", t=tree_text(made))  # fmt: skip
        step = stored_step(made)
        if step == 1:
            return None
        return say(
            "stores are still {s} elements apart:\n{t}",
            s=step, t=tree_text(made),
        )  # fmt: skip

    def picture(self, solution: Any, case: Nested) -> Picture:
        """The result where it is wrong; else where each iteration stores."""
        schedule, tree, x = case.built()
        made = solution(tree)
        (result,) = run_trees(schedule, lambda group: made, [x])
        right, side = case.function(x), range(case.size)
        if not torch.equal(result, right):
            return matrices(say("the result"), right, result)
        title = say("iterations of your loops; a cross: stored far from the previous iteration")
        return marked(title, [
            (f"i={i}", [(str(j * case.size + i), j == 0 < i) for j in side]) for i in side
        ])  # fmt: skip


def stored_step(tree: Tree) -> Any:
    """The distance of the stores of two iterations of the innermost loop."""
    inner = [stmt for stmt in walk(tree) if isinstance(stmt, Loop)][-1]
    store = next(stmt for stmt in inner.body if isinstance(stmt, Store))
    return store.index.coefficient(inner.axis)


# ---- predict ------------------------------------------------------------------------------------


def passes_of(name: str) -> set[str]:
    """The passes of the exercise that change a program's kernel."""
    function, size = PROGRAMS[name]
    trees = inspect(function, torch.randn(size, size)).graphs[0].forward.trees
    return {step for tree in trees for step in tree.passes if step in ASKED}


@exercise("6.7", "Predict the passes", "预测哪些 pass 起作用", points=3, limit=120.0)
class Passes(Exercise):
    """`predicted`: for each program the passes that change its kernel."""

    def cases(self, draw: random.Random) -> Iterator[str]:
        return iter(PROGRAMS)

    def judge(self, solution: Any, case: str) -> str | None:
        wrong = expected(dict, solution)
        if wrong or case not in solution:
            return wrong or say("no guess for {c!r}", c=case)
        found, wanted = set(solution[case]), passes_of(case)
        if unknown := found - set(ASKED):
            return say(
                "{u} is not one of {a}",
                u=sorted(unknown)[0], a=", ".join(ASKED),
            )  # fmt: skip
        said = [say("{p} does nothing here", p=name) for name in ASKED if name in found - wanted]
        if wanted - found:
            said.append(say("a pass that changes the kernel is not in your list"))
        return "; ".join(said) or None

    def picture(self, solution: Any, case: str) -> Picture:
        """The list, and which of it is wrong; not which pass is missing."""
        found, wanted = set(solution[case]), passes_of(case)
        listed = [(name, name not in wanted) for name in ASKED if name in found]
        missed = [("?", True)] * len(wanted - found)
        return marked(say("passes that change the kernel"), [
            (say("you"), listed), (say("not in your list"), missed),
        ])  # fmt: skip
