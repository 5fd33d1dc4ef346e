"""The scalar operations that a loop body may use: their names, arity and rough cost.

`ir/ops_torch.py` defines the meaning of each (the torch function that computes it), and each code
generator has a table of its spelling.  Three conventions keep these tables short:

* operands have one dtype, which is the dtype the operation computes in; promotion is a `convert`;
* float16 and bfloat16 are storage only: a body converts to float32, computes, converts back;
* comparisons, `isnan`, `isinf` and the logical operations give bool, all others the operand dtype.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from inductor_lab.compiler.torch_door.torch_types import torch


@dataclass(frozen=True, slots=True)
class OpSpec:
    """`arity` is the number of operands, `flops` the cost in cost models, `meaning` a text for the
    docs."""

    arity: int
    flops: int
    meaning: str


def _specs(arity: int, flops: int, rows: str) -> dict[str, OpSpec]:
    table = {}
    for row in rows.strip().splitlines():
        name, meaning = row.strip().split(" ", 1)
        table[name] = OpSpec(arity, flops, meaning.strip())
    return table


CHEAP = """
    add        a + b, integers wrap
    sub        a - b
    mul        a * b
    minimum    the smaller; NaN if either is NaN
    maximum    the larger; NaN if either is NaN
    bitwise_and  a & b, on integers and bool
    bitwise_or   a | b
    bitwise_xor  a ^ b
    shift_left   a << b; 0 where b is negative or at least the width
    shift_right  a >> b, arithmetic; the sign where b is negative or at least the width
    logical_and  a and b, on bool
    logical_or   a or b
    logical_xor  a != b
    eq         a == b
    ne         a != b
    lt         a < b
    le         a <= b
    gt         a > b
    ge         a >= b
    copysign   |a| with the sign of b
"""
CHEAP_UNARY = """
    convert     to the dtype of the node; float to bool is != 0, float to int truncates
    bitcast     the same bits as another dtype of the same width
    neg         -a, integers wrap
    abs         |a|
    sign        -1, 0 or 1; 0 for NaN, as torch.sign has it
    logical_not not a, on bool
    bitwise_not ~a
    isnan       is it NaN
    isinf       is it infinite
    signbit     is the sign bit set
    ceil        toward +inf
    floor       toward -inf
    trunc       toward zero
    round       to nearest, ties to even
    square      a * a
    relu        max(a, 0); NaN stays NaN
"""
DIVISIONS = """
    truediv    a / b, on floats
    floordiv   floor(a / b)
    truncdiv   a / b toward zero, on integers
    remainder  a - b * floor(a / b), sign of b
    fmod       a - b * trunc(a / b), sign of a
"""
MATH = """
    exp      e**a
    exp2     2**a
    expm1    e**a - 1
    log      natural logarithm
    log2     base 2
    log10    base 10
    log1p    log(1 + a)
    sin      radians
    cos      radians
    tan      radians
    asin     arc sine
    acos     arc cosine
    atan     arc tangent
    sinh     hyperbolic sine
    cosh     hyperbolic cosine
    tanh     hyperbolic tangent
    asinh    inverse hyperbolic sine
    acosh    inverse hyperbolic cosine
    atanh    inverse hyperbolic tangent
    erf      error function
    erfc     1 - erf(a)
    erfinv   inverse of erf
    lgamma   log of |gamma|
    digamma  derivative of lgamma
    sigmoid  1 / (1 + e**-a)
"""

OPS: dict[str, OpSpec] = {
    **_specs(2, 1, CHEAP),
    **_specs(1, 1, CHEAP_UNARY),
    **_specs(2, 4, DIVISIONS),
    **_specs(1, 2, "reciprocal 1 / a\nsqrt square root\nrsqrt 1 / sqrt(a)"),
    **_specs(1, 10, MATH),
    **_specs(2, 20, "pow a ** b\natan2 angle of (b, a)\nhypot sqrt(a*a + b*b)"),
    **_specs(3, 1, "where a ? b : c, a is bool\nfma a * b + c"),
    **_specs(
        2,
        10,
        """philox_uniform  float32 in [0, 1): first word of Philox4x32-10(seed a, offset b)
           philox_normal   float32 normal: Box-Muller on words one and two of it
           philox_bits     int64 in [0, 2**32): the first word itself""",
    ),
}
"""Every operation, by name.  The verifier rejects an `Op` with another name or arity."""

ELEMENTS = frozenset(
    getattr(torch, name)
    for name in "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16"
    " float32 float64".split()
)
"""Dtypes that loop nests load and store.  Libraries compute with the others, such as complex."""

DIVIDING = ("floordiv", "truncdiv", "remainder", "fmod")
"""Operations that are undefined if integers are divided by zero."""

EXPENSIVE_FLOPS = 10
"""Recomputing an operation of at least this cost is not free."""

PREDICATES = frozenset(
    "eq ne lt le gt ge isnan isinf signbit logical_and logical_or logical_xor logical_not".split()
)
"""Operations whose result is bool for operands of any dtype."""

REDUCTIONS: dict[str, str] = {
    "sum": "a + b, from 0; accumulates in the dtype of the nest",
    "prod": "a * b, from 1",
    "max": "the larger, NaN wins, from the lowest value",
    "min": "the smaller, NaN wins, from the highest value",
    "any": "a or b, from False",
    "all": "a and b, from True",
    "argmax": "position (int64, row-major over the reduced axes) of the first maximum; NaN wins",
    "argmin": "position of the first minimum; NaN wins",
    "bisect": "number of positions before the first true one, by binary search: the body must be"
    " false and then true along the one reduced axis (otherwise the result is unspecified)",
}
"""Kinds of `Reduction`: how two partial results are combined, and the result for no elements."""

SCANS: dict[str, str] = {
    **{kind: REDUCTIONS[kind] for kind in ("sum", "prod", "max", "min", "any", "all")},
    "logsumexp": "log(exp(a) + exp(b)), from -inf",
    "argmax_last": "position (int64) of the last maximum so far; NaN wins, the last one too",
    "argmin_last": "position of the last minimum so far; NaN wins, the last one too",
}
"""Kinds of `Scan`: how the running value is combined with the next element."""


def neutral(kind: str, dtype: torch.dtype) -> int | float | bool:
    """The neutral element of a kind of reduction, scan or scatter, as a number of `dtype`."""
    if kind in ("sum", "any", "add"):
        value: float = 0
    elif kind in ("prod", "all", "mul"):
        value = 1
    else:
        lowest = "min" not in kind
        if dtype is torch.bool:
            value = not lowest
        elif dtype.is_floating_point:
            value = -math.inf if lowest else math.inf
        else:
            value = torch.iinfo(dtype).min if lowest else torch.iinfo(dtype).max
    if dtype is torch.bool:
        return bool(value)
    return float(value) if dtype.is_floating_point else int(value)


POSITIONS = frozenset("argmax argmin bisect argmax_last argmin_last".split())
"""Kinds of `Reduction` and `Scan` whose result is a position."""

SCATTERS = frozenset(["store", "add", "mul", "maximum", "minimum"])
"""Kinds of `Scatter`: a plain store, or the operation that combines the old and the new value."""

_WORDS = frozenset([torch.int32, torch.int64])

ATOMICS: dict[str, frozenset[torch.dtype]] = {
    "add": _WORDS | {torch.float32, torch.float64},
    "maximum": _WORDS,
    "minimum": _WORDS,
    "mul": frozenset(),
}
"""Kind of `Scatter` → the dtypes for which a GPU has an atomic operation with torch's NaN rules."""
