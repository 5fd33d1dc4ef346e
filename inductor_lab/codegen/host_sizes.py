"""Symbolic numbers as Python text: what the host program works out for allocations and kernels.

    FloorDiv(s0, 2)                          s0 // 2
    4 * BitwiseFn_bitwise_and(s0, 3)         4*(s0 & 3)
    RoundDecimal(zuf0, 2)                    round(zuf0, 2)

Python computes them as it does for eager code: floor division and remainders of negative numbers,
rounding of floats, and the errors of both.

Inductor: `pexpr`, and the printers of `torch/utils/_sympy/printers.py`.
"""

from __future__ import annotations

import re
from typing import Any

import sympy

from inductor_lab.errors import LabError
from inductor_lab.torch_api import PythonPrinter

UNARY = "OpaqueUnaryFn_"
"""How torch calls its sympy functions that stand for those of `math`."""

_CALL = re.compile(r"[\w.]+\([^()]*\)")


def size_text(size: Any) -> str:
    """A symbolic number as a Python expression over its symbols."""
    return str(_Printer().doprint(size))


class _Printer(PythonPrinter):
    def parenthesize(self, item: Any, level: float, strict: bool = False) -> str:
        """torch's infix functions count as calls to sympy, which need no parentheses."""
        text = str(super().parenthesize(item, level, strict))
        infix = isinstance(item, sympy.Function) and not _is_whole(text)
        return f"({text})" if infix else text

    def _print_Add(self, expr: Any, order: str | None = None) -> str:
        return self._divided(expr) or str(super()._print_Add(expr, order))

    def _print_Mul(self, expr: Any) -> str:
        return self._divided(expr) or str(super()._print_Mul(expr))

    def _divided(self, expr: Any) -> str:
        """`s0/2 + s0**2/2` is an integer, which a division of floats need not give exactly."""
        if not any(isinstance(part, sympy.Rational) and part.q != 1 for part in expr.atoms()):
            return ""
        above, below = expr.as_numer_denom()
        return f"(({self._print(above)}) // {below})" if below != 1 else ""

    def _print_Relational(self, test: Any) -> str:
        return f"({self._print(test.lhs)} {test.rel_op} {self._print(test.rhs)})"

    def _print_Piecewise(self, choice: Any) -> str:
        *cases, (last, _) = choice.args
        text = self._print(last)
        for value, test in reversed(cases):
            text = f"({self._print(value)} if {self._print(test)} else {text})"
        return str(text)

    def _print_And(self, expr: Any) -> str:
        return f"({' and '.join(map(self._print, expr.args))})"

    def _print_Or(self, expr: Any) -> str:
        return f"({' or '.join(map(self._print, expr.args))})"

    def _print_Float(self, expr: Any) -> str:
        return repr(float(expr))

    def _print_floor(self, expr: Any) -> str:
        above, below = expr.args[0].as_numer_denom()
        text = self._print(above)
        return f"(({text}) // {below})" if below.is_Integer else f"math.floor({text} / {below})"

    def _print_ceiling(self, expr: Any) -> str:
        return f"(-{self._print(sympy.floor(-expr.args[0]))})"

    def _print_PowByNatural(self, expr: Any) -> str:
        """`1 << n` is a power of 2 to torch; Python refuses an n below 0."""
        if expr.args[0] == 2:
            return f"(1 << ({self._print(expr.args[1])}))"
        return str(super()._print_PowByNatural(expr))

    def _print_ToFloat(self, expr: Any) -> str:
        return f"float({self._print(expr.args[0])})"

    def _print_TruncToFloat(self, expr: Any) -> str:
        return f"float(math.trunc({self._print(expr.args[0])}))"

    def _print_OpaqueUnaryFn_sqrt(self, expr: Any) -> str:
        return f"math.sqrt({self._print(expr.args[0])})"

    def _print_Function(self, expr: Any) -> str:
        name = type(expr).__name__
        if not name.startswith(UNARY):
            raise LabError(
                f"cannot compute {expr} outside of a kernel",
                todo="compute it outside of the compiled function and pass it in",
            )
        return f"math.{name.removeprefix(UNARY)}({self._print(expr.args[0])})"


def _is_whole(text: str) -> bool:
    """Is it a plain call, or in parentheses as a whole already?"""
    if _CALL.fullmatch(text):
        return True
    return is_closed(text) if re.match(r"[\w.]*\(", text) else text.isidentifier()


def is_closed(text: str) -> bool:
    """Does the first parenthesis end with the text?  Then `f(...)` needs no more of them."""
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == ")" and depth == 0:
            return position == len(text) - 1
    return False
