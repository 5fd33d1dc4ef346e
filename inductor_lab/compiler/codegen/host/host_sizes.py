"""Prints symbolic sizes as Python text for allocations and kernel arguments in the host program.

    FloorDiv(s0, 2)                          s0 // 2
    4 * BitwiseFn_bitwise_and(s0, 3)         4*(s0 & 3)
    RoundDecimal(zuf0, 2)                    round(zuf0, 2)

Python computes them exactly as in eager mode: floor division and remainders of negative numbers,
rounding of floats, and their errors.

Inductor: `pexpr`, and the printers of `torch/utils/_sympy/printers.py`.
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy.printing.precedence import PRECEDENCE, precedence

from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.torch_door.torch_api import SYMPY_FUNCTIONS, PythonPrinter

UNARY = "OpaqueUnaryFn_"
"""The prefix of torch's sympy functions that represent functions of `math`."""
ROUNDED = {"FloorToInt": "floor", "CeilToInt": "ceil", "TruncToInt": "trunc"}
"""The rounding functions, which do not have this prefix."""
MATH = "math"
POWER = SYMPY_FUNCTIONS["torch.PowByNatural"]


def size_text(size: Any, used: set[str]) -> str:
    """Return a symbolic number as a Python expression; adds the modules that it uses to `used`."""
    return str(_Printer(used).doprint(size))


def is_infix(item: Any) -> bool:
    """Is the function printed as an infix operator?

    torch gives such a function a lower precedence than a call.  sympy treats every function as a
    call.
    """
    is_shift = isinstance(item, POWER) and item.args[0] == 2  # has its own parentheses
    return (
        isinstance(item, sympy.Function) and precedence(item) < PRECEDENCE["Func"] and not is_shift
    )


class _Printer(PythonPrinter):
    def __init__(self, used: set[str]) -> None:
        super().__init__()
        self.used = used

    def _print(self, expr: Any, **settings: Any) -> str:
        name = type(expr).__name__
        function = ROUNDED.get(name, name.removeprefix(UNARY))
        return self._math(function, expr) if function != name else str(super()._print(expr))

    def _math(self, function: str, expr: Any) -> str:
        """Return a call of a function of `math`."""
        self.used.add(MATH)
        return f"math.{function}({self._print(expr.args[0])})"

    def parenthesize(self, item: Any, level: float, strict: bool = False) -> str:
        if is_infix(item):
            return f"({self._print(item)})"
        return str(super().parenthesize(item, level, strict))

    def _print_Add(self, expr: Any, order: str | None = None) -> str:
        return self._divided(expr) or str(super()._print_Add(expr, order))

    def _print_Mul(self, expr: Any) -> str:
        return self._divided(expr) or str(super()._print_Mul(expr))

    def _divided(self, expr: Any) -> str:
        """Print `s0/2 + s0**2/2` as one integer division, because float division is not exact."""
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
        if below.is_Integer:
            return f"(({text}) // {below})"
        self.used.add(MATH)
        return f"math.floor({text} / {below})"

    def _print_ceiling(self, expr: Any) -> str:
        return f"(-{self._print(sympy.floor(-expr.args[0]))})"

    def _print_PowByNatural(self, expr: Any) -> str:
        """torch represents `1 << n` as a power of 2; Python raises an error if n is negative."""
        if expr.args[0] == 2:
            return f"(1 << ({self._print(expr.args[1])}))"
        return str(super()._print_PowByNatural(expr))

    def _print_ToFloat(self, expr: Any) -> str:
        return f"float({self._print(expr.args[0])})"

    def _print_TruncToFloat(self, expr: Any) -> str:
        return f"float({self._math('trunc', expr)})"

    def _print_Infinity(self, expr: Any) -> str:
        self.used.add(MATH)
        return "math.inf"

    def _print_NegativeInfinity(self, expr: Any) -> str:
        return f"-{self._print_Infinity(expr)}"

    def _print_Function(self, expr: Any) -> str:
        raise LabError(
            f"cannot compute {expr} outside of a kernel",
            todo="compute it outside of the compiled function and pass it in",
        )
