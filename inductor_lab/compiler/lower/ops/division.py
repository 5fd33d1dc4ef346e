"""Division with rounding to integers; intermediate results are rounded as in eager mode.

    float16 x // y   →   where(below, f16(q - 1), q), q = f16(f16(x - fmod(x, y)) / y), and so on

Inductor: `lowering.py`, `div_floor`; `div_mode` in `decomposition.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.ir.index import is_int
from inductor_lab.compiler.lower.builder import Builder
from inductor_lab.compiler.lower.ops.pointwise import elementwise, named
from inductor_lab.compiler.lower.promote import KEEP, TO_FLOAT
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue

aten = torch.ops.aten


@lowers(aten.div.Tensor_mode, aten.div.Scalar_mode)
def div_mode(build: Builder, x: Any, y: Any, rounding_mode: str | None = None) -> TensorValue:
    """x / y without rounding, rounded toward zero, or rounded toward -inf.

    Eager mode rounds each step of a 16-bit division, unless y is a single number.
    """
    several = isinstance(y, TensorValue) and not all(is_int(size, 1) for size in y.shape)

    def stepwise(name: str, *operands: Expr) -> Expr:
        value = build.op(name, *operands)
        return build.convert(build.convert(value, build.result.dtype), value.dtype)

    def truncated(build: Builder, a: Expr, b: Expr) -> Expr:
        if not a.dtype.is_floating_point:
            return build.op("truncdiv", a, b)
        return build.op("trunc", (stepwise if several else build.op)("truediv", a, b))

    def floored(build: Builder, a: Expr, b: Expr) -> Expr:
        if not several or a.dtype == build.result.dtype:
            return build.op("floordiv", a, b)
        zero, one, half = (build.const(value, a.dtype) for value in (0, 1, 0.5))
        rest = build.op("fmod", a, b)
        other_sign = build.op("ne", build.op("lt", b, zero), build.op("lt", rest, zero))
        below = build.op("logical_and", build.op("ne", rest, zero), other_sign)
        quotient = stepwise("truediv", stepwise("sub", a, rest), b)
        quotient = build.op("where", below, stepwise("sub", quotient, one), quotient)
        whole = build.op("floor", quotient)
        nearer = build.op("gt", stepwise("sub", quotient, whole), half)
        whole = build.op("where", nearer, stepwise("add", whole, one), whole)
        direct = stepwise("truediv", a, b)
        signed = build.op("copysign", zero, direct)
        whole = build.op("where", build.op("eq", quotient, zero), signed, whole)
        return build.op("where", build.op("eq", b, zero), direct, whole)

    if rounding_mode is None:
        return elementwise(build, TO_FLOAT, named("truediv"), x, y)
    return elementwise(build, KEEP, floored if rounding_mode == "floor" else truncated, x, y)


lowers(aten.floor_divide.default)(partial(div_mode, rounding_mode="floor"))
