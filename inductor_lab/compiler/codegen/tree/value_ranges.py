"""Simplify comparisons of indices with the ranges of the axes.

`x[torch.arange(n)]` needs no test whether an index is negative or out of range:

    where(i0 < 0, i0 + 50, i0)    →    i0        i0 < 50

Inductor: `bounds.py`, for values; `torch.utils._sympy.value_ranges`.
"""

from __future__ import annotations

import torch

from inductor_lab.compiler.ir.expr import Const, Expr, IndexValue, Op
from inductor_lab.compiler.ir.index import Index, add_sizes, is_nonnegative, mul_sizes


def index_of(value: Expr) -> Index | None:
    """The index that is equal to a value; None if the value is computed or loaded."""
    match value:
        case Const(number):
            return Index.constant_of(int(number))
        case IndexValue(index):
            return index
        case _:
            return None


def fold_by_range(operation: Op) -> Expr | None:
    """The result of an operation on constants and indices if it is the same at every point."""
    match operation:
        case Op("where", (Const(chosen), one, other), dtype):
            value = one if chosen else other
            return value if value.dtype == dtype else None
        case Op("lt", (IndexValue(index, torch.int64), Const(int(limit)))):
            span = index.bounds()
            if span is not None:
                never = is_nonnegative(add_sizes(span[0], -limit))
                always = is_nonnegative(add_sizes(limit - 1, mul_sizes(span[1], -1)))
                return Const(always, torch.bool) if never or always else None
    return None
