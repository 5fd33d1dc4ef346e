"""Comparisons of symbolic sizes that hold for all values of the symbols: `n // 3` is at most `n`.

Inductor: `SizeVarAllocator.statically_known_leq`.
"""

from __future__ import annotations

import sympy

from inductor_lab.compiler.ir.index import Size, add_sizes, is_nonnegative, mul_sizes


def sub_sizes(a: Size, b: Size) -> Size:
    return add_sizes(a, mul_sizes(b, -1))


def at_most(a: Size, b: Size) -> bool:
    """Is `a <= b` for all values of the symbols?  False if that cannot be proved."""
    rest = sub_sizes(b, a)
    return is_nonnegative(rest) or is_nonnegative(_replace_quotients(rest))


def _replace_quotients(size: Size) -> Size:
    """Replace `n` by `3*q + r` if `n//3` is in the size, so that sympy can prove `n//3 <= n`."""
    if isinstance(size, int):
        return size
    for part in sympy.preorder_traversal(size):
        if type(part).__name__ == "FloorDiv" and part.args[0].is_Symbol and part.args[1].is_Integer:
            n, divisor = part.args
            if n.is_nonnegative and divisor > 0:
                q, r = sympy.symbols("q r", integer=True, nonnegative=True, cls=sympy.Dummy)
                return sympy.expand(size.xreplace({part: q}).xreplace({n: divisor * q + r}))
    return size
