"""Operators on the bits of a number.

Inductor: `lowering.py`, `to_dtype_bitcast`; `nextafter` is left to ATen.
"""

from __future__ import annotations

import torch

from inductor_lab.compiler.base.errors import LeftToATen
from inductor_lab.compiler.ir.expr import Op
from inductor_lab.compiler.lower.builder import Builder
from inductor_lab.compiler.lower.promote import operand
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue, identity

aten = torch.ops.aten


@lowers(aten.view.dtype)
def bitcast(build: Builder, x: TensorValue, dtype: torch.dtype) -> TensorValue:
    """The same bits as another dtype of the same width; other widths are left to ATen."""
    if x.dtype.itemsize != dtype.itemsize or torch.bool in (x.dtype, dtype):
        raise LeftToATen
    value = build.load(x, identity(build.result.shape))
    return build.pointwise(Op("bitcast", (value,), dtype, build.origins))


WHOLE = {torch.float32: torch.int32, torch.float64: torch.int64}
"""Integer dtypes of the same width; their order is that of positive floats."""


@lowers(aten.nextafter.default)
def next_after(build: Builder, x: TensorValue, y: TensorValue) -> TensorValue:
    """The next float after x in the direction of y: the integer of its bits plus or minus one."""
    at, dtype = identity(build.result.shape), build.result.dtype
    if dtype not in WHOLE:
        raise LeftToATen
    start, end = operand(build, x, at, dtype), operand(build, y, at, dtype)
    op, whole, zero = build.op, WHOLE[dtype], build.const(0, dtype)
    one, back = build.const(1, whole), build.const(-1, whole)
    outwards = op("eq", op("lt", start, end), op("gt", start, zero))
    bits, step = Op("bitcast", (start,), whole, build.origins), op("where", outwards, one, back)
    least, moved = (
        Op("bitcast", (number,), dtype, build.origins) for number in (one, op("add", bits, step))
    )
    value = op("where", op("eq", start, zero), op("copysign", least, end), moved)
    value = op("where", op("eq", start, end), end, value)
    unknown = op("logical_or", op("isnan", start), op("isnan", end))
    return build.pointwise(op("where", unknown, op("add", start, end), value))
