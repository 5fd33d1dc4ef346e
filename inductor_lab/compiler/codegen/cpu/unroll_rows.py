"""Unroll short rows that the steps of a part sum, so that vector lanes run along the steps.

    row = 3 zeros                              row_0 = row_1 = row_2 = 0
    for step0 in 0 .. 1000:                    for step0 in 0 .. 1000:
        for j0 in 0 .. 3: acc0 += x[j0]**2  →      t3 = x[0]**2 + x[1]**2 + x[2]**2
        for j0 in 0 .. 3:                          row_0 += x[0] * t3
            row[j0] += x[j0] * acc0                row_1 += x[1] * t3 ..

Example: the forces between 1,000 particles take 2.2 instead of 30 ms (one core with AVX-512,
GCC 12, November 2026).  Inductor unrolls sums of few elements when it lowers them
(`ir.py`, `Reduction.create`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import each_loop, fed_by
from inductor_lab.compiler.codegen.cpu.split_loops import MOST_COPIES, iterations
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Init,
    Let,
    Local,
    Loop,
    LoopKind,
    Stmt,
    Store,
    Tree,
    When,
)
from inductor_lab.compiler.codegen.tree.visit import is_innermost, walk, with_values
from inductor_lab.compiler.ir.expr import Expr, Load, Op, Temp, map_expr


def unroll_rows(tree: Tree, facts: Facts) -> Tree:
    """Unroll short rows in loops that contain only such rows."""
    return each_loop(tree, lambda loop: _unrolled(loop) if _is_short(loop) else None)


def _is_short(point: Loop) -> bool:
    """Does a point sum the elements of rows, and are all of its rows short?"""
    inside = [stmt for stmt in walk(point.body) if isinstance(stmt, Loop)]
    rows = [loop for loop in inside if loop.kind is not LoopKind.ORDERED]
    short = all(
        is_innermost(row) and isinstance(row.axis.size, int) and row.axis.size <= MOST_COPIES
        for row in rows
    )
    plain = all(
        isinstance(stmt, Let | When | Store)
        or (isinstance(stmt, Accumulate) and stmt.kind == "sum")
        for row in rows
        for stmt in walk(row.body)
    )
    summed = any(isinstance(stmt, Local) and stmt.zero for stmt in point.body)
    return summed and len(rows) < len(inside) and short and plain


def _unrolled(point: Loop) -> Tree:
    arrays = {stmt.name: stmt for stmt in point.body if isinstance(stmt, Local)}
    return (replace(point, body=_body(point.body, arrays)),)


def _body(stmts: Tree, arrays: Mapping[str, Local]) -> Tree:
    """The statements, with one accumulator per array element instead of arrays."""
    made: dict[Expr, Temp] = {}
    new: list[Stmt] = []
    rows = (s for s in stmts if isinstance(s, Loop) and s.kind is not LoopKind.ORDERED)
    fed = {acc.name for row in rows for acc in fed_by(row)}
    for stmt in stmts:
        match stmt:
            case Local(name, dtype, (count,)):
                new += (Init(_element(name, k), "sum", dtype, stmt.origins) for k in range(count))
            case Loop(kind=LoopKind.ORDERED):
                new.append(replace(stmt, kind=LoopKind.REDUCE, body=_body(stmt.body, arrays)))
            case Loop():
                new += _copies(stmt, arrays, made)
            case Init(name) if name in fed:
                pass
            case _:
                new.append(stmt)
    return tuple(new)


def _copies(row: Loop, arrays: Mapping[str, Local], made: dict[Expr, Temp]) -> Tree:
    """The unrolled iterations of a loop over a row, then its sums."""
    new: list[Stmt] = []
    terms: dict[Accumulate, list[Expr]] = {}

    def value(node: Expr) -> Expr:
        if isinstance(node, Load) and node.buffer in arrays:
            return Temp(_element(node.buffer, node.index[0].constant), node.dtype)
        return map_expr(node, value, lambda index: index)

    for piece in iterations(row, made):
        for stmt in row.body:
            if isinstance(stmt, Accumulate):
                terms.setdefault(stmt, []).append(piece.expr(stmt.value))
                continue
            for copy in piece.stmt(stmt):
                if isinstance(copy, Store) and copy.buffer in arrays:
                    name = _element(copy.buffer, copy.index.constant)
                    new.append(Accumulate(name, "sum", copy.value, None, copy.origins))
                else:
                    new.append(with_values(copy, value, lambda index: index))
    for acc, values in terms.items():
        dtype = acc.value.dtype
        total = reduce(lambda a, b: Op("add", (a, b), dtype, acc.origins), values)
        new.append(Let(Temp(acc.name, dtype), total, acc.origins))
    return tuple(new)


def _element(array: str, at: object) -> str:
    return f"{array}_{at}"
