"""Values that two loops over the same row need: computed in the first, kept for the second.

    for j: s += exp(x[j] - m)            for j: row0[j] = exp(x[j] - m); s += row0[j]
    for j: out[j] = exp(x[j] - m) / s  → for j: out[j] = row0[j] / s

Only expensive values are kept, and only rows that stay in the cache of a core.  Inductor has no
counterpart: it writes such a value to a buffer or computes it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from inductor_lab.codegen.tidy import temps_read, walk
from inductor_lab.codegen.tree import Let, Loop, LoopKind, Stmt, Store
from inductor_lab.ir.expr import Expr, Load, Op, Temp, map_expr
from inductor_lab.ir.index import Axis, Index
from inductor_lab.ir.ops import EXPENSIVE_FLOPS, OPS

LONGEST_ROW = 65536
"""Elements; 256 KiB of floats, a part of a core's second cache and of a thread's stack."""


@dataclass(frozen=True, slots=True)
class Row:
    """A local array, one for each thread."""

    name: str
    dtype: torch.dtype
    length: int


def keep_rows(body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], tuple[Row, ...]]:
    """The body of a point with expensive values of its loops kept in rows, and those rows."""
    numbers = _Numbers()
    seen: dict[tuple[Axis, int], str] = {}
    rows: dict[tuple[Axis, int], Row] = {}
    for loop in _simple_loops(body):
        for let, number in numbers.of(loop):
            key = (loop.axis, number)
            if _is_expensive(let.value) and key in seen and seen[key] != let.temp.name:
                assert isinstance(loop.axis.size, int)
                rows.setdefault(key, Row(f"row{len(rows)}", let.temp.dtype, loop.axis.size))
            seen.setdefault(key, let.temp.name)
    if not rows:
        return body, ()
    first = {seen[key]: row for key, row in rows.items()}
    later = {
        let.temp.name: rows[loop.axis, number]
        for loop in _simple_loops(body)
        for let, number in numbers.of(loop)
        if (loop.axis, number) in rows and let.temp.name not in first
    }
    loops = set(map(id, _simple_loops(body)))
    new = tuple(_rewritten(s, first, later) if id(s) in loops else s for s in body)
    return new, tuple(rows.values())


def _simple_loops(body: tuple[Stmt, ...]) -> Iterator[Loop]:
    for stmt in body:
        if isinstance(stmt, Loop) and not any(isinstance(s, Loop) for s in stmt.body):
            size = stmt.axis.size if stmt.kind is not LoopKind.BISECT else None
            if isinstance(size, int) and size <= LONGEST_ROW:
                yield stmt


class _Numbers:
    """Equal numbers for values that are equal at the same place of two loops."""

    def __init__(self) -> None:
        self.known: dict[Expr, int] = {}

    def of(self, loop: Loop) -> list[tuple[Let, int]]:
        """Each Let of a loop with the number of its value."""
        named: dict[str, Temp] = {}

        def canonical(expr: Expr) -> Expr:
            if isinstance(expr, Temp):
                return named.get(expr.name, expr)
            return map_expr(expr, canonical, lambda index: index.substitute({}, canonical))

        found = []
        for stmt in loop.body:
            if isinstance(stmt, Let):
                number = self.known.setdefault(canonical(stmt.value), len(self.known))
                named[stmt.temp.name] = Temp(f"value {number}", stmt.temp.dtype)
                found.append((stmt, number))
        return found


def _is_expensive(value: Expr) -> bool:
    return isinstance(value, Op) and OPS[value.name].flops >= EXPENSIVE_FLOPS


def _rewritten(loop: Stmt, first: dict[str, Row], later: dict[str, Row]) -> Stmt:
    """The loop with stores to rows, loads from rows, and without what nobody needs any more.

    It goes backwards, so that a value is known to be needed when its Let is met.
    """
    assert isinstance(loop, Loop)
    place = Index.of(loop.axis)
    needed: set[Temp] = set()
    kept: list[Stmt] = []
    for stmt in reversed(loop.body):
        new: Stmt = stmt
        if isinstance(stmt, Let):
            if stmt.temp.name in first:
                row = first[stmt.temp.name]
                kept.append(Store(row.name, place, stmt.temp, stmt.origins))
            elif stmt.temp not in needed:
                continue
            elif stmt.temp.name in later:
                row = later[stmt.temp.name]
                new = replace(stmt, value=Load(row.name, (place,), row.dtype, stmt.origins))
        needed |= {temp for inner in walk((new,)) for temp in temps_read(inner)}
        kept.append(new)
    return replace(loop, body=tuple(reversed(kept)))
