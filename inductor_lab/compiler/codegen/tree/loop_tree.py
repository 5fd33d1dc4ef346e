"""The loop tree: a fused group as the statements that both code generators print.

`codegen/tree/build.py` builds it, the passes of `codegen/cpu/` optimize it for the CPU,
`codegen/cpp/printer.py` prints it as C++, `codegen/triton/printer.py` as Triton,
`codegen/tree/text.py` as text, and `codegen/tree/run.py` interprets it.  There are no layouts:
every buffer is flat, and a `Load` has one index, the element's offset in the buffer's storage.  A
value that is used twice is bound to a `Temp` by a `Let`.

Inductor: `LoopLevel`/`LoopNest` in `codegen/cpp.py`, `CSE` in `codegen/common.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from inductor_lab.compiler.ir.expr import NO_ORIGINS, Expr, Origins, Temp
from inductor_lab.compiler.ir.index import ZERO, Axis, Index, Size
from inductor_lab.compiler.ir.value import Value
from inductor_lab.compiler.torch_door.torch_types import torch


class LoopKind(Enum):
    """How the iterations of a loop depend on each other.

    PARALLEL   independent points; threads in C++, the launch grid in Triton
    VECTOR     independent points, innermost; SIMD in C++, lanes of a block in Triton
    REDUCE     feeds the accumulators of its body
    SERIAL     independent points of a row, no accumulator (a stored inner loop)
    ORDERED    sequential: several iterations may write to the same element
    BISECT     a binary search for the first position where its single `Accumulate` is true
    SCAN       sequential; after an `Accumulate`, the accumulator's temp is its running value
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
    """`buffer[index] = value`, with a flat `index`.

    If `kind` is not "store", this operation combines `value` with the element in memory.
    """

    buffer: str
    index: Index
    value: Expr
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    kind: str = "store"


@dataclass(frozen=True, slots=True)
class Init(Value):
    """Start an accumulator for a reduction of `kind` (the kind determines its neutral value).

    It accumulates in `dtype`.  After the loop, `Temp(name, result)` is the result; its dtype
    `result` is int64 for positions (`ir.ops.POSITIONS`) and `dtype` otherwise.  An accumulator of
    positions has a second value, `best_of(name)`: the element at the position.  `start` is the
    initial value if it is not the neutral value; for positions, both initial values.
    """

    name: str
    kind: str
    dtype: torch.dtype
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    start: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Accumulate(Value):
    """Combine `value` into accumulator `name`; `position` is given if the result is a position.

    If another accumulator is combined into this one, `found` is its position.
    """

    name: str
    kind: str
    value: Expr
    position: Index | None = None
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    found: Expr | None = None


@dataclass(frozen=True, slots=True)
class When(Value):
    """Run `body` only where `mask` is true; a Let inside is not visible outside.

    There, `result` is the value of `value` (an expression over the body's temps); where `mask` is
    false, it is `other`.
    """

    mask: Expr
    body: tuple[Stmt, ...]
    result: Temp
    value: Expr
    other: Expr
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class Execution(Value):
    """How threads and vector lanes execute a loop; it does not change what the loop computes.

    threads     number of nested loops, from this one inwards, that threads share (0: none)
    team        the loop is in a parallel region, as in a combo: all threads reach it
    work        number of operations (may be symbolic); threads are used if it is at least `grain`
                (0: always)
    simd        iterations are vector lanes
    reductions  OpenMP's name of each operation, and the accumulator that is private to each thread
                or lane
    rolled      the C++ compiler must not unroll the loop
    rounds_differences  it must round each difference, and not contract it with a sum
    """

    threads: int = 0
    team: bool = False
    work: Size = 0
    grain: int = 0
    simd: bool = False
    reductions: tuple[tuple[str, str], ...] = ()
    rolled: bool = False
    rounds_differences: bool = False


SEQUENTIAL = Execution()


@dataclass(frozen=True, slots=True)
class Loop(Value):
    """`for axis in begin .. end by step: body`; by default from 0 to the size of the axis."""

    axis: Axis
    kind: LoopKind
    body: tuple[Stmt, ...]
    begin: Index = ZERO
    end: Index | None = None
    step: int = 1
    execution: Execution = SEQUENTIAL

    @property
    def stop(self) -> Index:
        return Index.constant_of(self.axis.size) if self.end is None else self.end

    @property
    def is_whole(self) -> bool:
        """Does it visit every element of the axis, with step 1?"""
        return self.begin == ZERO and self.end is None and self.step == 1


# ---- statements that only passes create --------------------------------------------------------


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
class ElementAlias(Value):
    """The temp or accumulator `name` is an alias of this element of a local array, to the end of
    the enclosing body."""

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
    """The address of an element; by default, of the first."""

    buffer: str
    index: Index = ZERO


@dataclass(frozen=True, slots=True)
class Call(Value):
    """A call of a header function; its result is assigned to the accumulator `result`."""

    function: str
    args: tuple[Address | Index | Temp, ...]
    result: str = ""
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class Minimum(Value):
    """The minimum of two bounds."""

    first: Index
    second: Index


@dataclass(frozen=True, slots=True)
class LastFullBlock(Value):
    """The end of the last full block of `width` elements in `begin .. end`."""

    begin: Index
    end: Index
    width: int


@dataclass(frozen=True, slots=True)
class PartBound(Value):
    """The first iteration of a part of a loop; with `end`, the iteration after its last one.

    The loop has `size` iterations and `count` parts. The size of each part is a multiple of `line`,
    except the last part's.
    """

    size: Size
    part: Axis
    count: int
    line: int
    end: bool


@dataclass(frozen=True, slots=True)
class Bound(Value):
    """Defines a loop bound: later indices refer to it by `name`."""

    name: Axis
    value: Index | Minimum | LastFullBlock | PartBound
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class Check(Value):
    """Check at run time that an index is in 0 .. size; without a size, that a divisor is not 0."""

    value: Expr
    size: tuple[Size, ...]
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class If(Value):
    """Run the statements if the condition is true."""

    mask: Expr
    body: tuple[Stmt, ...]
    origins: Origins = field(default=NO_ORIGINS, compare=False)


Stmt: TypeAlias = (
    Let | Store | Init | Accumulate | When | Loop
    | Local | ElementAlias | Assign | Call | Bound | Check | If
)  # fmt: skip
Tree: TypeAlias = tuple[Stmt, ...]


def best_of(name: str) -> str:
    """The name of the variable that holds the element at an accumulator's position."""
    return f"best_{name}"
