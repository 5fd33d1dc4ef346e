"""The functions of SymPy itself that may occur in a size; torch adds functions of its own."""

from __future__ import annotations

from operator import attrgetter

import sympy

_NAMES = """Add Mul Pow Max Min Mod ceiling floor Abs Piecewise Eq Ne Lt Le Gt Ge And Or Not
    functions.elementary.piecewise.ExprCondPair logic.boolalg.BooleanTrue
    logic.boolalg.BooleanFalse core.numbers.Infinity core.numbers.NegativeInfinity"""

SYMPY_CLASSES: dict[str, type[sympy.Basic]] = {
    f"sympy.{path}": attrgetter(path)(sympy) for path in _NAMES.split()
}
"""By the name in saved files: `"sympy.Add"`."""
