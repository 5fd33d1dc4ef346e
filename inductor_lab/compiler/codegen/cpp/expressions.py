"""Prints the expressions of a loop tree as C++.

Inductor: `CppExprPrinter` and the body of `CppKernel`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy
import torch

from inductor_lab.compiler.codegen.cpp.cpp_ops import (
    CPP_OPS,
    CTYPES,
    cast_text,
    const_text,
    is_call,
    op_text,
)
from inductor_lab.compiler.codegen.cpu.half_roundings import rounds
from inductor_lab.compiler.codegen.kernel import Parameter
from inductor_lab.compiler.ir.expr import Const, Expr, IndexValue, Load, Op, SizeValue, Temp
from inductor_lab.compiler.ir.index import (
    Atom,
    Axis,
    Gathered,
    Index,
    Quotient,
    Remainder,
    Size,
    is_int,
    is_nonnegative,
)
from inductor_lab.compiler.ir.rules import HALF


@dataclass
class Writer:
    """Converts expressions to text, using the names of the parameters and the table of operations.

    `places` maps a temp to its text if this is not simply its name, such as an element of a local
    array (`t3[i1 - strip]`).
    """

    parameters: tuple[Parameter, ...]
    table: Mapping[str, str] = field(default_factory=lambda: CPP_OPS)
    places: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.buffers = {p.buffer: p.name for p in self.parameters if p.buffer is not None}
        self.symbols: dict[sympy.Expr, str] = {
            p.symbol: p.name for p in self.parameters if p.symbol is not None
        }

    def temp(self, name: str) -> str:
        return self.places.get(name, name)

    def size(self, size: Size) -> str:
        """Return a size as an expression of kernel parameters (see `ir.index.size_arguments`)."""
        if isinstance(size, int):
            return str(size)
        if size in self.symbols:
            return self.symbols[size]
        match size:
            case sympy.Integer():
                return str(int(size))
            case sympy.Add():
                return f"({' + '.join(map(self.size, size.args))})"
            case sympy.Mul():
                return f"({' * '.join(map(self.size, size.args))})"
            case sympy.Pow(args=(base, sympy.Integer() as exponent)):
                return f"({' * '.join([self.size(base)] * int(exponent))})"
        # sympy's Max or Min, or torch's own classes of these names
        sign = ">" if type(size).__name__ == "Max" else "<"
        total, *texts = map(self.size, size.args)
        for text in texts:
            total = f"({total} {sign} {text} ? {total} : {text})"
        return total

    def expr(self, expr: Expr) -> str:
        """Return the text of an expression, without outer parentheses."""
        match expr:
            case Temp(name):
                return self.temp(name)
            case Const():
                return const_text(expr)
            case SizeValue(size, dtype):
                return cast_text(self.size(size), dtype)
            case IndexValue(index, dtype):
                text = self.index(index)
                return text if dtype is torch.int64 else cast_text(f"({text})", dtype)
            case Load(buffer, index):
                text = self.element(buffer, index)
                return f"{text} != 0" if self.is_byte(expr) else text
            case Op("convert", (Op(args=(value,)) as inner,), torch.float32) if rounds(inner):
                return f"lab_rounded<{CTYPES[inner.dtype]}>({self.expr(value)})"
            case Op(args=args):
                return op_text(expr, [self.operand(a) for a in args], self.table)
            case _:
                raise AssertionError(f"not in a loop tree: {type(expr).__name__}")

    def combined(self, kind: str, place: str, value: Expr) -> str:
        """Return the text of the operation `kind` on an element in memory and a value."""
        both = Op(kind, (value, value), value.dtype)
        return op_text(both, [place, self.operand(value)], self.table)

    def operand(self, expr: Expr) -> str:
        """Return the text of an expression as an operand of another, in parentheses if needed."""
        text = self.expr(expr)
        return text if self.stands_alone(expr) else f"({text})"

    def stands_alone(self, expr: Expr) -> bool:
        """Is it a name, a literal, an element or a call, which needs no parentheses?"""
        match expr:
            case Op():
                return is_call(expr, self.table)
            case IndexValue(Index(((Gathered(), 1),), 0), torch.int64):
                return True
            case SizeValue(_, dtype) | IndexValue(_, dtype):
                return dtype in HALF
            case _:
                return not (isinstance(expr, Load) and self.is_byte(expr))

    def is_byte(self, load: Load) -> bool:
        """Is it a bool in memory?  Kernels read these as bytes."""
        return load.dtype is torch.bool and load.buffer in self.buffers

    def element(self, buffer: str, index: tuple[Index, ...]) -> str:
        """Return `in0[i0]`, or for a local array `parts_acc0[part][i0 - strip]`."""
        if buffer in self.buffers:
            return f"{self.buffers[buffer]}[{self.index(index[0])}]"
        return buffer + "".join(f"[{self.distance(i)}]" for i in index)

    def distance(self, index: Index) -> str:
        """Return an offset from the start of a block: `144 * (i0 - i0_tile) + i1 - i1_tile`."""
        back = {-c: atom for atom, c in index.terms if isinstance(c, int) and c < 0}
        along = {c: atom for atom, c in index.terms if isinstance(c, int) and c > 0}
        if not back or back.keys() != along.keys() or 2 * len(back) != len(index.terms):
            return self.index(index)
        parts = []
        for factor in sorted(back, reverse=True):
            length = f"{self._atom(along[factor])} - {self._atom(back[factor])}"
            parts.append(length if factor == 1 else f"{factor} * ({length})")
        if not is_int(index.constant, 0):
            parts.append(self.size(index.constant))
        return " + ".join(parts)

    def index(self, index: Index) -> str:
        """Return the text of an index: `128 * i0 + j0 + 7`."""
        parts = [self._term(atom, factor) for atom, factor in index.terms]
        if not parts or not is_int(index.constant, 0):
            parts.append(self.size(index.constant))
        return " + ".join(parts).replace("+ -", "- ")

    def _term(self, atom: Atom, factor: Size) -> str:
        text, sign = self._atom(atom), {1: "", -1: "-"}.get(factor)
        return f"{self.size(factor)} * {text}" if sign is None else sign + text

    def _atom(self, atom: Atom) -> str:
        match atom:
            case Axis(name):
                return name
            case Quotient(dividend, divisor):
                return self._divided(dividend, divisor, "/", "lab_floordiv")
            case Remainder(dividend, divisor):
                return self._divided(dividend, divisor, "%", "lab_remainder")
            case Gathered(value, size):
                return f"lab_clamp_index({self.expr(value)}, {self.size(size)})"

    def _divided(self, dividend: Index, divisor: Size, sign: str, function: str) -> str:
        """Use the C++ operator if the dividend cannot be negative, because C++ truncates."""
        text, by = self.index(dividend), self.size(divisor)
        span = dividend.bounds()
        if span is not None and is_nonnegative(span[0]):
            inner = text if dividend.as_axis() else f"({text})"
            return f"({inner} {sign} {by})"
        return f"{function}<int64_t>({text}, {by})"
