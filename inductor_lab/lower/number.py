"""Symbolic numbers of the graph as expressions of a body.

A size is an exact integer.  What a person computes from sizes may be a float (`1 / x.shape[0]`);
that arithmetic is done in float64, as Python would have done it.

    1 / (2*s0)   →   truediv(f64(1), f64(2*s0))

Inductor: `ops.index_expr` with the printers of `codegen/cpp_utils.py` and `triton.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import sympy
import torch

from inductor_lab.errors import LabError
from inductor_lab.ir.expr import Const, Expr, SizeValue, size_value
from inductor_lab.ir.index import simplify_size

MakeOp = Callable[..., Expr]
"""`make(name, *operands)`."""

Read = Callable[[sympy.Symbol], Expr | None]
"""`read(symbol)`: the load of a number that is in a tensor."""

FLOAT_OPS = {
    "IntTrueDiv": "truediv",
    "FloatTrueDiv": "truediv",
    "FloatPow": "pow",
    "Mod": "remainder",
    "PythonMod": "remainder",
    "OpaqueUnaryFn_sqrt": "sqrt",
    "OpaqueUnaryFn_exp": "exp",
    "OpaqueUnaryFn_log": "log",
    "OpaqueUnaryFn_log2": "log2",
    "OpaqueUnaryFn_sin": "sin",
    "OpaqueUnaryFn_cos": "cos",
    "OpaqueUnaryFn_tanh": "tanh",
}
"""Names of torch's sympy functions on floats → operations of ours."""

RELATIONS = {
    sympy.Eq: "eq",
    sympy.Ne: "ne",
    sympy.Lt: "lt",
    sympy.Le: "le",
    sympy.Gt: "gt",
    sympy.Ge: "ge",
}


def number(value: sympy.Basic, make: MakeOp, read: Read) -> Expr:
    """A symbolic number: int64 if it is an integer, bool if it is a relation, otherwise float64.

    `read(symbol)` is a number that is in a tensor, or None.
    """
    if type(value) in RELATIONS:
        return make(RELATIONS[type(value)], *(_real(side, make, read) for side in value.args))
    if value.is_integer:
        return size_value(simplify_size(value))
    return _real(value, make, read)


def _real(value: sympy.Expr, make: MakeOp, read: Read) -> Expr:
    if value.is_number:
        return Const(float(value), torch.float64)
    if value.is_integer:
        return SizeValue(simplify_size(value), torch.float64)
    loaded = read(value) if isinstance(value, sympy.Symbol) else None
    if loaded is not None:
        return loaded
    parts = [_real(arg, make, read) for arg in value.args]
    name = type(value).__name__
    if name == "ToFloat":
        return parts[0]
    if isinstance(value, sympy.Add | sympy.Mul):
        operation = "add" if isinstance(value, sympy.Add) else "mul"
        return reduce(lambda a, b: make(operation, a, b), parts)
    operation = "pow" if isinstance(value, sympy.Pow) else FLOAT_OPS.get(name, "")
    if not operation:
        raise LabError(
            f"cannot compute {value} in a kernel",
            todo="compute it outside of the compiled function and pass it in",
        )
    return make(operation, *parts)
