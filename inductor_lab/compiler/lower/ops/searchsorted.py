"""Positions of values in sorted rows: searchsorted and bucketize, by binary search.

    searchsorted(b: f32[100], x: f32[8])   →   buf0[i0] = bisect over r0<100 of ge(b[r0], x[i0])

The test is false before the position and true from there on.  NaN belongs at the end, because no
element is >= NaN, as in eager mode.

Inductor: `lowering.py`, `searchsorted`, which calls a helper of its runtime.
"""

from __future__ import annotations

from typing import Any

import torch

from inductor_lab.compiler.ir.index import Axis, Index, is_int
from inductor_lab.compiler.lower.builder import Builder
from inductor_lab.compiler.lower.ops.reduce import accumulator
from inductor_lab.compiler.lower.promote import operand
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue, identity

aten = torch.ops.aten


@lowers(aten.searchsorted.Tensor, aten.searchsorted.Scalar)
def searchsorted(
    build: Builder,
    ordered: TensorValue,
    values: Any,
    *,
    right: bool = False,
    side: str | None = None,
    sorter: TensorValue | None = None,
    **_: Any,
) -> TensorValue:
    """The first position in each row of `ordered` with an element >= the value (> the value if
    `right`); `sorter` holds the positions of each row in sorted order."""
    meta = build.result
    size = ordered.shape[-1]
    if is_int(size, 0):
        return build.pointwise(build.const(0, meta.dtype))
    own = identity(meta.shape)
    along = Axis("r0", size)
    row = (*own[: ordered.ndim - 1], Index.of(along))
    place = row
    if sorter is not None:
        place = (*row[:-1], build.gathered(build.load(sorter, row), size))
    wide = accumulator(_common(ordered, values))
    element = build.convert(build.load(ordered, place), wide)
    value = operand(build, values, own, wide)
    test = build.op("gt" if right or side == "right" else "ge", element, value)
    if is_int(size, 1):
        return build.pointwise(build.op("logical_not", test))
    found = build.reduction("bisect", test, (along,), meta.having(torch.int64))
    return build.rounded(found, meta)


@lowers(aten.bucketize.Tensor, aten.bucketize.Scalar)
def bucketize(
    build: Builder, values: Any, boundaries: TensorValue, *, right: bool = False, **_: Any
) -> TensorValue:
    """The index of the bucket between sorted boundaries for each value."""
    return searchsorted(build, boundaries, values, right=right)


def _common(ordered: TensorValue, values: Any) -> torch.dtype:
    """The dtype in which elements and values are compared: their promoted dtype."""
    operands = [
        torch.empty([1] * one.ndim, dtype=one.dtype, device="meta")
        if isinstance(one, TensorValue)
        else one
        for one in (ordered, values)
    ]
    return torch.result_type(*operands)
