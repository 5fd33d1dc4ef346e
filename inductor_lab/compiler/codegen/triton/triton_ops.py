"""The tables for the Triton text of each operation, dtype and constant.

Inductor: `TritonOverrides` and `TritonKernelOverrides` in `codegen/triton.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from inductor_lab.compiler.codegen.infix import INFIX_TEXTS
from inductor_lab.compiler.ir.ops import ELEMENTS, OPS

TRITON_TYPES: Mapping[torch.dtype, str] = {
    dtype: "int1" if dtype is torch.bool else str(dtype).removeprefix("torch.")
    for dtype in ELEMENTS
}
"""The name in `tl` of each dtype that a kernel can use."""

POINTER_TYPES: Mapping[torch.dtype, str] = {
    torch.bool: "*i1",
    torch.uint8: "*u8",
    torch.uint16: "*u16",
    torch.uint32: "*u32",
    torch.uint64: "*u64",
    torch.int8: "*i8",
    torch.int16: "*i16",
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.float64: "*fp64",
}
"""The name of a pointer to each dtype in the signatures of compiled kernels."""

_INFIX_TEXTS = {**INFIX_TEXTS, "logical_xor": "{0} ^ {1}", "truncdiv": "{0} // {1}"}
_LIBDEVICE = """
    expm1 log1p log2 log10 tan asin acos atan sinh cosh tanh asinh acosh atanh erfc erfinv
    lgamma trunc sqrt exp2
""".split()

TRITON_OPS: dict[str, str] = {
    **_INFIX_TEXTS,
    **{name: f"libdevice.{name}({{0}})" for name in _LIBDEVICE},
    **{name: f"libdevice.{name}({{0}}, {{1}})" for name in ("pow", "atan2", "hypot", "copysign")},
    **{
        name: f"tl.{name}({{0}})" for name in ("exp", "log", "sin", "cos", "rsqrt", "ceil", "floor")
    },
    "ceil.int": "{0}",
    "floor.int": "{0}",
    "trunc.int": "{0}",
    "round.int": "{0}",
    "add.bool": "{0} | {1}",
    "mul.bool": "{0} & {1}",
    "maximum": "lab.maximum({0}, {1})",
    "maximum.bool": "{0} | {1}",
    "minimum": "lab.minimum({0}, {1})",
    "minimum.bool": "{0} & {1}",
    "shift_left": "lab.shift_left({0}, {1}, {bits})",
    "shift_right": "lab.shift_right({0}, {1}, {bits})",
    "convert": "{0}.to(tl.{dtype})",
    "convert.to_bool": "{0} != 0",
    "convert.to_uint8.float": "{0}.to(tl.int64).to(tl.uint8)",
    "bitcast": "{0}.to(tl.{dtype}, bitcast=True)",
    "neg": "{0} * -1.0",  # Triton 3.6 compiles `-x` to 0 - x: wrong for 0
    "neg.int": "-{0}",
    "abs": "tl.abs({0})",
    "erf": "lab.erf({0})",
    "sign": "lab.sign({0})",
    "sign.bool": "{0}",
    "logical_not": "~{0}",
    "bitwise_not": "~{0}",
    "isnan": "{0} != {0}",
    "isinf": 'tl.abs({0}) == float("inf")',
    "signbit": "{0}.to(tl.int{bits}, bitcast=True) < 0",
    "signbit.int": "{0} < 0",
    "round": "libdevice.nearbyint({0})",
    "square": "{0} * {0}",
    "relu": "lab.relu({0})",
    "floordiv": "lab.floordiv_float({0}, {1})",
    "floordiv.int": "lab.floordiv({0}, {1})",
    "remainder": "lab.modulo_float({0}, {1})",
    "remainder.int": "lab.modulo({0}, {1})",
    "fmod": "libdevice.fmod({0}, {1})",
    "fmod.int": "{0} % {1}",
    "pow.int": "lab.power({0}, {1})",
    "digamma": "lab.digamma({0})",
    "sigmoid": "1 / (1 + tl.exp(-{0}))",
    "reciprocal": "1 / {0}",
    "where": "tl.where({0}, {1}, {2})",
    "fma": "tl.fma({0}, {1}, {2})",
    "philox_uniform": "lab.philox_uniform({0}, {1})",
    "philox_normal": "lab.philox_normal({0}, {1})",
    "philox_bits": "lab.philox_bits({0}, {1})",
}
"""Maps an operation to its text.  `{0}` is an operand, `{dtype}` the type of the result, `{bits}`
its width.

