"""Compute the maximum and minimum of floats with a plain comparison and a separate NaN flag.

    for j0 in 0 .. 1024:                 max_acc0 = -inf; nan_acc0 = 0
        acc0 = max(acc0, x[j0])   →      for j0 in 0 .. 1024:
                                             max_acc0 = x[j0] if x[j0] > max_acc0 else max_acc0
                                             nan_acc0 |= isnan(x[j0])
                                         acc0 = max(acc0, nan if nan_acc0 else max_acc0)

torch's maximum is NaN if either operand is NaN. CPUs have no vector instruction for this, but they
have instructions for both parts.  Inductor: `at::vec::maximum`, three instructions per element.
"""

from __future__ import annotations

from math import nan

import torch

from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import each_loop, fed_by
from inductor_lab.compiler.codegen.cpu.plan import Simd
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Init,
    Loop,
    LoopKind,
    Stmt,
    Tree,
)
from inductor_lab.compiler.codegen.tree.visit import is_innermost, with_body
from inductor_lab.compiler.ir.expr import Const, Op, Temp

PLAIN = {"max": "greatest", "min": "least"}
"""The reduction that ignores NaN."""


def extremes(tree: Tree, facts: Facts) -> Tree:
    """Add a NaN flag for each maximum or minimum of floats."""
    if facts.plan.simd is Simd.COLUMNS:
        return tree

    def change(loop: Loop) -> Tree | None:
        if loop.kind is not LoopKind.REDUCE or not is_innermost(loop):
            return None
        fed = [a for a in fed_by(loop) if a.kind in PLAIN and a.value.dtype.is_floating_point]
        return _flagged(loop, fed) if fed else None

    return each_loop(tree, change)


def _flagged(loop: Loop, fed: list[Accumulate]) -> Tree:
    before: list[Stmt] = []
    after: list[Stmt] = []
    for acc in fed:
        dtype, kind = acc.value.dtype, PLAIN[acc.kind]
        best, flag = Temp(f"{acc.kind}_{acc.name}", dtype), Temp(f"nan_{acc.name}", torch.bool)
        before.append(Init(best.name, kind, dtype, acc.origins))
        before.append(Init(flag.name, "nan", torch.bool, acc.origins))
        value = Op("where", (flag, Const(nan, dtype), best), dtype)
        after.append(Accumulate(acc.name, acc.kind, value, None, acc.origins))
    names = {acc.name for acc in fed}
    body: list[Stmt] = []
    for stmt in loop.body:
        if isinstance(stmt, Accumulate) and stmt.name in names:
            plain = f"{stmt.kind}_{stmt.name}"
            body.append(Accumulate(plain, PLAIN[stmt.kind], stmt.value, None, stmt.origins))
            body.append(Accumulate(f"nan_{stmt.name}", "nan", stmt.value, None, stmt.origins))
        else:
            body.append(stmt)
    return (*before, with_body(loop, tuple(body)), *after)
