"""Prints values, indices and sizes as Triton, and tracks the block dimensions they vary along.

Inductor: `TritonOverrides`, `TritonPrinter` and `texpr` in `codegen/triton.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import sympy
import torch

from inductor_lab.compiler.codegen.tree.loop_tree import Store
from inductor_lab.compiler.codegen.triton.triton_ops import (
    ATOMIC_NAMES,
    COMPARISONS,
    LITERALS_ALLOWED,
    TRITON_TYPES,
    bits,
    dtype_kind,
    literal,
    template,
    typed_literal,
)
from inductor_lab.compiler.ir.expr import Const, Expr, IndexValue, Load, Op, SizeValue, Temp
from inductor_lab.compiler.ir.index import (
    Atom,
    Axis,
    Gathered,
    Index,
    Quotient,
    Size,
    is_int,
    is_nonnegative,
)
from inductor_lab.compiler.ir.ops import ATOMICS

WIDTH = 100
"""The maximum length of a line."""

Dims = frozenset[str]
"""The block dimensions along which a value varies: "x", and the prefixes of rows."""

NO_DIMS: Dims = frozenset()


@dataclass(frozen=True, slots=True)
class Value:
    """The text of a value.  `atomic`: it needs no parentheses.  `number`: it is a plain number."""

    text: str
    dims: Dims = NO_DIMS
    atomic: bool = True
    number: bool = False

    def inside(self) -> str:
        """Return the text as an operand."""
        return self.text if self.atomic else f"({self.text})"


_CALL = re.compile(r"[\w.]+\((?:\{\d\}|\{bits\})(?:, (?:\{\d\}|\{bits\}))*\)")
_METHOD = re.compile(r"\{0\}\.\w+\(.*\)")


@dataclass
class Expressions:
    """Converts values to text.

    The statement printer provides `load`, because loads need masks, and `name`, because it assigns
    the quotients and remainders of an index to variables.
    """

    ops: Mapping[str, str]
    symbols: Mapping[sympy.Expr, str]
    load: Callable[[Load], Value]
    name: Callable[[Value, str], Value]
    temps: dict[str, Value] = field(default_factory=dict)
    axes: dict[Axis, Index] = field(default_factory=dict)
    positions: dict[str, Value] = field(default_factory=dict)

    # ---- values ------------------------------------------------------------------------------

    def value(self, expr: Expr, typed: bool = True) -> Value:
        """Return the text of an expression; a constant keeps its dtype if `typed`."""
        match expr:
            case Temp(name):
                return self.temps[name]
            case Const(value, dtype):
                text = typed_literal(value, dtype) if typed else literal(value, dtype)
                return Value(text, atomic=not text.startswith("-"), number=True)
            case SizeValue(size, dtype):
                if isinstance(size, int):
                    return self.value(Const(size, dtype), typed)
                return Value(f"tl.cast({self.size(size).text}, tl.{TRITON_TYPES[dtype]})")
            case IndexValue(index, dtype):
                return self._index_value(index, dtype)
            case Load():
                return self.load(expr)
            case Op():
                return self._op(expr)
            case _:
                raise AssertionError(f"{type(expr).__name__} is a statement in a loop tree")

    def _index_value(self, index: Index, dtype: torch.dtype) -> Value:
        place = self.index(index)
        if place.number:
            return self.value(Const(int(place.text), dtype))
        return Value(f"tl.cast({place.text}, tl.{TRITON_TYPES[dtype]})", place.dims)

    def _op(self, op: Op) -> Value:
        operand = op.args[0].dtype if op.name != "where" else op.args[1].dtype
        text = template(self.ops, op.name, operand)
        if op.name == "convert":
            to = f"convert.to_{str(op.dtype).removeprefix('torch.')}"
            text = self.ops.get(f"{to}.{dtype_kind(operand)}") or self.ops.get(to, text)
        if op.name in COMPARISONS and operand is torch.int64:
            if all(isinstance(a, Const | IndexValue) for a in op.args):
                return self._compared_places(op, text)
        constant = [isinstance(arg, Const | SizeValue) for arg in op.args]
        typed = op.name not in LITERALS_ALLOWED or all(constant)
        args = [self.value(arg, typed) for arg in op.args]
        call = _CALL.fullmatch(text) is not None
        shown = [a.text if call else a.inside() for a in args]
        rendered = text.format(*shown, dtype=TRITON_TYPES[op.dtype], bits=bits(operand))
        dims = NO_DIMS.union(*(a.dims for a in args))
        return Value(rendered, dims, atomic=call or _METHOD.fullmatch(text) is not None)

    def _compared_places(self, op: Op, text: str) -> Value:
        """Compare positions without casts; their dtype does not matter."""
        args = [
            self.index(arg.index) if isinstance(arg, IndexValue) else self.value(arg, typed=False)
            for arg in op.args
        ]
        rendered = text.format(*(a.inside() for a in args))
        return Value(rendered, NO_DIMS.union(*(a.dims for a in args)), atomic=False)

    # ---- indices -----------------------------------------------------------------------------

    def index(self, index: Index) -> Value:
        """Return the text of an index over the axes of the tree."""
        return self._sum(index.substitute(self.axes))

    def _sum(self, index: Index) -> Value:
        parts: list[str] = []
        dims = NO_DIMS
        for atom, factor in index.terms:
            position = self._atom(atom)
            dims |= position.dims
            if is_int(factor, 1):
                parts.append(position.text)
            elif is_int(factor, -1):
                parts.append(f"-{position.inside()}")
            else:
                parts.append(f"{self.size(factor).inside()} * {position.inside()}")
        if not is_int(index.constant, 0) or not parts:
            parts.append(self.size(index.constant).text)
        text = " + ".join(parts).replace("+ -", "- ")
        number = not index.terms and isinstance(index.constant, int)
        return Value(text, dims, atomic=text.isidentifier() or text.isdigit(), number=number)

    def _atom(self, atom: Atom) -> Value:
        match atom:
            case Axis(name):
                return self.positions[name]
            case Gathered(value):
                return self.value(value)
            case _:
                return self._division(atom, isinstance(atom, Quotient))

    def in_range(self, atom: Gathered, shape: str) -> Value:
        """Return the test that a loaded index is in range.  Otherwise nothing is stored."""
        position, size = self.value(atom.value), self.size(atom.size)
        if not position.dims:
            position = self.name(Value(f"tl.full({shape}, {position.text}, tl.int64)"), "row")
        text = f"({position.inside()} >= 0) & ({position.inside()} < {size.inside()})"
        return Value(text, position.dims, atomic=False)

    def stored(self, store: Store, pointer: str, value: Value, mask: str) -> str:
        """Return a store, an atomic operation, or a load followed by a store."""
        if store.kind == "store":
            return f"tl.store({pointer}, {value.text}{mask})"
        if in_one_step(store):
            function = ATOMIC_NAMES[store.kind]
            return f'tl.{function}({pointer}, {value.text}{mask}, sem="relaxed")'
        there = f"tl.load({pointer}{mask})"
        new = template(self.ops, store.kind, store.value.dtype).format(there, value.inside())
        return f"tl.store({pointer}, {new}{mask})"

    def _division(self, atom: Atom, quotient: bool) -> Value:
        assert not isinstance(atom, Axis | Gathered)
        dividend, divisor = self._sum(atom.dividend), self.size(atom.divisor)
        if _may_be_negative(atom.dividend):
            function = "floordiv" if quotient else "modulo"
            text = f"lab.{function}({dividend.text}, {divisor.text})"
        else:
            text = f"{dividend.inside()} {'//' if quotient else '%'} {divisor.inside()}"
        letter = "x" if "x" in dividend.dims else "r" if dividend.dims else "k"
        return self.name(Value(text, dividend.dims), letter)

    # ---- sizes -------------------------------------------------------------------------------

    def size(self, size: Size) -> Value:
        """Return a size as an expression of kernel parameters (see `ir.index.size_arguments`)."""
        if isinstance(size, int):
            return Value(str(size), atomic=size >= 0, number=True)
        if size in self.symbols:
            return Value(self.symbols[size])
        if isinstance(size, sympy.Integer):
            return self.size(int(size))
        parts = [self.size(part) for part in size.args]
        if isinstance(size, sympy.Add):
            return Value(" + ".join(p.text for p in parts).replace("+ -", "- "), atomic=False)
        if isinstance(size, sympy.Mul):
            return Value(" * ".join(p.inside() for p in parts), atomic=False)
        if isinstance(size, sympy.Pow):
            return Value(" * ".join([parts[0].inside()] * int(size.exp)), atomic=False)
        function = "tl.maximum" if type(size).__name__ == "Max" else "tl.minimum"
        text = parts[0].text
        for part in parts[1:]:
            text = f"{function}({text}, {part.text})"
        return Value(text)


def in_one_step(store: Store) -> bool:
    """Is it a plain store, or is there an atomic operation for it?"""
    return store.kind == "store" or store.value.dtype in ATOMICS[store.kind]


def _may_be_negative(dividend: Index) -> bool:
    """Can this dividend be negative, so that truncating division would give another result?"""
    span = dividend.bounds()
    return not (_only_positive(dividend) if span is None else is_nonnegative(span[0]))


def _only_positive(index: Index) -> bool:
    """Is the index a sum of nonnegative multiples of axes, quotients and remainders?"""
    factors = [c for _, c in index.terms] + [index.constant]
    return all(map(is_nonnegative, factors)) and all(
        _only_positive(atom.dividend) for atom, _ in index.terms if isinstance(atom, Quotient)
    )


def signature(name: str, arguments: list[str]) -> list[str]:
    """Return the first line of a function, broken into several lines if it is long."""
    start, end = f"def {name}(", "):"
    whole = start + ", ".join(arguments) + end
    if len(whole) <= WIDTH:
        return [whole]
    rows = [" " * 3]
    for argument in arguments:
        if len(rows[-1]) + len(argument) + len(" ,") > WIDTH:
            rows.append(" " * 3)
        rows[-1] += f" {argument},"
    return [start, *rows, end]
