"""Lab 8, memory: lifetimes, peak, reuse, pages, a pool, roofs, predictions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from inductor_lab.course.exercise import Exercise, exercise, expected
from inductor_lab.course.given.memory import BYTES, schedule_of
from inductor_lab.course.labs.wrong_values import numbers, prediction
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Cell, Picture, cells

Step: TypeAlias = tuple[str, tuple[str, ...]]
"""(the buffer that it makes, the buffers that it reads); "x" is the input."""

Lives: TypeAlias = dict[str, tuple[int, int]]
"""By buffer: the first and the last step in which it is needed."""


def lives_of(steps: tuple[Step, ...], outputs: tuple[str, ...]) -> Lives:
    """Computed in the first step, last read in the last; an output stays alive to the end."""
    found = {name: (at, at) for at, (name, _) in enumerate(steps)}
    for at, (_, reads) in enumerate(steps):
        for name in reads:
            if name in found:
                found[name] = (found[name][0], at)
    end = len(steps)
    return {n: (first, end if n in outputs else last) for n, (first, last) in found.items()}


@dataclass(frozen=True)
class Work:
    """Steps in order, and what is returned."""

    steps: tuple[Step, ...]
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{at}: {name} = f({', '.join(reads)})" for at, (name, reads) in self.numbered()]
        return "\n".join([*lines, f"return {', '.join(self.outputs)}"])

    def numbered(self) -> Iterator[tuple[int, Step]]:
        return iter(enumerate(self.steps))

    @property
    def lives(self) -> Lives:
        return lives_of(self.steps, self.outputs)


def works(draw: random.Random, count: int) -> Iterator[Work]:
    """Random programs, small ones first."""
    for n in range(count):
        known, steps = ["x"], list[Step]()
        for k in range(2 + n // 10):
            near = known[-3:] if draw.random() < 0.7 else known
            steps.append((f"b{k}", tuple(draw.choice(near) for _ in range(draw.randint(1, 2)))))
            known.append(f"b{k}")
        yield Work(tuple(steps), tuple(dict.fromkeys([known[-1], draw.choice(known[1:])])))


class _OnWork(Exercise):
    """Cases are programs of a few steps."""

    def cases(self, draw: random.Random) -> Iterator[Work]:
        return works(draw, 80)

    def smaller(self, case: Work) -> Iterable[Work]:
        for n in range(len(case.steps)):
            gone = case.steps[n][0]
            rest = tuple(
                (name, tuple("x" if r == gone else r for r in reads))
                for name, reads in case.steps[:n] + case.steps[n + 1 :]
            )
            outputs = tuple(name for name in case.outputs if name != gone)
            if rest:
                yield Work(rest, outputs or (rest[-1][0],))


@exercise("8.1", "Lifetimes", "生命周期", points=2)
class Lifetimes(_OnWork):
    """`lifetimes(steps, outputs)`: (first, last) of each buffer."""

    def judge(self, solution: Any, case: Work) -> str | None:
        found = solution(list(case.steps), list(case.outputs))
        wrong = expected(dict, found)
        if wrong:
            return wrong
        for name, life in case.lives.items():
            if name not in found or tuple(found[name]) != life:
                return say(
                    "{n} is alive from step {a} to {b}; your answer: {f}",
                    n=name, a=life[0], b=life[1], f=found.get(name),
                )  # fmt: skip
        extra = [name for name in found if name not in case.lives]
        return say("{n} is no buffer of these steps", n=extra[0]) if extra else None  # fmt: skip

    def picture(self, solution: Any, case: Work) -> Picture:
        return lanes(case, {name: name for name in case.lives})


def lanes(case: Work, slots: dict[str, Any]) -> Picture:
    """A line for each slot: the buffers alive in it at each step; crossed if there are two."""
    rows: list[tuple[str, list[Cell]]] = []
    for slot in dict.fromkeys(slots.values()):
        line: list[Cell] = []
        for at in range(len(case.steps) + 1):
            here = [n for n, s in slots.items() if s == slot and n in case.lives
                    and case.lives[n][0] <= at <= case.lives[n][1]]  # fmt: skip
            role = "wrong" if len(here) > 1 else "bar" if here else "box"
            line.append(("+".join(here), role))
        rows.append((str(slot), line))
    return cells(say("lifetimes and slots, step by step"), rows)


@exercise("8.2", "The peak", "峰值", points=1)
class Peak(_OnWork):
    """`peak(lives, nbytes)`: the largest number of bytes that are alive in one step."""

    def judge(self, solution: Any, case: Work) -> str | None:
        nbytes = {name: 4 * (1 + at % 3) for at, name in enumerate(case.lives)}
        found = solution(dict(case.lives), dict(nbytes))
        wanted = max(
            sum(nbytes[n] for n, (first, last) in case.lives.items() if first <= at <= last)
            for at in range(len(case.steps) + 1)
        )
        wrong = expected(int, found)
        if wrong or found == wanted:
            return wrong
        return say(
            "with {s} the peak is {a} bytes; your answer: {b}",
            s=nbytes, a=wanted, b=found,
        )  # fmt: skip

    def picture(self, solution: Any, case: Work) -> Picture:
        return lanes(case, {name: name for name in case.lives})


@exercise("8.3", "Reuse", "复用", points=3)
class Reuse(_OnWork):
    """`slots(lives)`: a slot for each buffer, as few as possible, no two alive in one."""

    def judge(self, solution: Any, case: Work) -> str | None:
        found = solution(dict(case.lives))
        wrong = expected(dict, found)
        if wrong:
            return wrong
        homeless = [name for name in case.lives if name not in found]
        if homeless:
            return say("{n} has no slot", n=homeless[0])
        names = list(case.lives)
        for n, one in enumerate(names):
            for other in names[:n]:
                (a, b), (c, d) = case.lives[one], case.lives[other]
                if found[one] == found[other] and a <= d and c <= b:
                    return say(
                        "{a} and {b} share a slot, and both are alive in step {s}",
                        a=other, b=one, s=max(a, c),
                    )  # fmt: skip
        used = len({found[name] for name in names})
        needed = max(
            sum(first <= at <= last for first, last in case.lives.values())
            for at in range(len(case.steps) + 1)
        )
        if used == needed:
            return None
        return say("{a} slots are enough; you use {b}", a=needed, b=used)

    def picture(self, solution: Any, case: Work) -> Picture:
        return lanes(case, solution(dict(case.lives)))


# ---- pages and pools ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Writes:
    """(start, bytes) of writes to new memory, in order, and the size of a page."""

    ranges: tuple[tuple[int, int], ...]
    page: int

    def __str__(self) -> str:
        return f"faults({list(self.ranges)}, page={self.page})"


@exercise("8.4", "Page faults", "缺页", points=2)
class Faults(Exercise):
    """`faults(ranges, page)`: how many pages are accessed for the first time."""

    def cases(self, draw: random.Random) -> Iterator[Writes]:
        for n in range(80):
            ranges = [(draw.randrange(60), draw.randint(0, 20)) for _ in range(1 + n // 20)]
            yield Writes(tuple(ranges), draw.choice([4, 8, 16]))

    def smaller(self, case: Writes) -> Iterable[Writes]:
        for n, (start, nbytes) in enumerate(case.ranges):
            yield replace(case, ranges=case.ranges[:n] + case.ranges[n + 1 :])
            if nbytes:
                shorter = (*case.ranges[:n], (start, nbytes - 1), *case.ranges[n + 1 :])
                yield replace(case, ranges=shorter)

    def judge(self, solution: Any, case: Writes) -> str | None:
        found = solution([tuple(r) for r in case.ranges], case.page)
        wanted = len(
            {at // case.page for start, n in case.ranges for at in range(start, start + n)}
        )
        wrong = expected(int, found)
        if wrong or found == wanted:
            return wrong
        return say("page faults: {a}; your answer: {b}", a=wanted, b=found)  # fmt: skip

    def picture(self, solution: Any, case: Writes) -> Picture:
        seen, rows = set[int](), list[tuple[str, list[Cell]]]()
        touched = [{at // case.page for at in range(start, start + n)} for start, n in case.ranges]
        pages = range(max((page + 1 for each in touched for page in each), default=1))
        for (start, nbytes), here in zip(case.ranges, touched, strict=True):
            line: list[Cell] = [
                ("", "box" if page not in here else "bar") if page in seen or page not in here
                else (str(page), "input") for page in pages
            ]  # fmt: skip
            rows.append((say("{n} bytes at {s}", n=nbytes, s=start), line))
            seen |= here
        mine = solution([tuple(each) for each in case.ranges], case.page)
        rows.append((say("your answer"), [(str(mine), "wrong")]))
        legend = [(say("first access"), "input"), (say("accessed before"), "bar")]
        return cells(say("pages of each write"), rows, legend)


@dataclass(frozen=True)
class Requests:
    """A size: take a block.  Minus n: give back the nth block that was taken."""

    asked: tuple[int, ...]

    def __str__(self) -> str:
        return "\n".join(f"take({a})" if a > 0 else f"give(block {-a})" for a in self.asked)


@exercise("8.5", "A pool", "内存池", points=3)
class Pooled(Exercise):
    """A class with `take(size)`, which returns (block, its size), and `give(block)`."""

    def cases(self, draw: random.Random) -> Iterator[Requests]:
        for n in range(80):
            asked, taken, held = list[int](), 0, list[int]()
            for _ in range(2 + n // 6):
                if held and draw.random() < 0.5:
                    asked.append(-held.pop(draw.randrange(len(held))))
                else:
                    taken += 1
                    held.append(taken)
                    asked.append(draw.choice([4, 8, 8, 16, 100]))
            yield Requests(tuple(asked))

    def smaller(self, case: Requests) -> Iterable[Requests]:
        yield Requests(case.asked[:-1])
        for n, asked in enumerate(case.asked):
            if asked < 0:
                yield Requests(case.asked[:n] + case.asked[n + 1 :])

    def judge(self, solution: Any, case: Requests) -> str | None:
        return next((step.wrong for step in _served(solution(), case) if step.wrong), None)

    def picture(self, solution: Any, case: Requests) -> Picture:
        """A lane for each block: when it is held, and of which size."""
        lanes: dict[Any, list[Cell]] = {}
        held: dict[Any, int] = {}
        steps: list[Cell] = []
        for at, step in enumerate(_served(solution(), case)):
            lanes.setdefault(step.block, [("", "box")] * at)
            if step.asked > 0:
                held[step.block] = step.size
            else:
                held.pop(step.block, None)
            text = f"+{step.asked}" if step.asked > 0 else f"−{step.size}"
            steps.append((text, "wrong" if step.wrong else "input"))
            for block, line in lanes.items():
                role = "wrong" if step.wrong and block == step.block else "bar"
                line.append((str(held[block]), role) if block in held else ("", "box"))
        named = [(say("block {n}", n=block), line) for block, line in lanes.items()]
        title = say("requests (+) and returns (−); which blocks are in use")
        return cells(title, [("", steps), *named])


@dataclass(frozen=True)
class Served:
    """A request of a pool: the block, its size, and what is wrong, "" if nothing is."""

    asked: int
    block: Any
    size: int
    wrong: str = ""


def _served(pool: Any, case: Requests) -> Iterator[Served]:
    """What a pool answers, up to the first answer that is wrong."""
    blocks: list[tuple[Any, int]] = []
    sizes: dict[Any, int] = {}
    free: list[Any] = []
    for asked in case.asked:
        if asked < 0:
            block, size = blocks[-asked - 1]
            pool.give(block)
            free.append(block)
            yield Served(asked, block, size)
            continue
        found = pool.take(asked)
        wrong = expected(tuple, found)
        if wrong or len(found) != 2:
            yield Served(asked, None, 0, wrong or say("take should return (block, size)"))
            return
        block, size = found
        wrong = _wrong_block(found, asked, sizes, free)
        yield Served(asked, block, size, wrong)
        if wrong:
            return
        if block in free:
            free.remove(block)
        sizes[block] = size
        blocks.append(found)


def _wrong_block(found: tuple[Any, int], asked: int, sizes: dict[Any, int], free: list[Any]) -> str:
    block, size = found
    fits = [b for b in free if asked <= sizes[b] <= 2 * asked]
    if size < asked:
        return say("take({n}) returned a block of {s}", n=asked, s=size)  # fmt: skip
    if size > 2 * asked:
        return say(
            "take({n}) returned a block of {s}: more than half is unused",
            n=asked, s=size,
        )  # fmt: skip
    if block in sizes and block not in free:
        return say("block {b} is returned again although it is still in use", b=block)  # fmt: skip
    if block in sizes and sizes[block] != size:
        return say("block {b} has {a} bytes, not {s}", b=block, a=sizes[block], s=size)  # fmt: skip
    if block not in sizes and fits:
        return say(
            "a new block, although block {b} is free and fits: this causes new page faults",
            b=fits[0],
        )  # fmt: skip
    return ""


# ---- roofs and predictions ----------------------------------------------------------------------


@dataclass(frozen=True)
class Kernel:
    """Flops and bytes of a kernel, and the two rates of a machine."""

    flops: int
    nbytes: int
    flop_rate: int
    rate: int

    def __str__(self) -> str:
        return f"roof({self.flops}, {self.nbytes}, flop_rate={self.flop_rate}, rate={self.rate})"


@exercise("8.6", "The two limits of the roofline", "屋顶线的两个上限", points=2)
class Roofs(Exercise):
    """`roof(flops, nbytes, flop_rate, rate)`: (minimum seconds, "memory" or "compute")."""

    def cases(self, draw: random.Random) -> Iterator[Kernel]:
        for _ in range(60):
            flops, nbytes = draw.randint(1, 400), draw.randint(1, 400)
            yield Kernel(flops, nbytes, draw.choice([10, 100]), draw.choice([3, 10, 50]))

    def judge(self, solution: Any, case: Kernel) -> str | None:
        found = solution(case.flops, case.nbytes, case.flop_rate, case.rate)
        wrong = expected(tuple, found)
        if wrong:
            return wrong
        times = {"memory": case.nbytes / case.rate, "compute": case.flops / case.flop_rate}
        least = max(times.values())
        if len(found) != 2 or abs(float(found[0]) - least) > 1e-9 * least:
            return say(
                "memory needs {m:.3g} s, arithmetic {c:.3g} s, and both run at the same time; "
                "your answer: {f}",
                m=times["memory"], c=times["compute"], f=found,
            )  # fmt: skip
        if times.get(found[1]) == least:
            return None
        return say("the time is right, but {f} is not the limit", f=found[1])

    def picture(self, solution: Any, case: Kernel) -> Picture:
        found = solution(case.flops, case.nbytes, case.flop_rate, case.rate)
        return numbers(say("both run at the same time: the longer one determines the time"), [
            (say("memory"), case.nbytes / case.rate),
            (say("arithmetic"), case.flops / case.flop_rate),
            (f"{say('you')}: {found[1]}", float(found[0])),
        ], " s")  # fmt: skip


@exercise("8.7", "Predict the bytes", "预测字节数", points=3, limit=120.0)
class Bytes(Exercise):
    """`predicted`: for each program the bytes that its fused kernels read and write."""

    def cases(self, draw: random.Random) -> Iterator[str]:
        return iter(BYTES)

    def judge(self, solution: Any, case: str) -> str | None:
        wrong = expected(dict, solution)
        if wrong or case not in solution:
            return wrong or say("no guess for {c!r}", c=case)
        wanted = int(schedule_of(case).after.bytes)
        if solution[case] == wanted:
            return None
        more = solution[case] > wanted
        return say(
            "it moves {how} than {g:,} bytes: which data are read once, and which never leave "
            "the kernel?",
            g=solution[case], how=say("fewer") if more else say("more"),
        )

    def picture(self, solution: Any, case: str) -> Picture:
        schedule = schedule_of(case)
        before, after = int(schedule.before.bytes), int(schedule.after.bytes)
        known = [(say("the matrix, once"), 4_000_000), (say("before fusion"), before)]
        return prediction(int(solution[case]), after, known)
