"""Compute argmax and argmin in two loops: find the extreme value first, then its position.

    for j0 in 0 .. 1024:                 for j0 in 0 .. 1024: best_acc0 = max(best_acc0, x[j0])
        acc0 = argmax(x[j0], j0)  →      first_acc0 = the largest number
                                         for j0 in 0 .. 1024:
                                             here = j0 if x[j0] == best_acc0 else that number
                                             first_acc0 = min(first_acc0, here)
                                         acc0 = first_acc0

A loop that accumulates both a value and its position cannot be vectorized.  A maximum can, and so
can the minimum of the positions that have this value.  The second loop reads elements that the
first loop brought into the cache.  Inductor keeps one position per lane.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from inductor_lab.compiler.codegen.cpu.checks import is_checked
from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import each_loop, has_expensive
from inductor_lab.compiler.codegen.cpu.plan import Simd
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Assign,
    Init,
    Let,
    Loop,
    LoopKind,
    Tree,
    best_of,
)
from inductor_lab.compiler.codegen.tree.visit import is_innermost
from inductor_lab.compiler.ir.expr import Const, Expr, IndexValue, Op, Temp
from inductor_lab.compiler.ir.index import Index

EXTREMES = {"argmax": "max", "argmin": "min"}
"""The reduction that computes the element at this position."""


def find_extreme_positions(tree: Tree, facts: Facts) -> Tree:
    """Search for the first position of an extreme in a separate loop."""
    if facts.plan.simd is Simd.COLUMNS:
        return tree

    def change(loop: Loop) -> Tree | None:
        if loop.kind is not LoopKind.REDUCE:
            return None
        sought = _is_searched(loop) and not is_checked(tree, facts)
        return _searched(loop) if sought else (loop,)

    return each_loop(tree, change)


def _is_searched(loop: Loop) -> bool:
    """Can the loop run twice, and does it compute only extremes and cheap values?"""
    fed = [s for s in loop.body if isinstance(s, Accumulate)]
    sought = any(acc.kind in EXTREMES for acc in fed)
    once = {acc.kind for acc in fed} <= {"max", "min", *EXTREMES}
    plain = all(isinstance(stmt, Let | Accumulate) for stmt in loop.body)
    wide = all(acc.value.dtype.itemsize >= 4 for acc in fed)
    cheap = is_innermost(loop) and not has_expensive(loop.body)
    return sought and once and plain and wide and cheap


def _searched(loop: Loop) -> Tree:
    sought = [s for s in loop.body if isinstance(s, Accumulate) and s.kind in EXTREMES]
    which = tuple(
        replace(s, name=best_of(s.name), kind=EXTREMES[s.kind], position=None) if s in sought else s
        for s in loop.body
    )
    lets = tuple(stmt for stmt in loop.body if isinstance(stmt, Let))
    places = [new for acc in sought for new in _first_place(loop, acc, lets)]
    return (replace(loop, body=which), *places)


def _first_place(loop: Loop, acc: Accumulate, lets: Tree) -> Tree:
    """The loop that finds the first position of the extreme, or of the first NaN.

    If the extreme is not NaN, the row contains no NaN.
    """
    assert acc.position is not None, "a search is for a position"
    value, size = acc.value, loop.axis.size
    short = acc.position == Index.of(loop.axis) and isinstance(size, int) and size < 2**31
    word = torch.int32 if short else torch.int64
    first, here = Temp(f"first_{acc.name}", word), Temp(f"here_{acc.name}", word)
    found: Expr = Op("eq", (value, Temp(best_of(acc.name), value.dtype)), torch.bool)
    if value.dtype.is_floating_point:
        nan = Op("ne", (value, value), torch.bool)
        found = Op("logical_or", (found, nan), torch.bool)
    nowhere = Const(torch.iinfo(word).max, word)
    place = Op("where", (found, IndexValue(acc.position, word), nowhere), word)
    least = Accumulate(first.name, "least", here, None, acc.origins)
    body = (*lets, Let(here, place, acc.origins), least)
    return (
        Init(first.name, "least", word, acc.origins),
        replace(loop, body=body),
        Assign(acc.name, first, acc.origins),
    )
