"""The loop tree: a fused group as the statements that both code generators print.

Built by `codegen/tree/build.py`, made fast for the CPU by the passes of `codegen/cpu/`, printed as
C++ by `codegen/cpp/printer.py`, as Triton by `codegen/triton/printer.py`; `codegen/tree/text.py`
prints it for people, `codegen/tree/run.py` interprets it.  Every buffer is flat: a `Load` has one
index, the element's offset in the buffer's storage; layouts are gone.  Values are small: what is
used twice is a `Let` and a `Temp`.

Inductor: `LoopLevel`/`LoopNest` in `codegen/cpp.py`, `CSE` in `codegen/common.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

import torch

from inductor_lab.compiler.ir.expr import NO_ORIGINS, Expr, Origins, Temp
from inductor_lab.compiler.ir.index import ZERO, Axis, Index, Size
from inductor_lab.compiler.ir.value import Value


class LoopKind(Enum):
    """What a loop is to the machine.

    PARALLEL   independent points; threads in C++, the launch grid in Triton
    VECTOR     independent points, innermost; SIMD in C++, lanes of a block in Triton
    REDUCE     feeds the accumulators of its body
    SERIAL     independent points of a row, no accumulator (a stored inner loop)
    ORDERED    sequential: several iterations may write to one element
    BISECT     a binary search for the first position where its one `Accumulate` holds
    SCAN       sequential; after an `Accumulate`, the accumulator's temp is its value so far
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
    """`buffer[index] = value`, `index` flat; if `kind` is not "store", that operation combines
    `value` with the element in memory.
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
    positions has a second value, `best_of(name)`: the element there.  `start` is its initial value
    if that is not the neutral one; of positions, both values.
    """

    name: str
    kind: str
    dtype: torch.dtype
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    start: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Accumulate(Value):
    """Combine `value` into accumulator `name`; `position` is given where that is the result.

    Where it is another accumulator that is combined into this one, `found` is its position.
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
    """Who executes the iterations of a loop; it does not change what the loop computes.

    threads     so many nested loops, from this one inwards, are shared among threads (0: none)
    team        within a parallel region, as in a combo: all threads reach the loop
    work        threads only if this many operations (it may be symbolic) are at least `grain`; 0:
                always
    simd        iterations are vector lanes
    reductions  OpenMP's name of the operation, and the accumulator that is private to each thread
                or lane
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
        """Does it run over the whole axis, with step 1?"""
        return self.begin == ZERO and self.end is None and self.step == 1


# ---- what only passes make ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Local(Value):
    """A local array, visible to the end of the enclosing body; zero-initialized if `zero`.

    A `Load` and a `Store` refer to it by name; a Load has one index for each dimension.
    """

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    zero: bool = False


@dataclass(frozen=True, slots=True)
class Held(Value):
    """To the end of the enclosing body, the temp or accumulator `name` is an alias of this element
    of a local array."""

    name: str
    array: str
    at: tuple[Index, ...]
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class Assign(Value):
    """An assignment to an accumulator."""

    name: str
    value: Expr
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class Address(Value):
    """The address of an element; without an index, of the first."""

    buffer: str
    index: Index = ZERO


@dataclass(frozen=True, slots=True)
class Call(Value):
    """A call of a function of the header; its result is assigned to the accumulator `result`."""

    function: str
    args: tuple[Address | Index | Temp, ...]
    result: str = ""
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class Least(Value):
    """The minimum."""

    first: Index
    second: Index


@dataclass(frozen=True, slots=True)
class Whole(Value):
    """The end of the last whole block of `width` that starts at `begin`, at most `end`."""

    begin: Index
    end: Index
    width: int


@dataclass(frozen=True, slots=True)
class Share(Value):
    """The first of the `size` iterations that a part runs, or with `end` the one after its last.

    There are `count` parts, each a multiple of `line` but the last.
    """

    size: Size
    part: Axis
    count: int
    line: int
    end: bool


@dataclass(frozen=True, slots=True)
class Bound(Value):
    """A loop bound: `name` stands for it in indices from here on."""

    name: Axis
    value: Index | Least | Whole | Share
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class Check(Value):
    """A run-time check that an index is in 0 .. size; without a size, that a divisor is not 0."""

    value: Expr
    size: tuple[Size, ...]
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class If(Value):
    """The statements run where the condition holds."""

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
