"""Stand-ins for the types of torch that occur in data, to view saved files where torch is missing.

They have the names, the texts and the properties of torch's own, and compute nothing.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy
from sympy.printing.precedence import PRECEDENCE

from inductor_lab.compiler.torch_door.sympy_classes import SYMPY_CLASSES


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class _Named:
    """A constant of torch, which is equal only to itself and prints as `torch.strided`."""

    name: str

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class DType(_Named):
    """A dtype, such as `torch.float32`."""

    __slots__ = ()

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return _SIZES[self.name]

    @property
    def is_floating_point(self) -> bool:
        return "float" in self.name

    @property
    def is_complex(self) -> bool:
        return "complex" in self.name

    @property
    def is_signed(self) -> bool:
        return not self.name.startswith(("bool", "uint", "bits", "quint", "float8_e8m0fnu"))


class Layout(_Named):
    """`torch.strided` and the sparse layouts."""

    __slots__ = ()


class MemoryFormat(_Named):
    """`torch.channels_last` and the like."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Device:
    type: str
    index: int | None

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        number = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{number})"


class Device(_Device):
    """`torch.device("cuda:0")`, or `torch.device("cuda", 0)`."""

    __slots__ = ()

    def __init__(self, type: str, index: int | None = None) -> None:
        kind, _, number = type.partition(":")
        super().__init__(kind, int(number) if number else index)


class IntegerRange(NamedTuple):
    """`torch.iinfo` of a dtype."""

    min: int
    max: int


def integer_range(dtype: DType) -> IntegerRange:
    bits = 8 * dtype.itemsize
    if dtype.is_signed:
        return IntegerRange(-(1 << bits - 1), (1 << bits - 1) - 1)
    return IntegerRange(0, (1 << bits) - 1)


class Absent:
    """A type whose values are never in a file that was opened without torch."""


