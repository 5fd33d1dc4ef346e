"""The rules of a legal expression in the body of a nest; `verify.py` runs them.

Inductor: scattered asserts; tinygrad has such a file (`uop/spec.py`).
"""

from __future__ import annotations

import torch

from inductor_lab.compiler.ir.expr import Const, Expr, IndexValue, Load, Masked, Op, Temp
from inductor_lab.compiler.ir.index import (
    Index,
    Size,
    add_sizes,
    is_int,
    is_negative,
    is_nonnegative,
    mul_sizes,
)
from inductor_lab.compiler.ir.ops import OPS, PREDICATES
from inductor_lab.compiler.ir.rules import HALF, Context, expr_rule
from inductor_lab.compiler.ir.text import expr_text, index_text


@expr_rule
def load_fits_buffer(expr: Expr, context: Context) -> str | None:
    """A load has one index for each dimension, and the dtype of its buffer."""
    if not isinstance(expr, Load) or expr.buffer not in context.program.buffers:
        return None
    buffer = context.program.buffers[expr.buffer]
    rank = len(buffer.layout.size)
    if len(expr.index) != rank:
        return f"{expr_text(expr)} has {len(expr.index)} indices, the buffer has {rank} dimensions"
    if expr.dtype != buffer.dtype:
        return f"{expr_text(expr)} is read as {expr.dtype}, the buffer is {buffer.dtype}"
    return None


@expr_rule
def axes_are_own(expr: Expr, context: Context) -> str | None:
    """Indices use the nest's own axes only."""
    for index in expr.indices():
        for axis in index.axes():
            if axis not in context.axes:
                return f"uses the axis {axis.name}<{axis.size}, which is not a loop of this nest"
    return None


@expr_rule
def in_bounds(expr: Expr, context: Context) -> str | None:
    """A load outside `Masked` stays inside its buffer, unless the bounds cannot be computed."""
    if not isinstance(expr, Load) or context.masked or expr.buffer not in context.program.buffers:
        return None
    if any(is_int(axis.size, 0) for axis in context.axes):
        return None
    for index, size in zip(
        expr.index, context.program.buffers[expr.buffer].layout.size, strict=False
    ):
        if index.is_affine and _surely_outside(index, size):
            return f"the index {index_text(index)} of {expr.buffer} leaves 0..{size}"
    return None


def _surely_outside(index: Index, size: Size) -> bool:
    span = index.bounds()
    if span is None:
        return False
    beyond = add_sizes(span[1], mul_sizes(size, -1))
    return is_negative(span[0]) or is_nonnegative(beyond)


@expr_rule
def op_known(expr: Expr, context: Context) -> str | None:
    """The operation is in `OPS` and has the right number of operands."""
    if not isinstance(expr, Op):
        return None
    spec = OPS.get(expr.name)
    if spec is None:
        return f"there is no operation {expr.name}"
    if len(expr.args) != spec.arity:
        return f"{expr.name} takes {spec.arity} operands, not {len(expr.args)}"
    return None


_FLOAT_ONLY = frozenset(
    """truediv reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan
    sinh cosh tanh asinh acosh atanh erf erfc erfinv lgamma digamma sigmoid atan2 hypot copysign
    """.split()
)
_WHOLE_ONLY = frozenset("truncdiv shift_left shift_right".split())
_BITS_ONLY = frozenset("bitwise_and bitwise_or bitwise_xor bitwise_not".split())
_BOOL_ONLY = frozenset("logical_and logical_or logical_xor logical_not".split())


@expr_rule
def operands_agree(expr: Expr, context: Context) -> str | None:
    """All operands have one dtype, and the operation supports it."""
    if not isinstance(expr, Op) or expr.name in ("convert", "bitcast") or not expr.args:
        return None
    name, args = expr.name, expr.args
    if name == "where":
        if args[0].dtype is not torch.bool:
            return f"the condition of where is {args[0].dtype}"
        args = args[1:]
    dtypes = {arg.dtype for arg in args}
    if len(dtypes) > 1:
        return f"the operands of {name} are {', '.join(sorted(map(str, dtypes)))}"
    dtype = args[0].dtype
    whole = not dtype.is_floating_point and not dtype.is_complex
    wrong = (
        (name in _FLOAT_ONLY and whole)
        or (name in _WHOLE_ONLY and (not whole or dtype is torch.bool))
        or (name in _BITS_ONLY and not whole)
        or (name in _BOOL_ONLY and dtype is not torch.bool)
        or (name.startswith("philox") and dtype is not torch.int64)
    )
    return f"{name} is not defined on {dtype}" if wrong else None


@expr_rule
def result_follows(expr: Expr, context: Context) -> str | None:
    """The dtype of an operation is bool for a predicate, otherwise the dtype of its operands."""
    if not isinstance(expr, Op) or not expr.args or expr.name == "convert":
        return None
    operand = expr.args[-1].dtype
    if expr.name == "bitcast":
        if operand.itemsize == expr.dtype.itemsize:
            return None
        return f"bitcast from {operand} to {expr.dtype} changes the width"
    expected = torch.bool if expr.name in PREDICATES else operand
    if expr.name in ("philox_uniform", "philox_normal"):
        expected = torch.float32
    return None if expr.dtype is expected else f"{expr.name} gives {expected}, not {expr.dtype}"


@expr_rule
def no_half_arithmetic(expr: Expr, context: Context) -> str | None:
    """float16 and bfloat16 are only loaded, selected, converted and stored."""
    if not isinstance(expr, Op) or expr.name in ("convert", "bitcast", "where"):
        return None
    dtypes = {expr.dtype, *(arg.dtype for arg in expr.args)}
    half = sorted(str(dtype) for dtype in dtypes if dtype in HALF)
    return f"{expr.name} computes in {half[0]}" if half else None


@expr_rule
def mask_is_bool(expr: Expr, context: Context) -> str | None:
    """A mask is bool, and both alternatives have one dtype."""
    if not isinstance(expr, Masked):
        return None
    if expr.mask.dtype is not torch.bool:
        return f"the mask {expr_text(expr.mask)} is {expr.mask.dtype}"
    if expr.body.dtype != expr.other.dtype:
        both = f"{expr.body.dtype} where the mask is true and {expr.other.dtype} elsewhere"
        return f"masked gives {both}"
    return None


@expr_rule
def const_fits(expr: Expr, context: Context) -> str | None:
    """A constant of an integer dtype is an integer in its range."""
    if not isinstance(expr, Const) or expr.dtype.is_floating_point or expr.dtype.is_complex:
        return None
    low, high = 0, 1
    if expr.dtype is not torch.bool:
        low, high = torch.iinfo(expr.dtype).min, torch.iinfo(expr.dtype).max
    if isinstance(expr.value, float) or not low <= expr.value <= high:
        return f"the constant {expr.value!r} does not fit {expr.dtype}"
    return None


@expr_rule
def no_temps(expr: Expr, context: Context) -> str | None:
    """Named temporaries are only in loop trees, not in programs."""
    return f"uses the temporary {expr.name}" if isinstance(expr, Temp) else None


@expr_rule
def position_is_number(expr: Expr, context: Context) -> str | None:
    """A position used as a number is an integer or a float, not a bool."""
    if isinstance(expr, IndexValue) and expr.dtype is torch.bool:
        return f"the position {index_text(expr.index)} is used as bool"
    return None
