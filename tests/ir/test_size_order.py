"""Comparisons of symbolic sizes."""

from __future__ import annotations

import sympy
from torch.utils._sympy.functions import FloorDiv

from inductor_lab.compiler.ir.size_order import at_most

n = sympy.Symbol("n", integer=True, positive=True)


def test_a_quotient_is_at_most_its_dividend() -> None:
    m, third = sympy.Symbol("m", integer=True), FloorDiv(n, 3)
    assert at_most(third, n) and at_most(2 * third, n - third) and at_most(n + third, 2 * n)
    assert not at_most(n, third) and not at_most(third + 1, n) and not at_most(FloorDiv(m, 3), m)
    assert not at_most(third * 4, n)