Entries `name.int` and `name.bool` are for operands of this kind if they need another text.  An
entry `convert.to_…` is for results of this dtype (Triton converts a negative float to 0 in uint8,
but torch wraps around).
"""

COMPARISONS = frozenset(["eq", "ne", "lt", "le", "gt", "ge"])

LITERALS_ALLOWED = frozenset(_INFIX_TEXTS)
"""Operations in which Triton gives a literal the dtype of the other operand.  The functions of `tl`
convert a literal to int32 or float32."""

COMBINE: Mapping[str, str] = {
    "sum": "{0} + {1}",
    "prod": "{0} * {1}",
    "max": "lab.maximum({0}, {1})",
    "max.bool": "{0} | {1}",
    "min": "lab.minimum({0}, {1})",
    "min.bool": "{0} & {1}",
    "any": "{0} | {1}",
    "all": "{0} & {1}",
}
"""Maps a kind of reduction to the text that combines an accumulator and a value."""

FINISH: Mapping[str, str] = {
    **{kind: f"lab.row_{kind}({{0}})" for kind in ("sum", "prod", "max", "min", "any", "all")},
    "max.bool": "lab.row_any({0})",
    "min.bool": "lab.row_all({0})",
    "argmax": "lab.row_argmax({0}, {1})",
    "argmin": "lab.row_argmin({0}, {1})",
}
"""Maps a kind of reduction to the text that reduces a block to one value for each row."""


SCANNED: Mapping[str, str] = {
    **{
        kind: f"lab.scan_{kind}({{0}}, {{1}})"
        for kind in ("sum", "prod", "max", "min", "any", "all", "logsumexp")
    },
    **{
        kind: f"lab.scan_{kind}({{0}}, {{1}}, {{2}}, {{3}})"
        for kind in ("argmax_last", "argmin_last")
    },
}
"""Maps a kind of scan to the text that scans a block and returns the values and the carry into the
next block.  The operands are the block (and its positions), then the carry from the last block."""


ATOMIC_NAMES = {"add": "atomic_add", "maximum": "atomic_max", "minimum": "atomic_min"}


def dtype_kind(dtype: torch.dtype) -> str:
    """Return `"bool"`, `"int"` or `"float"`."""
    if dtype is torch.bool:
        return "bool"
    return "float" if dtype.is_floating_point else "int"


def template(table: Mapping[str, str], name: str, dtype: torch.dtype) -> str:
    """Return the entry for operands of `dtype`: `name.int` if it exists, otherwise `name`."""
    return table.get(f"{name}.{dtype_kind(dtype)}") or table[name]


def bits(dtype: torch.dtype) -> int:
    """Return the width in bits."""
    return dtype.itemsize * 8


def literal(value: float, dtype: torch.dtype) -> str:
    """Return a number as a Python literal of the kind of `dtype`."""
    if dtype is torch.bool:
        return str(bool(value))
    if not dtype.is_floating_point:
        return str(int(value))
    number = float(value)
    return repr(number) if math.isfinite(number) else f'float("{number}")'


def typed_literal(value: float, dtype: torch.dtype) -> str:
    """Return a literal with its dtype; Triton treats a plain float as float32."""
    text = literal(value, dtype)
    return text if dtype is torch.float32 else f"tl.full([], {text}, tl.{TRITON_TYPES[dtype]})"


assert {name.split(".")[0] for name in TRITON_OPS} == OPS.keys(), "every operation needs a text"
