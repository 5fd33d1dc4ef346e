"""Lab 13, one model, many ranks: rings, shards, overlap, buckets, and ranks that disagree."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations, zip_longest
from types import NoneType
from typing import Any

import torch

from inductor_lab.course.exercise import Exercise, exercise, expected
from inductor_lab.course.labs.wrong_values import marked, numbers
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Cell, Picture, Row, cells


@dataclass(frozen=True)
class Ring:
    """Ranks in a ring; each has one chunk for each rank."""

    ranks: int

    def __str__(self) -> str:
        return say("ranks: {n}", n=self.ranks)


@exercise("13.1", "A ring", "环", points=3)
class RingSum(Exercise):
    """`chunk(rank, step, ranks)`: which chunk a rank sends to the next one in a step."""

    def cases(self, draw: random.Random) -> Iterator[Ring]:
        return map(Ring, range(2, 9))

    def judge(self, solution: Any, case: Ring) -> str | None:
        n = case.ranks
        held = [[{rank} for _ in range(n)] for rank in range(n)]
        for step in range(2 * (n - 1)):
            sent = [solution(rank, step, n) for rank in range(n)]
            for rank, chunk in enumerate(sent):
                if not isinstance(chunk, int) or not 0 <= chunk < n:
                    return say(
                        "chunk({r}, {s}, {n}) returns {c}; chunks are numbered from 0 to {m}",
                        r=rank, s=step, n=n, c=chunk, m=n - 1,
                    )  # fmt: skip
            moving = [held[rank][chunk].copy() for rank, chunk in enumerate(sent)]
            for rank, chunk in enumerate(sent):
                wrong = _received(held[(rank + 1) % n], chunk, moving[rank], step < n - 1)
                if wrong:
                    return say(
                        "step {s}, rank {r} to {t}: {w}",
                        s=step, r=rank, t=(rank + 1) % n, w=wrong,
                    )  # fmt: skip
        for rank, chunks in enumerate(held):
            for chunk, parts in enumerate(chunks):
                if len(parts) < n:
                    return say(
                        "at the end, chunk {c} of rank {r} lacks the value of rank {m}",
                        c=chunk, r=rank, m=min(set(range(n)) - parts),
                    )  # fmt: skip
        return None

    def picture(self, solution: Any, case: Ring) -> Picture:
        """The ranks whose values each rank has at the end, chunk by chunk."""
        n = case.ranks
        held = [[[rank] for _ in range(n)] for rank in range(n)]
        for step in range(2 * (n - 1)):
            sent = [solution(rank, step, n) for rank in range(n)]
            moving = [held[rank][chunk] for rank, chunk in enumerate(sent)]
            for rank, chunk in enumerate(sent):
                mine = held[(rank + 1) % n]
                mine[chunk] = (mine[chunk] if step < n - 1 else []) + moving[rank]
        rows = [(say("rank {r}", r=rank), [("+".join(map(str, sorted(parts))),
                                            sorted(parts) != list(range(n))) for parts in chunks])
                for rank, chunks in enumerate(held)]  # fmt: skip
        title = say(
            "ranks whose values are in each chunk at the end; a cross: not each rank exactly once"
        )
        return marked(title, rows)


def _received(mine: list[set[int]], chunk: int, came: set[int], adds: bool) -> str:
    """A chunk comes in: it is added in the first half, and replaces mine in the second."""
    if not adds:
        mine[chunk] = came
        return ""
    twice = mine[chunk] & came
    mine[chunk] = mine[chunk] | came
    if not twice:
        return ""
    return say("the value of rank {r} would be added twice to chunk {c}", c=chunk, r=min(twice))


@dataclass(frozen=True)
class Message:
    """A collective: its kind, the bytes of the whole tensor, and the ranks."""

    kind: str
    nbytes: int
    ranks: int

    def __str__(self) -> str:
        return f"sent({self.kind!r}, {self.nbytes}, {self.ranks})"


@exercise("13.2", "How many bytes are sent", "发送多少字节", points=1)
class OnTheWire(Exercise):
    """`sent(kind, nbytes, ranks)`: the minimum number of bytes that each rank sends."""

    def cases(self, draw: random.Random) -> Iterator[Message]:
        for ranks in (2, 4, 8, 64):
            for kind in ("all_reduce", "all_gather", "reduce_scatter"):
                yield Message(kind, 64 * draw.randint(1, 1000), ranks)

    def judge(self, solution: Any, case: Message) -> str | None:
        found = solution(case.kind, case.nbytes, case.ranks)
        wrong = expected((int, float), found)
        if wrong:
            return wrong
        passes = 2 if case.kind == "all_reduce" else 1
        wanted = passes * (case.ranks - 1) * case.nbytes / case.ranks
        if abs(found - wanted) < 1e-6 * wanted:
            return None
        how = say("fewer") if found > wanted else say("more")
        return say(
            "{h} than {f}: in each step of the ring a rank sends 1/{n} of the tensor",
            h=how, f=found, n=case.ranks,
        )  # fmt: skip

    def picture(self, solution: Any, case: Message) -> Picture:
        return numbers(say("bytes"), [
            (say("the complete tensor"), case.nbytes),
            (say("one step of the ring"), case.nbytes // case.ranks),
            (say("you"), float(solution(case.kind, case.nbytes, case.ranks))),
        ], " B")  # fmt: skip


@dataclass(frozen=True)
class Widths:
    """A perceptron of `width` and `hidden` columns on so many ranks."""

    width: int
    hidden: int
    ranks: int

    def __str__(self) -> str:
        shapes = f"w1: {self.width} x {self.hidden}, w2: {self.hidden} x {self.width}"
        return f"{shapes}, {say('ranks: {n}', n=self.ranks)}"


@exercise("13.3", "Columns, then rows", "先切列，再切行", points=2)
class Shards(Exercise):
    """`shards(w1, w2, rank, ranks)`: the parts of two weights that a rank stores."""

    def cases(self, draw: random.Random) -> Iterator[Widths]:
        for ranks in (1, 2, 3, 4):
            yield Widths(2 * ranks, 3 * ranks, ranks)
            yield Widths(4 * ranks, 4 * ranks, ranks)

    def judge(self, solution: Any, case: Widths) -> str | None:
        seeded = torch.Generator().manual_seed(0)
        w1 = torch.randn(case.width, case.hidden, generator=seeded)
        w2 = torch.randn(case.hidden, case.width, generator=seeded)
        x = torch.randn(5, case.width, generator=seeded)
        total = torch.zeros(5, case.width)
        for rank in range(case.ranks):
            found = solution(w1.clone(), w2.clone(), rank, case.ranks)
            wrong = expected(tuple, found)
            if wrong:
                return wrong
            one, other = found
            kept, share = one.numel() + other.numel(), 2 * w1.numel() // case.ranks
            if kept != share:
                return say(
                    "rank {r} stores {k} weights; its share is {s}",
                    r=rank, k=kept, s=share,
                )  # fmt: skip
            if one.shape[0] != case.width or other.shape != (one.shape[1], case.width):
                return say(
                    "relu(x @ {a}) @ {b} does not fit x, which has {w} columns",
                    a=list(one.shape), b=list(other.shape), w=case.width,
                )  # fmt: skip
            total += torch.relu(x @ one) @ other
        if torch.allclose(total, torch.relu(x @ w1) @ w2, rtol=1e-3, atol=1e-3):
            return None
        return say("the sum over all ranks is not relu(x @ w1) @ w2")  # fmt: skip

    def picture(self, solution: Any, case: Widths) -> Picture:
        """Which columns of w1 and rows of w2 each rank stores; the weights are their numbers."""
        hidden = torch.arange(float(case.hidden))
        w1, w2 = hidden.expand(case.width, -1), hidden[:, None].expand(-1, case.width)
        rows: list[Row] = []
        for part, name in enumerate(("w1[:, k]", "w2[k, :]")):
            taken = set[int]()
            for rank in range(case.ranks):
                kept = solution(w1.clone(), w2.clone(), rank, case.ranks)[part]
                here = {int(k) for k in kept.flatten().tolist()}
                line: list[Cell] = [(str(k) if k in here else "", "wrong" if k in here & taken else
                                     "bar" if k in here else "box")
                                    for k in range(case.hidden)]  # fmt: skip
                rows.append((f"{name} {say('rank {r}', r=rank)}", line))
                taken |= here
        return cells(say("what each rank stores; a cross: another rank stores it too"), rows)


Steps = Mapping[str, tuple[str, int, tuple[str, ...]]]
"""By name: "work" or "send", how long it takes, and what it needs."""


@dataclass(frozen=True)
class Plan:
    """Steps of a program, in the order in which they are written."""

    steps: tuple[tuple[str, tuple[str, int, tuple[str, ...]]], ...]

    def __str__(self) -> str:
        lines = [say("{name}: {kind}, {took}, needs {what}", name=name, kind=kind, took=took,
                     what=", ".join(needs) or say("nothing"))
                 for name, (kind, took, needs) in self.steps]  # fmt: skip
        return "\n".join(lines)


def ends_at(order: Iterable[str], steps: Steps) -> int:
    """When all is done."""
    return max(ends_of(order, steps).values(), default=0)


def ends_of(order: Iterable[str], steps: Steps) -> dict[str, int]:
    """When each is done: computation and communication overlap; one message at a time."""
    now = wire = 0
    done = dict[str, int]()
    for name in order:
        kind, took, needs = steps[name]
        if kind == "send":
            ready = max([now, wire, *(done[need] for need in needs)])
            done[name] = wire = ready + took
        else:
            now = max([now, *(done[need] for need in needs)]) + took
            done[name] = now
    return done


def is_order(order: tuple[str, ...], steps: Steps) -> bool:
    """Does each step come after the steps that it needs?"""
    return all(need in order[:at] for at, name in enumerate(order) for need in steps[name][2])


@exercise("13.4", "Hide communication", "掩盖通信", points=3, limit=60.0)
class Hidden(Exercise):
    """`order(steps)`: names of steps, in an order that ends as early as possible."""

    def cases(self, draw: random.Random) -> Iterator[Plan]:
        for n in range(40):
            steps = list[tuple[str, tuple[str, int, tuple[str, ...]]]]()
            for k in range(2 + n // 10):
                names = [name for name, _ in steps]
                needs = tuple(draw.sample(names, draw.randint(0, min(1, len(names)))))
                kind = draw.choice(["work", "work", "send"])
                steps.append((f"s{k}", (kind, draw.randint(1, 9), needs)))
            yield Plan(tuple(steps))

    def smaller(self, case: Plan) -> Iterable[Plan]:
        for name, _ in case.steps:
            rest = tuple((n, (kind, took, tuple(need for need in needs if need != name)))
                         for n, (kind, took, needs) in case.steps if n != name)  # fmt: skip
            if rest:
                yield replace(case, steps=rest)

    def judge(self, solution: Any, case: Plan) -> str | None:
        steps = dict(case.steps)
        found = solution(dict(steps))
        wrong = expected((list, tuple), found)
        if wrong:
            return wrong
        if sorted(found) != sorted(steps):
            return say("{f} does not contain each step exactly once", f=list(found))
        for at, name in enumerate(found):
            early = [need for need in steps[name][2] if need not in found[:at]]
            if early:
                return say("{n} runs before {e}, which it needs", n=name, e=early[0])  # fmt: skip
        best = min(ends_at(o, steps) for o in permutations(steps) if is_order(o, steps))
        if ends_at(found, steps) == best:
            return None
        return say(
            "{f} ends at {a}; the earliest possible end is {b}",
            f=list(found), a=ends_at(found, steps), b=best,
        )  # fmt: skip

    def picture(self, solution: Any, case: Plan) -> Picture:
        """Work and wire over time; where the order is none, what is begun too early."""
        steps = dict(case.steps)
        found = tuple(solution(dict(steps)))
        if not is_order(found, steps):
            return marked(say("a cross: begins before the steps that it needs"), [("", [
                (name, not set(steps[name][2]) <= set(found[:at])) for at, name in enumerate(found)
            ])])  # fmt: skip
        best = min((o for o in permutations(steps) if is_order(o, steps)),
                   key=lambda order: ends_at(order, steps))  # fmt: skip
        rows: list[Row] = []
        for whose, order in ((say("right"), best), (say("you"), found)):
            for kind, lane in (("work", say("work")), ("send", say("wire"))):
                line: list[Cell] = [("", "box")] * ends_at(order, steps)
                for at, name in enumerate(order):
                    if steps[name][0] == kind:
                        end = ends_of(order[: at + 1], steps)[name]
                        for unit in range(end - steps[name][1], end):
                            late = unit >= ends_at(best, steps)
                            line[unit] = (name, "wrong" if late else "bar")
                rows.append((f"{whose}: {lane}", line))
        return cells(say("what runs when; a cross: later than necessary"), rows)


@dataclass(frozen=True)
class Gradients:
    """Bytes of gradients in the order in which they are ready, and a limit."""

    sizes: tuple[int, ...]
    limit: int

    def __str__(self) -> str:
        return f"buckets({list(self.sizes)}, {self.limit})"


@exercise("13.5", "Buckets", "分桶", points=2)
class Buckets(Exercise):
    """`buckets(sizes, limit)`: lists of positions, in order; as few lists as possible."""

    def cases(self, draw: random.Random) -> Iterator[Gradients]:
        for n in range(80):
            sizes = tuple(draw.randint(1, 12) for _ in range(n // 8))
            yield Gradients(sizes, draw.choice([8, 10, 20]))

    def smaller(self, case: Gradients) -> Iterable[Gradients]:
        for n in range(len(case.sizes)):
            yield replace(case, sizes=case.sizes[:n] + case.sizes[n + 1 :])

    def judge(self, solution: Any, case: Gradients) -> str | None:
        found = solution(list(case.sizes), case.limit)
        wrong = expected(list, found)
        if wrong:
            return wrong
        flat = [at for bucket in found for at in bucket]
        if flat != list(range(len(case.sizes))):
            return say(
                "the buckets contain {f}; they must contain each gradient once, in order", f=flat
            )
        for bucket in found:
            nbytes = sum(case.sizes[at] for at in bucket)
            if nbytes > case.limit and len(bucket) > 1:
                return say(
                    "{b} is {n} bytes, the limit is {m}",
                    b=list(bucket), n=nbytes, m=case.limit,
                )  # fmt: skip
        fewest = _fewest(case)
        if len(found) == fewest:
            return None
        return say("you use {f} messages; {w} are enough", f=len(found), w=fewest)  # fmt: skip

    def picture(self, solution: Any, case: Gradients) -> Picture:
        """A line for each bucket, as wide as the limit: which gradient fills it how far."""
        rows = []
        for number, bucket in enumerate(solution(list(case.sizes), case.limit)):
            filled = [str(at) for at in bucket for _ in range(case.sizes[at])]
            line = [(text, k >= case.limit and len(bucket) > 1) for k, text in enumerate(filled)]
            line += [("", False)] * (case.limit - len(line))
            rows.append((say("bucket {n}", n=number), line))
        return marked(say("gradients in your buckets; a cross: above the limit"), rows)


def _fewest(case: Gradients) -> int:
    count, room = 0, 0
    for size in case.sizes:
        if not count or size > room:
            count, room = count + 1, case.limit
        room -= size
    return count


@dataclass(frozen=True)
class Sequences:
    """What each rank begins, in order."""

    begun: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return "\n".join(f"rank {r}: {', '.join(b) or say('nothing')}"
                         for r, b in enumerate(self.begun))  # fmt: skip


@exercise("13.6", "Why does a job hang?", "任务为什么卡住？", points=2)
class Parting(Exercise):
    """`parting(begun)`: the position of the first collective that differs between ranks."""

    def cases(self, draw: random.Random) -> Iterator[Sequences]:
        kinds = ("all_reduce", "all_gather", "broadcast")
        for n in range(80):
            same = tuple(draw.choice(kinds) for _ in range(n // 12))
            begun = [same] * draw.randint(2, 4)
            if draw.random() < 0.7:
                which, at = draw.randrange(len(begun)), draw.randint(0, len(same))
                other = (draw.choice(kinds),) if draw.random() < 0.5 else ()
                begun[which] = (*same[:at], *other, *same[at + 1 :])
            yield Sequences(tuple(begun))

    def smaller(self, case: Sequences) -> Iterable[Sequences]:
        for at in range(max(map(len, case.begun), default=0)):
            yield Sequences(tuple(b[:at] + b[at + 1 :] for b in case.begun))
        if len(case.begun) > 2:
            for at in range(len(case.begun)):
                yield Sequences(case.begun[:at] + case.begun[at + 1 :])

    def judge(self, solution: Any, case: Sequences) -> str | None:
        found = solution([list(b) for b in case.begun])
        columns = enumerate(zip_longest(*case.begun))
        wanted = next((at for at, begun in columns if len(set(begun)) > 1), None)
        if (wrong := expected((int, NoneType), found)) or found == wanted:
            return wrong
        if wanted is None:
            return say("all ranks agree; your answer: {f}", f=found)
        return say("the first difference is at position {w}; your answer: {f}", w=wanted, f=found)

    def picture(self, solution: Any, case: Sequences) -> Picture:
        """A row for each rank; crossed: from here on the ranks wait for each other forever."""
        places = list(zip_longest(*case.begun, fillvalue="–"))
        wanted = next((at for at, begun in enumerate(places) if len(set(begun)) > 1), None)
        rows = [(say("rank {r}", r=rank), [(place[rank], at == wanted)
                                           for at, place in enumerate(places)])
                for rank in range(len(case.begun))]  # fmt: skip
        mine = solution([list(begun) for begun in case.begun])
        line = [(say("here") if at == mine else "", mine != wanted) for at in range(len(places))]
        said = [(text, wrong and bool(text)) for text, wrong in line]
        if not any(text for text, _ in said):
            said = [(str(mine), True)]
        return marked(say("what each rank begins; a cross: the first difference"),
                      [*rows, (say("you"), said)])  # fmt: skip
