"""The loop tree: a fused group as the statements that both code generators print.

Built by `codegen/build.py`, printed as C++ by `codegen/cpp.py`, as Triton by `codegen/triton.py`.
In it every buffer is flat: a `Load` has exactly one index, the element's offset in the buffer's
storage, and layouts are gone.  Values are small: what is used twice is a `Let` and a `Temp`.

Inductor: `LoopLevel`/`LoopNest` in `codegen/cpp.py`, `CSE` in `codegen/common.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

import torch

from inductor_lab.ir.expr import NO_ORIGINS, Expr, Origins, Temp
from inductor_lab.ir.index import Axis, Index
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
class Store:
    """`buffer[index] = value`, `index` flat; or, if `kind` is not "store", what that operation
    makes of the element that is there and of `value`.
    """

    buffer: str
    index: Index
    value: Expr
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    kind: str = "store"


@dataclass(frozen=True, slots=True)
class Init:
    """Start an accumulator for a reduction of `kind` (its neutral value comes from the kind).

    `dtype` is what it accumulates in.  After the loop, `Temp(name, result)` is the result, where
    `result` is int64 for positions (`ir.ops.POSITIONS`) and `dtype` otherwise.
    """

    name: str
    kind: str
    dtype: torch.dtype
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class Accumulate:
    """Combine `value` into accumulator `name`; `position` is given where that is the result."""

    name: str
    kind: str
    value: Expr
    position: Index | None = None
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class When:
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
class Loop:
    """`for axis in 0 .. axis.size: body`."""

    axis: Axis
    kind: LoopKind
    body: tuple[Stmt, ...]


Stmt: TypeAlias = Let | Store | Init | Accumulate | When | Loop
