"""Elementwise operators: one table row each, or a small function if there are several cases.

A row names the promotion rule of the computation dtype (see `promote`) and the operation of
`ir/ops.py`.  Operands are converted to that dtype, the result to the dtype of the node; so float16
is rounded after every operator, as in eager mode.

Inductor: `lowering.py`, `register_pointwise`, `make_pointwise`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import sympy
import torch

from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.lower.builder import Builder, size_of
from inductor_lab.compiler.lower.extern import transfer
from inductor_lab.compiler.lower.promote import (
    KEEP,
    TO_BOOL,
    TO_FLOAT,
    as_eager,
    computation_dtype,
    given_operands,
    operand,
    operand_as_eager,
)
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue, identity, same_strides

aten, prims = torch.ops.aten, torch.ops.prims
Compute = Callable[..., Expr]
"""`compute(build, *operands)`: the body, from operands of one dtype."""


def elementwise(build: Builder, kind: Any, compute: Compute, *args: Any) -> TensorValue:
    """A nest whose body is `compute` of the operands at each point of the result."""
    at = identity(build.result.shape)
    dtype = computation_dtype(given_operands(build, len(args)), kind)
    operands = (operand_as_eager(build, a, at, dtype, place) for place, a in enumerate(args))
    return build.pointwise(compute(build, *operands))


def named(name: str) -> Compute:
    """The operation `name`."""
    return lambda build, *operands: build.op(name, *operands)


def register(kind: Any, table: dict[Any, str | Compute]) -> None:
    """Register the rows of a table: overload → operation, all of one promotion kind."""

    def lowering(compute: Compute, build: Builder, *args: Any) -> TensorValue:
        return elementwise(build, kind, compute, *args)

    for op, how in table.items():
        lowers(op)(partial(lowering, named(how) if isinstance(how, str) else how))


# ---- one operand ----

register(
    TO_FLOAT,
    {
        getattr(aten, name).default: name
        for name in """
            exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh
            acosh atanh erf erfc erfinv lgamma digamma sigmoid reciprocal sqrt
        """.split()
    },
)


def unless(integers: Compute, floats: str) -> Compute:
    """`floats` on floating point numbers, `integers` on the others."""

    def compute(build: Builder, x: Expr, *rest: Expr) -> Expr:
        if x.dtype.is_floating_point:
            return build.op(floats, x, *rest)
        return integers(build, x, *rest)

    return compute


def _same(build: Builder, x: Expr) -> Expr:
    return x


def _never(build: Builder, x: Expr) -> Expr:
    return build.const(False, torch.bool)


def _below_zero(build: Builder, x: Expr) -> Expr:
    return _never(build, x) if x.dtype is torch.bool else build.op("lt", x, build.const(0, x.dtype))


def on_bool(bools: str | Compute, others: str | Compute) -> Compute:
    """`bools` on bool operands, `others` on numbers."""
    special = named(bools) if isinstance(bools, str) else bools
    usual = named(others) if isinstance(others, str) else others

    def compute(build: Builder, *operands: Expr) -> Expr:
        return (special if operands[0].dtype is torch.bool else usual)(build, *operands)

    return compute


register(
    KEEP,
    {
        aten.neg.default: "neg",
        aten.abs.default: on_bool(_same, "abs"),
        aten.sign.default: on_bool(_same, "sign"),
        aten.relu.default: "relu",
        aten.square.default: on_bool(_same, "square"),
        aten.bitwise_not.default: on_bool("logical_not", "bitwise_not"),
        aten.ceil.default: unless(_same, "ceil"),
        aten.floor.default: unless(_same, "floor"),
        aten.trunc.default: unless(_same, "trunc"),
        aten.round.default: unless(_same, "round"),
        prims.round.default: unless(_same, "round"),
    },
)
register(
    TO_BOOL,
    {
        aten.isnan.default: unless(_never, "isnan"),
        aten.isinf.default: unless(_never, "isinf"),
        aten.signbit.default: unless(_below_zero, "signbit"),
    },
)

# ---- two operands ----


def both(packet: Any, *more: str) -> list[Any]:
    """The Tensor and Scalar overloads of an operator, and others by name."""
    return [getattr(packet, name) for name in ("Tensor", "Scalar", *more)]


def table_of(rows: dict[Any, str | Compute], *more: str) -> dict[Any, str | Compute]:
    """The same rows for each of `both` overloads."""
    return {op: how for packet, how in rows.items() for op in both(packet, *more)}


def _ordered(name: str) -> Compute:
    """A comparison; bool operands are compared as numbers."""

    def compute(build: Builder, a: Expr, b: Expr) -> Expr:
        if a.dtype is torch.bool:
            a, b = build.convert(a, torch.uint8), build.convert(b, torch.uint8)
        return build.op(name, a, b)

    return compute


def _unless_nan(name: str) -> Compute:
    """The minimum or maximum; if one operand is NaN, the other one."""

    def compute(build: Builder, a: Expr, b: Expr) -> Expr:
        if not a.dtype.is_floating_point:
            return build.op(name, a, b)
        a_is, b_is = build.op("isnan", a), build.op("isnan", b)
        return build.op("where", a_is, b, build.op("where", b_is, a, build.op(name, a, b)))

    return compute


register(
    KEEP,
    {
        aten.fmax.default: on_bool("logical_or", _unless_nan("maximum")),
        aten.fmin.default: on_bool("logical_and", _unless_nan("minimum")),
        prims.mul.default: on_bool("logical_and", "mul"),
        aten.maximum.default: on_bool("logical_or", "maximum"),
        aten.minimum.default: on_bool("logical_and", "minimum"),
        **table_of({aten.mul: on_bool("logical_and", "mul")}),
        **table_of({aten.remainder: "remainder"}, "Scalar_Tensor"),
        **table_of({aten.fmod: "fmod"}),
        **table_of(
            {
                aten.bitwise_and: on_bool("logical_and", "bitwise_and"),
                aten.bitwise_or: on_bool("logical_or", "bitwise_or"),
                aten.bitwise_xor: on_bool("logical_xor", "bitwise_xor"),
            },
            "Scalar_Tensor",
        ),
        aten.bitwise_left_shift.Tensor: "shift_left",
        aten.bitwise_left_shift.Tensor_Scalar: "shift_left",
        aten.bitwise_right_shift.Tensor: "shift_right",
        aten.bitwise_right_shift.Tensor_Scalar: "shift_right",
        aten.__lshift__.Scalar: "shift_left",
        aten.__lshift__.Tensor: "shift_left",
        aten.__rshift__.Scalar: "shift_right",
        aten.__rshift__.Tensor: "shift_right",
        aten.hypot.default: "hypot",
    },
)
register(
    TO_FLOAT,
    {
        **table_of({aten.div: "truediv", aten.true_divide: "truediv"}),
        **table_of({aten.copysign: "copysign"}),
        aten.atan2.default: "atan2",
    },
)
register(
    TO_BOOL,
    table_of(
        {
            aten.eq: "eq",
            aten.ne: "ne",
            aten.lt: _ordered("lt"),
            aten.le: _ordered("le"),
            aten.gt: _ordered("gt"),
            aten.ge: _ordered("ge"),
        }
    ),
)


def _logical(name: str) -> Compute:
    """Operands are converted to the common dtype before they are tested, as in eager mode: with
    uint8, a 0-dim 256 becomes 0, which is false."""
    return lambda build, *of: build.op(name, *(build.convert(x, torch.bool) for x in of))


register(
    TO_BOOL,
    {
        getattr(aten, name).default: _logical(name)
        for name in ("logical_and", "logical_or", "logical_xor", "logical_not")
    },
)


def _plus(
    name: str, build: Builder, x: Any, y: Any, alpha: Any = 1, reverse: bool = False
) -> TensorValue:
    """x + alpha * y, or x - alpha * y; if `reverse`, y - alpha * x."""

    def compute(build: Builder, a: Expr, b: Expr) -> Expr:
        a, b = (b, a) if reverse else (a, b)
        if a.dtype is torch.bool:
            return build.op("logical_or", a, b) if alpha else a
        if alpha != 1:
            b = build.op("mul", b, build.const(as_eager(build, alpha), b.dtype))
        return build.op(name, a, b)

    return elementwise(build, KEEP, compute, x, y)


lowers(aten.add.Tensor, aten.add.Scalar)(partial(_plus, "add"))
lowers(aten.sub.Tensor, aten.sub.Scalar)(partial(_plus, "sub"))
lowers(aten.rsub.Tensor, aten.rsub.Scalar)(partial(_plus, "sub", reverse=True))


POWERS: dict[float | None, Compute] = {
    0.5: named("sqrt"),
    1: _same,
    2: named("square"),
    3: lambda build, x: build.op("mul", build.op("mul", x, x), x),
    -0.5: named("rsqrt"),
    -1: named("reciprocal"),
    -2: lambda build, x: build.op("reciprocal", build.op("square", x)),
}
"""Exponents that eager mode computes without `pow`, with the same rounding."""

PRODUCTS = frozenset({*range(-32, -2), *range(4, 33)})
"""Exponents for which a float of up to 32 bits is multiplied in double on a CPU and rounded
once."""


def _product(count: int, build: Builder, x: Expr) -> Expr:
    """x ** count by repeated squaring."""
    result = wide = build.convert(x, torch.float64)
    for bit in f"{abs(count):b}"[1:]:
        result = build.op("mul", result, result)
        result = build.op("mul", result, wide) if bit == "1" else result
    return build.convert(build.op("reciprocal", result) if count < 0 else result, x.dtype)


def _root(name: str, build: Builder, x: Expr) -> Expr:
    """Computed by `pow`, as eager mode does for float16 on a CPU: -inf and -0.0 count as
    positive."""
    below, infinite = build.const(-math.inf, x.dtype), build.const(math.inf, x.dtype)
    positive = build.op("where", build.op("eq", x, below), infinite, x)
    return build.op(name, build.op("add", positive, build.const(0, x.dtype)))


@lowers(aten.pow.Tensor_Scalar)
def power(build: Builder, x: TensorValue, exponent: Any) -> TensorValue:
    """x ** exponent, by multiplication or a root where that is exact."""
    dtype = computation_dtype(given_operands(build, 2), KEEP)
    exponent = int(exponent) if isinstance(exponent, bool) else exponent
    is_float = dtype.is_floating_point
    if not (is_float or isinstance(exponent, float)):
        below = "integers to negative integer powers are not allowed"
        build.require(sympy.Ge(size_of(exponent), 0), below)
    known = exponent if isinstance(exponent, int | float) else None
    compute = POWERS.get(known) if is_float or known in (1, 2, 3) else None
    on_cpu = build.device == "cpu" and build.options.target is None
    if known in PRODUCTS and is_float and dtype is not torch.float64 and on_cpu:
        compute = partial(_product, int(exponent))
    if known in (0.5, -0.5) and build.result.dtype is torch.float16 and on_cpu:
        compute = partial(_root, "sqrt" if known == 0.5 else "rsqrt")
    if compute is None:
        return elementwise(build, KEEP, named("pow"), x, exponent)
    return build.pointwise(compute(build, operand(build, x, identity(build.result.shape), dtype)))


register(KEEP, {aten.pow.Tensor_Tensor: "pow", aten.pow.Scalar: "pow"})


# ---- three operands ----


@lowers(aten.clamp.default, aten.clamp.Tensor)
def clamp(build: Builder, x: Any, min: Any = None, max: Any = None) -> TensorValue:
    """minimum(maximum(x, min), max); a limit that is None is skipped."""
    given = {"maximum": min, "minimum": max}
    names = [name for name, limit in given.items() if limit is not None]

    def compute(build: Builder, value: Expr, *limits: Expr) -> Expr:
        for name, limit in zip(names, limits, strict=True):
            value = build.op(name, value, limit)
        return value

    dtype = computation_dtype(given_operands(build, 3), KEEP)
    limits = [given[name] for name in names]
    at = identity(build.result.shape)
    return build.pointwise(compute(build, *(operand(build, o, at, dtype) for o in (x, *limits))))


@lowers(aten.where.self)
def where(build: Builder, condition: TensorValue, x: Any, y: Any) -> TensorValue:
    """x where the condition holds, y elsewhere."""
    at = identity(build.result.shape)
    dtype = build.result.dtype
    test = operand(build, condition, at, torch.bool)
    chosen = [operand(build, o, at, dtype) for o in (x, y)]
    return build.pointwise(build.op("where", test, *chosen))


# ---- copies and conversions ----


@lowers(aten.clone.default, aten._to_copy.default, prims.convert_element_type.default)
def to_copy(build: Builder, x: TensorValue | float, *given: Any, **more: Any) -> TensorValue:
    """A copy with the dtype, strides and device of the node's result; x may be a number that vmap
    has promoted."""
    meta = build.result
    if not isinstance(x, TensorValue):
        return build.pointwise(build.const(x, meta.dtype))
    if x.device != meta.device:
        x = transfer(build, x, meta.device)
        arrived = build.buffers[x.buffer].layout
        if x.dtype == meta.dtype and same_strides(arrived, meta.layout):
            return x
    return build.pointwise(build.load(x, identity(meta.shape)))


@lowers(aten.copy.default)
def copy(build: Builder, target: TensorValue, source: TensorValue, *given: Any) -> TensorValue:
    """`source`, broadcast and converted to the shape and dtype of `target`."""
    return to_copy(build, source)


@lowers(aten.lift_fresh_copy.default, prims.view_of.default)
def itself(build: Builder, x: TensorValue) -> TensorValue:
    """The tensor itself.  A constant (`lift_fresh_copy`) needs no copy, because nothing writes to
    it."""
    return x
