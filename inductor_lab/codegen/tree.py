"""The loop tree: a fused group as the statements that both code generators print.

Built by `codegen/build.py`, made fast for the CPU by the passes of `codegen/cpu/`, printed as C++
by `codegen/cpp.py`, as Triton by `codegen/triton.py`; `codegen/tree_text.py` prints it for people,
`codegen/tree_run.py` runs it.  In it every buffer is flat: a `Load` has one index, the element's
offset in the buffer's storage, and layouts are gone.  Values are small: what is used twice is a
`Let` and a `Temp`.

Inductor: `LoopLevel`/`LoopNest` in `codegen/cpp.py`, `CSE` in `codegen/common.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

import torch

from inductor_lab.ir.expr import NO_ORIGINS, Expr, Origins, Temp
from inductor_lab.ir.index import ZERO, Axis, Index, Size
from inductor_lab.ir.value import Value


class LoopKind(Enum):
    """What a loop is to the machine.

    PARALLEL   independent points; threads in C++, the launch grid in Triton
    VECTOR     independent points, innermost; SIMD in C++, lanes of a block in Triton
    REDUCE     feeds the accumulators of its body
    SERIAL     independent points of a row, no accumulator (a stored inner loop)
    ORDERED    one turn after the other: several of them may write to one place
    BISECT     a binary search for the first place where its one `Accumulate` holds
    SCAN       in order; from an `Accumulate` on, the accumulator's temp is its value so far
    """

    PARALLEL = "parallel"
    VECTOR = "vector"
    REDUCE = "reduce"
    SERIAL = "serial"
    ORDERED = "ordered"
    SCAN = "scan"
    BISECT = "bisect"


@dataclass(frozen=True, slots=True)
class Let(Value):
    """`temp = value`, visible to the end of the enclosing body."""

    temp: Temp
    value: Expr
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class Store(Value):
    """`buffer[index] = value`, `index` flat; or, if `kind` is not "store", what that operation
    makes of the element that is there and of `value`.
    """

    buffer: str
    index: Index
    value: Expr
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    kind: str = "store"


@dataclass(frozen=True, slots=True)
class Init(Value):
    """Start an accumulator for a reduction of `kind` (its neutral value comes from the kind).

    `dtype` is what it accumulates in.  After the loop, `Temp(name, result)` is the result, where
    `result` is int64 for positions (`ir.ops.POSITIONS`) and `dtype` otherwise.  An accumulator of
    positions has a second value, `best_of(name)`: the element there.  `start` is where it goes on
    from, if that is not the neutral value; for positions both.
    """

    name: str
    kind: str
    dtype: torch.dtype
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    start: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Accumulate(Value):
    """Combine `value` into accumulator `name`; `position` is given where that is the result.

    Where another accumulator is combined into this one, `found` is its position.
    """

    name: str
    kind: str
    value: Expr
    position: Index | None = None
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    found: Expr | None = None


@dataclass(frozen=True, slots=True)
class When(Value):
    """Run `body` only where `mask` holds; a Let in it is not visible outside.

    It sets `result` to the value of `value` (an expression over the body's temps), elsewhere to
    `other`.
    """

    mask: Expr
    body: tuple[Stmt, ...]
    result: Temp
    value: Expr
    other: Expr
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class How(Value):
    """Who takes the turns of a loop; nothing of it changes what the loop means.

    threads     so many loops, from this one inwards, are shared among threads (0: one thread)
    team        the threads are there already, as in a combo: all of them come by
    work        threads only if so much work (in operations, it has symbols) is at least `grain`; 0:
                always
    simd        its turns are vector lanes
    reductions  OpenMP's name of the operation, and the accumulator that each thread or lane has one
                of
    """

    threads: int = 0
    team: bool = False
    work: Size = 0
    grain: int = 0
    simd: bool = False
    reductions: tuple[tuple[str, str], ...] = ()


ONE_BY_ONE = How()


@dataclass(frozen=True, slots=True)
class Loop(Value):
    """`for axis in begin .. end, step by step: body`; from 0 to the axis' size by default."""

    axis: Axis
    kind: LoopKind
    body: tuple[Stmt, ...]
    begin: Index = ZERO
    end: Index | None = None
    step: int = 1
    how: How = ONE_BY_ONE

    @property
    def stop(self) -> Index:
        return Index.constant_of(self.axis.size) if self.end is None else self.end

    @property
    def is_whole(self) -> bool:
        """Does it take every turn of its axis, one by one?"""
        return self.begin == ZERO and self.end is None and self.step == 1


# ---- what only passes make ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Local(Value):
    """An array of the kernel, visible to the end of the enclosing body; 0 at first if `zero`.

    A `Load` and a `Store` know it by its name; a Load has one index for each dimension.
    """

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    zero: bool = False


@dataclass(frozen=True, slots=True)
class Held(Value):
    """To the end of the enclosing body, the temp or accumulator `name` is this element of a local
    array: setting it writes there, and its value is read there."""

    name: str
    array: str
    at: tuple[Index, ...]
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class Assign(Value):
    """An accumulator takes a value."""

    name: str
    value: Expr
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class Address(Value):
    """Where an element is; of an array without an index, where it starts."""

    buffer: str
    index: Index = ZERO


@dataclass(frozen=True, slots=True)
class Call(Value):
    """A function of the header; `result` is the accumulator that takes what it returns."""

    function: str
    args: tuple[Address | Index | Temp, ...]
    result: str = ""
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class Least(Value):
    """The smaller one."""

    first: Index
    second: Index


@dataclass(frozen=True, slots=True)
class Whole(Value):
    """Where the last whole stretch of `width` from `begin` ends, not after `end`."""

    begin: Index
    end: Index
    width: int


@dataclass(frozen=True, slots=True)
class Share(Value):
    """Where a part of `size` turns starts, if there are `count` parts, each a multiple of `line`
    but the last; with `end`, where it ends."""

    size: Size
    part: Axis
    count: int
    line: int
    end: bool


@dataclass(frozen=True, slots=True)
class Bound(Value):
    """A position that loops start or end at: `name` stands for it in indices from here on."""

    name: Axis
    value: Index | Least | Whole | Share
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class Check(Value):
    """The kernel reports an index outside of 0 .. size; without a size, a divisor that is 0."""

    value: Expr
    size: tuple[Size, ...]
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class If(Value):
    """The statements, if the condition holds."""

    mask: Expr
    body: tuple[Stmt, ...]
    origins: Origins = field(default=NO_ORIGINS, compare=False)


Stmt: TypeAlias = (
    Let | Store | Init | Accumulate | When | Loop
    | Local | Held | Assign | Call | Bound | Check | If
)  # fmt: skip
Tree: TypeAlias = tuple[Stmt, ...]


def best_of(name: str) -> str:
    """The name of the element that goes with the position in an accumulator."""
    return f"best_{name}"
