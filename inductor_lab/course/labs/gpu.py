"""Lab 7, Triton and the GPU: blocks and masks, transactions, the student's kernels, predictions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from inductor_lab.api.backend import inspect
from inductor_lab.course.exercise import Exercise, exercise, expected, run_there
from inductor_lab.course.given.gpu import MASKED, softmax
from inductor_lab.course.gpu import Trace
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Cell, Picture, cells
from inductor_lab.course.races import Access

SEGMENT = 32
"""Floats that a GPU fetches at once: 128 bytes."""


def power(count: int) -> int:
    """The power of two that is not below `count`."""
    return 1 << max(count - 1, 0).bit_length()


@dataclass(frozen=True)
class Blocks:
    """The number of elements, and of lanes in a block."""

    count: int
    block: int

    def __str__(self) -> str:
        return f"blocks({self.count}, block={self.block})"


@exercise("7.1", "Blocks and masks", "块与掩码", points=2)
class BlocksAndMasks(Exercise):
    """`blocks(count, block)`: for each program its (offsets, mask)."""

    def cases(self, draw: random.Random) -> Iterator[Blocks]:
        for n in range(80):
            yield Blocks(draw.randint(0, 2 + n // 3), draw.choice([2, 4, 8]))

    def smaller(self, case: Blocks) -> Iterable[Blocks]:
        if case.count:
            yield replace(case, count=case.count - 1)

    def judge(self, solution: Any, case: Blocks) -> str | None:
        found = solution(case.count, case.block)
        wrong = expected(list, found)
        if wrong:
            return wrong
        programs = -(-case.count // case.block)
        if len(found) != programs:
            return say("{a} programs are needed; you start {b}", a=programs, b=len(found))
        seen = set[int]()
        for number, (offsets, mask) in enumerate(found):
            if len(offsets) != case.block or len(mask) != case.block:
                return say(
                    "program {n} has {a} offsets and {b} values of its mask; a block always "
                    "has {c} lanes",
                    n=number, a=len(offsets), b=len(mask), c=case.block,
                )  # fmt: skip
            live = [at for at, on in zip(offsets, mask, strict=True) if on]
            for at in live:
                if not 0 <= at < case.count:
                    return say(
                        "program {n} accesses element {e}, which does not exist",
                        n=number, e=at,
                    )  # fmt: skip
                if at in seen:
                    return say("element {e} is accessed twice", e=at)
                seen.add(at)
        missing = sorted(set(range(case.count)) - seen)
        return say("element {e} is missing", e=missing[0]) if missing else None

    def picture(self, solution: Any, case: Blocks) -> Picture:
        rows = []
        for number, (offsets, mask) in enumerate(solution(case.count, case.block)):
            line: list[Cell] = []
            for at, on in zip(offsets, mask, strict=False):
                wrong = bool(on) != (0 <= at < case.count)
                line.append((str(at), "wrong" if wrong else "input" if on else "box"))
            rows.append((f"program {number}", line))
        title = say("offsets of each program; a cross: the mask is wrong")  # fmt: skip
        touched = {at for offsets, mask in solution(case.count, case.block)
                   for at, on in zip(offsets, mask, strict=False) if on}  # fmt: skip
        missing: list[Cell] = [(str(at), "wrong") for at in range(case.count) if at not in touched]
        rows += [(say("left out"), missing)] if missing else []
        return cells(title, rows, [(say("on"), "input"), (say("off"), "box")])


@dataclass(frozen=True)
class Warp:
    """The addresses of the 32 threads of a warp, in elements."""

    addresses: tuple[int, ...]

    def __str__(self) -> str:
        return f"segments({list(self.addresses)})"


@exercise("7.2", "Coalesced accesses", "合并访存", points=2)
class Coalesced(Exercise):
    """`segments(addresses)`: how many segments of 32 floats a warp loads."""

    def cases(self, draw: random.Random) -> Iterator[Warp]:
        for n in range(60):
            start, step = draw.randrange(64), draw.choice([0, 1, 1, 2, 4, 32, 33])
            addresses = [start + step * lane for lane in range(32)]
            if n % 3 == 0:
                draw.shuffle(addresses)
            yield Warp(tuple(addresses))

    def smaller(self, case: Warp) -> Iterable[Warp]:
        if len(case.addresses) > 1:
            half = len(case.addresses) // 2
            yield from (Warp(part) for part in (case.addresses[:half], case.addresses[half:]))

    def judge(self, solution: Any, case: Warp) -> str | None:
        found, wanted = solution(list(case.addresses)), len({a // SEGMENT for a in case.addresses})
        wrong = expected(int, found)
        if wrong or found == wanted:
            return wrong
        return say("segments loaded: {a}; your answer: {b}", a=wanted, b=found)  # fmt: skip

    def picture(self, solution: Any, case: Warp) -> Picture:
        rows: dict[int, list[Cell]] = {}
        for address in sorted(case.addresses):
            rows.setdefault(address // SEGMENT, []).append((str(address), "input"))
        named = [(say("segment {n}", n=n), line) for n, line in rows.items()]
        named.append((say("your answer"), [(str(solution(list(case.addresses))), "wrong")]))
        return cells(say("addresses of the threads, one line for each segment"), named)


# ---- kernels ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Launch:
    """A matrix of small whole numbers, and the lanes of a block."""

    rows: int
    columns: int
    block: int
    seed: int

    def __str__(self) -> str:
        return f"x: float32[{self.rows}, {self.columns}], BLOCK={self.block}"

    def x(self) -> torch.Tensor:
        draw = torch.Generator().manual_seed(self.seed)
        return torch.randint(-9, 0, (self.rows, self.columns), generator=draw).float()


class _Kernel(Exercise):
    """A kernel of the student's, launched on random sizes and compared with torch."""

    def cases(self, draw: random.Random) -> Iterator[Launch]:
        for n in range(24):
            columns = draw.choice([1, 4, 5, 7, 8, 12]) if n else 4
            yield Launch(1 + n // 6, columns, self.block(columns), draw.randrange(99))

    def block(self, columns: int) -> int:
        return power(columns)

    def smaller(self, case: Launch) -> Iterable[Launch]:
        if case.rows > 1:
            yield replace(case, rows=case.rows - 1)
        if case.columns > 1:
            columns = case.columns - 1
            yield replace(case, columns=columns, block=self.block(columns))

    def wanted(self, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def launch(self, case: Launch) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """The grid, and the arguments behind x and the result."""
        return (case.rows,), (case.columns,)

    def judge(self, solution: Any, case: Launch) -> str | None:
        x = case.x()
        wanted = self.wanted(x)
        found = torch.full_like(wanted, torch.nan)
        found, outside, _ = self._launched(solution, case, x, found)
        if outside:
            return str(outside)
        return stored_wrong(found, wanted)

    def picture(self, solution: Any, case: Launch) -> Picture | None:
        """What each program reads of x, up to the first error."""
        x = case.x()
        _, _, seen = self._launched(solution, case, x, torch.empty_like(self.wanted(x)))
        return Trace({0: x.numel()}, [Access(*each) for each in seen]).picture(0)

    def _launched(self, solution: Any, case: Launch, x: torch.Tensor, out: torch.Tensor) -> Any:
        """What the kernel stores, where it left its tensors, and its accesses."""
        grid, more = self.launch(case)
        where = "inductor_lab.course.gpu:launched"
        return run_there(solution, where, solution, grid, [x], out, more, {"BLOCK": case.block})


def stored_wrong(found: Any, wanted: torch.Tensor, tolerance: float = 1e-6) -> str | None:
    """A sentence if a kernel did not store the wanted elements."""
    if not isinstance(found, torch.Tensor) or found.shape != wanted.shape:
        return expected(torch.Tensor, None)
    if torch.allclose(found, wanted, rtol=tolerance, atol=tolerance):
        return None
    unset = found.isnan() & ~wanted.isnan()
    if unset.any():
        return say(
            "element {e} of the result is never stored, or NaN",
            e=tuple(unset.nonzero()[0].tolist()),
        )  # fmt: skip
    wrong = ~torch.isclose(found, wanted, rtol=tolerance, atol=tolerance)
    place = tuple(wrong.nonzero()[0].tolist())
    return say(
        "element {p} should be {a:.4g}, your kernel stores {b:.4g}",
        p=place, a=float(wanted[place]), b=float(found[place]),
    )  # fmt: skip


@exercise("7.3", "Your first kernel", "第一个 kernel", points=2, limit=60.0)
class Wave(_Kernel):
    """`wave(x, out, count, BLOCK)`: out = 2 * x + 1, a block of elements for each program."""

    def block(self, columns: int) -> int:
        return 4

    def wanted(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x + 1

    def launch(self, case: Launch) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        count = case.rows * case.columns
        return (-(-count // case.block),), (count,)


@exercise("7.4", "The largest of a row", "每行的最大值", points=3, limit=60.0)
class RowMax(_Kernel):
    """`row_max(x, out, columns, BLOCK)`: a program for each row."""

    def wanted(self, x: torch.Tensor) -> torch.Tensor:
        return x.amax(-1)


@exercise("7.5", "Your kernel for a group", "为一个融合组写 kernel", points=4, limit=60.0)
class RowSoftmax(_Kernel):
    """`rows(scores, out, columns, BLOCK)`: softmax, a program for each row."""

    def wanted(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)


# ---- predict ------------------------------------------------------------------------------------


def masks_of(name: str) -> bool:
    """Does the Triton kernel for a GPU have a mask?"""
    function, size = MASKED[name]
    part = inspect(function, torch.randn(size), target="cuda:90").graphs[0].forward
    return any("mask" in str(kernel) for kernel in part.kernels)


@exercise("7.6", "Predict the masks", "预测掩码", points=2, limit=120.0)
class Masks(Exercise):
    """`predicted`: for each program True if its kernel needs a mask."""

    def cases(self, draw: random.Random) -> Iterator[str]:
        return iter(MASKED)

    def judge(self, solution: Any, case: str) -> str | None:
        wrong = expected(dict, solution)
        if wrong or case not in solution:
            return wrong or say("no guess for {c!r}", c=case)
        wanted = masks_of(case)
        if bool(solution[case]) == wanted:
            return None
        if wanted:
            return say("its blocks do not fit: there is a mask")
        return say("its blocks fit exactly: there is no mask")

    def picture(self, solution: Any, case: str) -> Picture:
        function, (rows, columns) = MASKED[case]
        count = columns if function is softmax else rows * columns
        said = say("a mask") if solution[case] else say("no mask")
        line: list[Cell] = [(str(1 << k), "wrong" if count % (1 << k) else "output")
                            for k in range(11)]  # fmt: skip
        title = say(
            "numbers of lanes in a block; a cross: {n} elements do not fill such blocks", n=count
        )
        return cells(title, [(say("block"), line), (say("you"), [(said, "wrong")])])
