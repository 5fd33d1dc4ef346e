"""Pictures of what students cannot see: where a GPU kernel runs, and the life of a guard.

    gpu_levels(kernel)              GPU, multiprocessor, block, warp, and the memory of each
    guard_life(c, [("3 rows", c.again(x[:3]))])    a symbol, its guard, and later calls

Both are drawn from live objects.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inductor_lab.course.language import say
from inductor_lab.course.pictures import Cell, Picture, drawn

MULTIPROCESSORS, THREADS, WARP = 132, 2048, 32
"""Of an H100: multiprocessors, threads that one of them keeps, threads of a warp."""


@dataclass(frozen=True)
class Level:
    """A level of the machine: its name, its items in lines, how many of them work, its memory."""

    name: str
    items: str
    count: int
    in_a_line: int
    active: int
    memory: str
    holds: str


def gpu_levels(kernel: Any) -> Picture:
    """Where a Triton kernel runs on an H100, from its launch parameters."""
    launch = kernel.launch
    constants = launch["constants"]
    programs = -(-launch["xnumel"] // constants["XBLOCK"])
    warps = launch["num_warps"]
    blocks = THREADS // (warps * WARP)
    elements = constants["XBLOCK"] * constants["RBLOCK"]
    each = elements // (warps * WARP)
    levels = [
        Level("GPU", say("{n} multiprocessors", n=MULTIPROCESSORS), MULTIPROCESSORS, 12,
              min(programs, MULTIPROCESSORS), say("global memory"), say("all tensors")),
        Level(say("multiprocessor"), say("up to {n} blocks", n=blocks), blocks, 4, 1,
              say("shared memory"), say("divided among its blocks")),
        Level(say("thread block"), say("{n} warps", n=warps), warps, 1, warps,
              say("its part of it"), say("values of its warps")),
        Level("warp", say("{n} threads", n=WARP), WARP, 8, WARP,
              say("registers"), say("{n} elements each", n=each)),
    ]  # fmt: skip
    title = say("{p} programs of {e:,} elements: each is a block of {t} threads",
                p=programs, e=elements, t=warps * WARP)  # fmt: skip
    lines = [f"  {one.name}: {one.items}; {one.memory}: {one.holds}" for one in levels]
    return drawn("course_levels", title, "\n".join([title, *lines]), levels)


def guard_life(compilation: Any, calls: Sequence[tuple[int, Any]]) -> Picture:
    """The life of the first symbol of a compilation: the first call, the symbol, the condition of
    the code, the guard, and later calls as (size, what `again` returned)."""
    symbol = compilation.capture.symbols[0]
    source = re.sub(r"^L\['(\w+)'\]", r"\1", symbol.source)
    guard = next(one for one in map(_condition, compilation.capture.guards)
                 if re.fullmatch(rf"\d+ <= {re.escape(source)} <= \d+", one))  # fmt: skip
    low, high = int(guard.split()[0]), int(guard.split()[-1])
    start = int(symbol.range.strip("[]").split(", ")[0])
    last = max(high, *(size for size, _ in calls)) + 2
    hint = int(symbol.hint)

    def line(first: int, end: int) -> list[Cell]:
        return [(str(size), "input" if first <= size <= end else "box") for size in range(last)]

    marked = [(str(size), "output" if size == hint else "box") for size in range(last)]
    rows = [
        (say("first call"), marked),
        (say("symbol {s}", s=symbol.name), line(start, last)),
        (say("guard"), line(low, high)),
        *((say("call with {n}", n=size), _call(size, found, last)) for size, found in calls),
    ]
    legend = [(say("the code is captured, or reused"), "output"),
              (say("sizes that are allowed so far"), "input"),
              (say("the guard fails: the function is compiled again"), "wrong")]  # fmt: skip
    title = say("{s} = {source}, and its guard {g}", s=symbol.name, source=source, g=guard)
    text = [title, f"  {rows[0][0]}: {hint}", f"  {rows[1][0]}: {start}, ...", f"  {guard}"]
    text += [f"  {row[0]}: {legend[0 if found.hit else 2][0]}"
             for row, (_, found) in zip(rows[3:], calls, strict=True)]  # fmt: skip
    return drawn("course_cells", title, "\n".join(text), rows, legend)


def _call(size: int, found: Any, last: int) -> list[Cell]:
    role = "output" if found.hit else "wrong"
    return [(str(one), role if one == size else "box") for one in range(last)]


def _condition(guard: Any) -> str:
    """`2 <= x.size()[0] <= 8` of a guard."""
    return str(guard).partition(": ")[2].partition("    ")[0]