_ABBREVIATIONS = {
    "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "float16": "f16",
    "float32": "f32", "float64": "f64", "complex32": "c32", "complex64": "c64",
    "complex128": "c128", "bool": "b8", "bfloat16": "bf16", "bits1x8": "b1x8", "bits2x4": "b2x4",
    "bits4x2": "b4x2", "bits8": "b8x1", "bits16": "b16x1", "float8_e5m2": "f8e5m2",
    "float8_e4m3fn": "f8e4m3fn", "float8_e5m2fnuz": "f8e5m2fnuz",
    "float8_e4m3fnuz": "f8e4m3fnuz", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float8_e8m0fnu": "f8e8m0fnu", "float4_e2m1fn_x2": "f4e2m1fnx2",
}  # fmt: skip
"""Dtype → its short name, as in torch."""
_BITS = re.compile(r"[a-z]+(\d+)")
_SIZES = {
    name: max(int(found[1]) // 8, 1) if (found := _BITS.match(short)) else 1
    for name, short in _ABBREVIATIONS.items()
} | {"quint8": 1, "qint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1}
"""Dtype → the bytes of an element."""
_DTYPES = {name: DType(name) for name in _SIZES}
_LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc",
            "_mkldnn", "jagged")  # fmt: skip
_FORMATS = ("preserve_format", "contiguous_format", "channels_last", "channels_last_3d")

DTYPE_NAMES: dict[Any, str] = {_DTYPES[name]: short for name, short in _ABBREVIATIONS.items()}

TYPES: Mapping[str, Any] = {
    "dtype": DType,
    "layout": Layout,
    "memory_format": MemoryFormat,
    "device": Device,
    "iinfo": integer_range,
    "Size": tuple,
    **dict.fromkeys(("Tensor", "SymInt", "SymFloat", "SymBool"), Absent),
    **_DTYPES,
    **{name: Layout(name) for name in _LAYOUTS},
    **{name: MemoryFormat(name) for name in _FORMATS},
}
"""What the stand-in for torch has, by name."""


class SizeFunction(sympy.Function):  # type: ignore[misc]  # SymPy has no types
    """A function of sizes with the name of torch's own; it has a value if its arguments have."""

    @classmethod
    def eval(cls, *given: Any) -> Any:
        compute = _NUMBERS.get(cls.__name__)
        if compute is None or not all(isinstance(one, sympy.Number) for one in given):
            return None
        exact = (int(one) if one.is_Integer else float(one) for one in given)
        return sympy.sympify(compute(*exact))

    def _eval_is_integer(self) -> bool | None:
        return None if type(self).__name__ in _FRACTIONS else True

    def _eval_is_real(self) -> bool:
        return True

    def _sympystr(self, printer: Any) -> str:
        given = [printer.doprint(one) for one in self.args]
        if isinstance(self, _FLOOR_DIVISIONS):
            level = PRECEDENCE["Atom"] - 0.5
            return f"({'//'.join(printer.parenthesize(one, level) for one in self.args)})"
        return f"{type(self).__name__}({', '.join(given)})"


_NUMBERS: Mapping[str, Callable[..., Any]] = {
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "CeilDiv": lambda base, divisor: -(-base // divisor),
    "ModularIndexing": lambda base, divisor, modulus: base // divisor % modulus,
    "PythonMod": operator.mod,
    "Mod": operator.mod,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
    "PowByNatural": operator.pow,
    "CeilToInt": math.ceil,
    "FloorToInt": math.floor,
    "TruncToInt": math.trunc,
    "RoundToInt": round,
    "FloatPow": lambda base, power: float(base) ** power,
    "FloatTrueDiv": operator.truediv,
    "IntTrueDiv": operator.truediv,
    "TruncToFloat": lambda number: float(math.trunc(number)),
    "RoundDecimal": lambda number, digits: round(float(number), digits),
    "ToFloat": float,
    **{f"BitwiseFn_bitwise_{name}": getattr(operator, f"{name}_") for name in ("and", "or")},
    "BitwiseFn_bitwise_xor": operator.xor,
    **{f"OpaqueUnaryFn_{name}": getattr(math, name) for name in (
        "sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "exp", "log",
        "asinh", "log2")},
}  # fmt: skip
"""Function → its value for numbers."""
_FRACTIONS = frozenset(name for name in _NUMBERS if name.startswith(("Float", "Opaque"))) - {
    "FloorToInt"} | {"IntTrueDiv", "TruncToFloat", "RoundDecimal", "ToFloat"}  # fmt: skip
_UNEVALUATED = ("Where", "Identity", "IsNonOverlappingAndDenseIndicator")
_PRECEDENCE = {"PowByNatural": 50, "FloatPow": 60, "Identity": 10} | dict.fromkeys(
    ("FloorDiv", "CleanDiv", "ModularIndexing", "Where", "PythonMod", "Mod", "FloatTrueDiv",
     "IntTrueDiv"), 35)  # fmt: skip
"""Function → its precedence when SymPy prints a sum or a product of it; others bind like calls."""


def _size_function(name: str) -> type[SizeFunction]:
    binds = {"precedence": _PRECEDENCE[name]} if name in _PRECEDENCE else {}
    return type(name, (SizeFunction,), binds)


_CLASSES = {name: _size_function(name) for name in (*_NUMBERS, *_UNEVALUATED)}
_FLOOR_DIVISIONS = (_CLASSES["FloorDiv"], _CLASSES["CleanDiv"])

SYMPY_FUNCTIONS: dict[str, Any] = {
    **SYMPY_CLASSES,
    **{f"torch.{name}": found for name, found in _CLASSES.items()},
    "torch.Max": sympy.Max,
    "torch.Min": sympy.Min,
    "torch.IntInfinity": lambda: sympy.oo,
    "torch.NegativeIntInfinity": lambda: -sympy.oo,
}
"""Every function that may occur in a size, by name."""
