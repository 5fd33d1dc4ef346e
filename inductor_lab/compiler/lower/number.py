"""Symbolic numbers of the graph as expressions of a body.

A size is an exact integer.  A number that the user computes from sizes may be a float (`1 /
x.shape[0]`); it is computed in float64, as in Python.

    1 / (2*s0)   →   truediv(f64(1), f64(2*s0))

Inductor: `ops.index_expr` with the printers of `codegen/cpp_utils.py` and `triton.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce

import sympy
import torch
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanFunction

from inductor_lab.compiler.ir.expr import Const, Expr, Load, Op, SizeValue, size_value
from inductor_lab.compiler.ir.index import is_integer_size, simplify_size
from inductor_lab.compiler.ir.program import Pointwise, Step
from inductor_lab.compiler.lower.tensor import TensorValue

MakeOp = Callable[..., Expr]
"""`make(name, *operands)`."""

Read = Callable[[sympy.Basic], Expr]
"""`read(number)`: loads a number that is stored in a tensor."""

FLOAT_OPS = {
    "Add": "add",
    "Mul": "mul",
    "IntTrueDiv": "truediv",
    "FloatTrueDiv": "truediv",
    "FloatPow": "pow",
    **{f"OpaqueUnaryFn_{name}": name for name in "sqrt exp log log2 sin cos tanh".split()},
}
"""Names of torch's sympy functions on floats → our operations."""

Test = Relational | BooleanFunction
"""sympy's boolean expressions (sympy also allows a symbol as a boolean)."""

RELATIONS = {getattr(sympy, name.title()): name for name in "eq ne lt le gt ge".split()}


def number(value: sympy.Basic, make: MakeOp, read: Read) -> Expr:
    """A symbolic number: int64 if it is an integer, bool if it is a test, otherwise float64.

    `read(number)` loads a number that a step of the program stores in a tensor.  It is also used
    for expressions without a corresponding operation.
    """
    if isinstance(value, Test):
        if type(value) not in RELATIONS:
            return read(value)
        exact = all(map(is_integer_size, value.args))
        sides = (_integer(side) if exact else _float(side, make, read) for side in value.args)
        return make(RELATIONS[type(value)], *sides)
    return _integer(value) if is_integer_size(value) else _float(value, make, read)


def _integer(value: sympy.Expr) -> Expr:
    return size_value(simplify_size(value))


def _float(value: sympy.Expr, make: MakeOp, read: Read) -> Expr:
    if value.is_number:
        return Const(float(value), torch.float64)
    if is_integer_size(value):
        return SizeValue(simplify_size(value), torch.float64)
    name = type(value).__name__
    operation = FLOAT_OPS.get(name, "")
    if name != "ToFloat" and not (operation and _is_defined(operation, value.args)):
        return read(value)
    parts = [_float(arg, make, read) for arg in value.args]
    if len(parts) == 1:
        return make(operation, *parts) if operation else parts[0]
    return reduce(partial(make, operation), parts)


def _is_defined(operation: str, args: Sequence[sympy.Expr]) -> bool:
    """Does Python surely compute this without an exception?"""
    *_, first, last = (None, *(a.args[0] if type(a).__name__ == "ToFloat" else a for a in args))
    match operation:
        case "truediv":
            return last.is_zero is False
        case "pow":
            return bool(first.is_positive)
        case "sqrt":
            return bool(last.is_nonnegative)
        case "log" | "log2":
            return bool(last.is_positive)
        case _:
            return True


def expression_of_numbers(steps: Sequence[Step], value: TensorValue) -> Expr | None:
    """The expression of a 0-dim tensor that is computed only from numbers; None for other tensors.

    Such a tensor need not be copied between devices.
    """
    if value.shape:
        return None
    makers = {s.buffer: s.body for s in steps if isinstance(s, Pointwise) and not s.axes}

    def inlined(expr: Expr) -> Expr | None:
        if isinstance(expr, Load):
            return inlined(makers[expr.buffer]) if expr.buffer in makers else None
        if not isinstance(expr, Op):
            return expr if isinstance(expr, Const | SizeValue) else None
        args = tuple(arg for arg in map(inlined, expr.args) if arg is not None)
        return replace(expr, args=args) if len(args) == len(expr.args) else None

    return inlined(makers[value.buffer]) if value.buffer in makers else None
