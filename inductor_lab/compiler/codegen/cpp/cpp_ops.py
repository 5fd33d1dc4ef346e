"""The C++ text of each operation, type and literal.

`CPP_OPS` is a plain table from an operation to its text.  It is passed as an argument, so that a
lesson can patch one entry.  `{0}`, `{1}` and `{2}` are the operands, `{T}` is the C++ type of the
result, and `{A}` is the type of the first operand.  An entry `"name.dtype"` (`"truediv.float32"`)
takes precedence over `"name"`.

Inductor: `CppOverrides` in `codegen/cpp.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np
import torch

from inductor_lab.compiler.codegen.infix import INFIX_TEXTS
from inductor_lab.compiler.ir.expr import Const, Op
from inductor_lab.compiler.ir.rules import HALF

CTYPES: Mapping[torch.dtype, str] = {
    torch.float64: "double",
    torch.float32: "float",
    torch.float16: "lab_half",
    torch.bfloat16: "lab_bfloat16",
    torch.int64: "int64_t",
    torch.int32: "int32_t",
    torch.int16: "int16_t",
    torch.int8: "int8_t",
    torch.uint64: "uint64_t",
    torch.uint32: "uint32_t",
    torch.uint16: "uint16_t",
    torch.uint8: "uint8_t",
    torch.bool: "bool",
}
"""The C++ type of each dtype.  The two `lab_` types only store 16 bits in a struct."""

NARROW = frozenset({torch.int16, torch.int8, torch.uint16, torch.uint8})
"""C++ computes with these types as int, so the result is cast back to make it wrap around."""

_CALLS = """
    exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
    erf erfc erfinv lgamma digamma sigmoid sqrt rsqrt ceil floor trunc round pow atan2 hypot
    copysign isnan isinf signbit fma minimum maximum fmod remainder floordiv truncdiv shift_left
    shift_right abs sign relu
""".split()
_OPERANDS = {"pow": 2, "atan2": 2, "hypot": 2, "copysign": 2, "fma": 3, "minimum": 2, "maximum": 2}
_CALLED = re.compile(r"lab_\w+(<\{\w\}>)?\([^()]*\)")
"""Matches an entry that is a single call.  As an operand, a call needs no parentheses."""
_BINARY = ("fmod", "remainder", "floordiv", "truncdiv", "shift_left", "shift_right")


def _call(name: str) -> str:
    count = 2 if name in _BINARY else _OPERANDS.get(name, 1)
    return f"lab_{name}<{{A}}>({', '.join(f'{{{k}}}' for k in range(count))})"


CPP_OPS: dict[str, str] = {
    **INFIX_TEXTS,
    "logical_xor": "{0} != {1}",
    **{name: _call(name) for name in _CALLS},
    "neg": "-{0}",
    "square": "lab_square<{A}>({0})",
    "reciprocal": "1 / {0}",
    "logical_not": "!{0}",
    "bitwise_not": "~{0}",
    "bitwise_not.bool": "!{0}",
    "add.bool": "{0} | {1}",
    "mul.bool": "{0} & {1}",
    "where": "{0} ? {1} : {2}",
    "convert": "lab_convert<{T}>({0})",
    "bitcast": "lab_bitcast<{T}>({0})",
    "philox_uniform": "lab_philox_uniform({0}, {1})",
    "philox_normal": "lab_philox_normal({0}, {1})",
    "philox_bits": "lab_philox_bits({0}, {1})",
}
"""Maps an operation to its C++ text."""


def op_text(op: Op, operands: list[str], table: Mapping[str, str]) -> str:
    """Return the text of an operation.  The operands have parentheses already if they need them."""
    text = template_of(op, table)
    return text.format(*operands, T=CTYPES[op.dtype], A=CTYPES[op.args[0].dtype])


def template_of(op: Op, table: Mapping[str, str]) -> str:
    """Return the text of an operation, with placeholders for its operands and their types."""
    kind = str(op.args[0].dtype).removeprefix("torch.")
    template = table.get(f"{op.name}.{kind}", table.get(op.name))
    assert template is not None, f"the table of C++ texts has no {op.name}"
    if op.name == "convert" and _from_bool(op):
        # GCC vectorizes a ternary, but not a cast of the result of a comparison.
        suffix = {torch.float32: ".0f", torch.float64: ".0"}.get(op.dtype, "")
        template = f"{{0}} ? 1{suffix} : 0{suffix}"
    elif op.name == "convert" and _plain_cast(op):
        template = "({T}){0}"
    return f"({{T}})({template})" if op.dtype in NARROW else template


ROUNDED = {f"sub.{dtype}": "lab_difference<{T}>({0}, {1})" for dtype in ("float32", "float64")}
"""Differences that a compiler does not contract with sums (`How.rounds_differences`)."""


def is_call(op: Op, table: Mapping[str, str]) -> bool:
    """Is the operation printed as a single call of a function in the headers?"""
    return _CALLED.fullmatch(template_of(op, table)) is not None


def cast_text(text: str, dtype: torch.dtype) -> str:
    """Cast an integer to `dtype`.

    The 16-bit floats are structs, for which a C cast would set the bits.
    """
    return f"lab_convert<{CTYPES[dtype]}>({text})" if dtype in HALF else f"({CTYPES[dtype]}){text}"


def _from_bool(op: Op) -> bool:
    return op.args[0].dtype is torch.bool and op.dtype not in (
        torch.bool,
        torch.float16,
        torch.bfloat16,
    )


def _plain_cast(op: Op) -> bool:
    """Does a C cast give torch's result?  Not for 16-bit floats, nor from float to integer."""
    source, target = op.args[0].dtype, op.dtype
    if {source, target} & set(HALF):
        return False
    return not (source.is_floating_point and not target.is_floating_point)


def const_text(const: Const) -> str:
    """Return a literal with exactly the type and value of the constant; 16-bit floats as bits."""
    value, dtype = const.value, const.dtype
    if dtype in HALF:
        bits = int(torch.tensor(value, dtype=dtype).view(torch.int16).item()) & 0xFFFF
        return f"{CTYPES[dtype]}({bits:#06x})"
    if dtype is torch.bool:
        return "true" if value else "false"
    if not dtype.is_floating_point:
        return _integer_text(int(value), dtype)
    number = float(value)
    suffix = "" if dtype is torch.float64 else "f"
    if math.isnan(number):
        return f"lab_nan{suffix}"
    if math.isinf(number):
        return f"lab_inf{suffix}" if number > 0 else f"(-lab_inf{suffix})"
    if suffix and abs(number) > torch.finfo(torch.float32).max:
        rounded = torch.tensor(number, dtype=torch.float32).item()
        return const_text(Const(rounded, dtype))
    text = repr(number) if not suffix else str(np.float32(number))
    text = (text if any(mark in text for mark in ".en") else text + ".0") + suffix
    return f"({text})" if text.startswith("-") else text


def _integer_text(number: int, dtype: torch.dtype) -> str:
    """Return an integer literal, without a macro if an int can hold it.

    Operators and templates widen an int to the type of the other operand.  The literal never has a
    wider type than `dtype`, because the expression would then not wrap around.
    """
    for bits in (32, 64):
        if number == -(2 ** (bits - 1)) and dtype.itemsize * 8 == bits:
            return f"INT{bits}_MIN"
    if abs(number) < 2**31:
        return str(number) if number >= 0 else f"({number})"
    return f"{_WIDE.get(dtype, 'INT64_C')}({number})"


_WIDE = {torch.uint32: "UINT32_C", torch.uint64: "UINT64_C"}
"""The macro for a literal that does not fit in an int; other dtypes use `INT64_C`."""
