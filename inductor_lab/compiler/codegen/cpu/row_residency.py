"""Keep a value that two loops over a row need: compute it in the first, load it in the second.

    for j: s += exp(x[j] - m)            for j: row0[j] = exp(x[j] - m); s += row0[j]
    for j: out[j] = exp(x[j] - m) / s  → for j: out[j] = row0[j] / s

Only expensive values are kept, in local arrays that stay in the cache of a core.  If a row is
longer or has a symbolic length, they are kept in the result buffer:

    for j: out[j] = exp(x[j] - m); s += out[j]
    for j: out[j] = out[j] / s

Inductor has no counterpart: it writes such a value to a buffer or recomputes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial

import torch

from inductor_lab.compiler.codegen.cpu.access import is_contiguous
from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import at_points
from inductor_lab.compiler.codegen.cpu.plan import Simd
from inductor_lab.compiler.codegen.cpu.stack import fits_on_stack
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Let,
    Local,
    Loop,
    LoopKind,
    Stmt,
    Store,
    Tree,
)
from inductor_lab.compiler.codegen.tree.visit import drop_dead_values, loads_in, walk
from inductor_lab.compiler.ir.expr import Expr, Load, Op, Temp, map_expr
from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.ir.ops import EXPENSIVE_FLOPS, OPS

LONGEST_ROW = 65536
"""Elements; 256 KiB of floats, a fraction of a core's second-level cache.  All rows together must
fit on a thread's stack."""


def keep_rows(tree: Tree, facts: Facts) -> Tree:
    """Keep expensive values that several loops over a row share in local arrays."""
    longest = LONGEST_ROW if facts.plan.simd is Simd.INNER else facts.plan.longest_row
    change = partial(_kept_in_rows, longest=longest)
    return tree if facts.plan.inner_threads else at_points(tree, change)


def keep_rows_in_results(tree: Tree, facts: Facts) -> Tree:
    """Keep expensive values of long rows in the result buffer."""
    change = partial(_kept_in_results, streamed=facts.streamed)
    alone = facts.plan.simd is Simd.INNER and not facts.plan.inner_threads
    return at_points(tree, change) if alone else tree


def _kept_in_rows(body: Tree, longest: int) -> Tree:
    """The body of a point, with shared values in rows (local arrays)."""
    numbers = _ValueNumbers()
    seen: dict[tuple[Axis, int], str] = {}
    rows: dict[tuple[Axis, int], Local] = {}
    loops = _simple_loops(body, longest)
    for loop in loops:
        for let, number in numbers.of(loop):
            key = (loop.axis, number)
            if _is_expensive(let.value) and key in seen and seen[key] != let.temp.name:
                assert isinstance(loop.axis.size, int)
                row = Local(f"row{len(rows)}", let.temp.dtype, (loop.axis.size,))
                if fits_on_stack((*rows.values(), row)):
                    rows.setdefault(key, row)
            seen.setdefault(key, let.temp.name)
    if not rows:
        return body
    places = {
        (axis, number): Load(row.name, (Index.of(axis),), row.dtype)
        for (axis, number), row in rows.items()
    }
    first = {seen[key]: place for key, place in places.items()}
    later = {
        let.temp.name: places[loop.axis, number]
        for loop in loops
        for let, number in numbers.of(loop)
        if (loop.axis, number) in rows and let.temp.name not in first
    }
    changed = set(map(id, loops))
    new = (_rewritten(s, first, later) if id(s) in changed else s for s in body)
    return (*rows.values(), *new)


def _kept_in_results(body: Tree, streamed: Collection[str]) -> Tree:
    """The body of a point, with an expensive value kept where a later loop stores its result.

    Not in `streamed` buffers: streaming stores bypass the caches.
    """
    numbers = _ValueNumbers()
    seen: dict[tuple[Axis, int], tuple[int, str]] = {}
    for position, loop in enumerate(body):
        if not (isinstance(loop, Loop) and _is_simple(loop)) or _is_at_most(loop, LONGEST_ROW):
            continue
        for let, number in numbers.of(loop):
            key = (loop.axis, number)
            before, name = seen.setdefault(key, (position, let.temp.name))
            if before == position or not _is_expensive(let.value):
                continue
            for place in _results_of(loop, let.temp.dtype):
                if place.buffer in streamed:
                    continue
                first = _rewritten(body[before], {name: place}, {})
                second = _rewritten(loop, {}, {let.temp.name: place})
                new = [*body[:before], first, *body[before + 1 : position], second]
                kept = (*new, *body[position + 1 :])
                if _may_be_kept(kept, before, place):
                    return kept
    return body


def _results_of(loop: Loop, dtype: torch.dtype) -> Iterator[Load]:
    """The contiguous stores of a dtype in a loop."""
    for stmt in loop.body:
        if isinstance(stmt, Store) and stmt.kind == "store" and stmt.value.dtype == dtype:
            if is_contiguous(stmt.index, loop.axis):
                yield Load(stmt.buffer, (stmt.index,), dtype)


def _may_be_kept(body: Tree, first: int, place: Load) -> bool:
    """May the loop at `first` already store at `place` without overwriting a value still needed?

    The result may alias any buffer of its dtype.  So the loop may read these buffers only at the
    same index, and no later loop may read them.
    """
    stores = [s for s in walk(body) if isinstance(s, Store) and s.buffer == place.buffer]
    inside, afterwards = loads_in((body[first],)), loads_in(body[first + 1 :])
    return (
        len(stores) == 2
        and all(x.index == place.index for x in inside if x.dtype == place.dtype)
        and all(x == place for x in afterwards if x.dtype == place.dtype)
    )


def _simple_loops(body: Tree, longest: int) -> list[Loop]:
    loops = (stmt for stmt in body if isinstance(stmt, Loop))
    return [loop for loop in loops if _is_simple(loop) and _is_at_most(loop, longest)]


def _is_simple(loop: Loop) -> bool:
    inside = any(isinstance(stmt, Loop) for stmt in loop.body)
    return not inside and loop.kind is not LoopKind.BISECT


def _is_at_most(loop: Loop, longest: int) -> bool:
    return isinstance(loop.axis.size, int) and loop.axis.size <= longest


class _ValueNumbers:
    """Value numbering: values that are equal at the same index of two loops have one number."""

    def __init__(self) -> None:
        self.known: dict[Expr, int] = {}

    def of(self, loop: Loop) -> list[tuple[Let, int]]:
        """Each Let of a loop, with the number of its value."""
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


def _rewritten(loop: Stmt, first: dict[str, Load], later: dict[str, Load]) -> Stmt:
    """The loop with stores to rows and loads from rows, without dead values.

    `first` maps temps to the places where this loop stores them, `later` to those where it loads
    them.
    """
    assert isinstance(loop, Loop)
    new: list[Stmt] = []
    for stmt in loop.body:
        name = stmt.temp.name if isinstance(stmt, Let) else ""
        if isinstance(stmt, Let) and name in later:
            stmt = replace(stmt, value=replace(later[name], origins=stmt.origins))
        new.append(stmt)
        if isinstance(stmt, Let) and name in first:
            place = first[name]
            new.append(Store(place.buffer, place.index[0], stmt.temp, stmt.origins))
    return replace(loop, body=drop_dead_values(tuple(new)))
