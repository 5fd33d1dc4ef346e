"""Sizes as Python text: values, parentheses and imports."""

from __future__ import annotations

import math

import pytest
import sympy

from inductor_lab.compiler.codegen.host.host_sizes import size_text
from inductor_lab.compiler.torch_door.torch_api import SYMPY_FUNCTIONS as OF

S, T = sympy.symbols("s0 s1", integer=True, positive=True)
Z = sympy.Symbol("zuf0", real=True)
HALF = OF["torch.FloorDiv"](S, 2)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (HALF, "s0 // 2"),
        (HALF * 4 + 1, "1 + 4*(s0 // 2)"),
        (OF["torch.PythonMod"](HALF, T + 1), "(s0 // 2) % (1 + s1)"),
        (OF["torch.PowByNatural"](sympy.Integer(2), S) + 1, "1 + (1 << (s0))"),
        (sympy.Max(S, T) * 2, "2*max(s0, s1)"),
    ],
)
def test_functions_with_a_sign_get_parentheses(size: sympy.Expr, text: str) -> None:
    used: set[str] = set()
    assert size_text(size, used) == text
    assert eval(text, {"s0": 7, "s1": 3}) == size.subs({S: 7, T: 3})
    assert used == set()


@pytest.mark.parametrize(
    ("size", "value"),
    [
        (OF["torch.FloorToInt"](Z * 2.5), 6),
        (OF["torch.CeilToInt"](Z * 2.5), 7),
        (OF["torch.TruncToInt"](Z * -2.5), -6),
        (OF["torch.OpaqueUnaryFn_sqrt"](Z), math.sqrt(2.6)),
        (S * sympy.oo, math.inf),
    ],
)
def test_sizes_that_use_math_are_marked(size: sympy.Expr, value: float) -> None:
    used: set[str] = set()
    text = size_text(size, used)
    assert used == {"math"}
    assert eval(text, {"math": math, "zuf0": 2.6, "s0": 7}) == value
