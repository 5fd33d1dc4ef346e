"""Reduce columns in strips: memory is contiguous along a row, so a strip of columns is reduced row
by row.

    for i0 in 0 .. 4096:                 for strip in 0 .. 4096 by 512:
        acc0 = 0                  →          for i0 in the strip: acc0[i0 - strip] = 0
        for j0 in 0 .. 8192:                 for j0 in 0 .. 8192:
            acc0 += x[4096 * j0 + i0]            for i0 in the strip:
                                                     acc0[i0 - strip] += x[4096 * j0 + i0]

Each value that is live between two of these inner loops becomes an array over the strip.

Inductor: the tiles of `CppTile2DKernel`, and the loop order of `simplify_and_reorder`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from math import prod

import torch

from inductor_lab.compiler.codegen.cpu.access import LINE
from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import each_loop, is_point, live_between
from inductor_lab.compiler.codegen.cpu.plan import STRIP, Simd
from inductor_lab.compiler.codegen.cpu.stack import fits_on_stack
from inductor_lab.compiler.codegen.cpu.strip_mine import strip_mined
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Bound,
    ElementAlias,
    Init,
    Let,
    Local,
    Loop,
    LoopKind,
    Stmt,
    Store,
    Tree,
    best_of,
)
from inductor_lab.compiler.codegen.tree.visit import defined_by, temps_read, walk, with_values
from inductor_lab.compiler.ir.expr import Expr, Load, map_expr
from inductor_lab.compiler.ir.index import Index
from inductor_lab.compiler.ir.ops import POSITIONS

WHOLE = 2048
"""The longest row that is one strip.  A short gap between two pieces of memory costs more than the
larger sums, which still fit in the first-level cache."""


def columns(tree: Tree, facts: Facts) -> Tree:
    """Move the innermost loop over points inside the loops over rows."""
    if facts.plan.simd is not Simd.COLUMNS:
        return tree

    def change(loop: Loop) -> Tree | None:
        if any(map(is_point, loop.body)):
            return None
        return _strips(loop, _width(loop, facts.plan.strip)) if is_point(loop) else (loop,)

    return each_loop(tree, change)


def _width(loop: Loop, strip: int) -> int:
    """The width of strips; rows that are not much longer than a strip are read as a whole."""
    size = loop.axis.size
    return size if strip == STRIP and isinstance(size, int) and size <= WHOLE else strip


def _strips(loop: Loop, width: int) -> Tree:
    """Strip-mine the loop, if it has more than one strip.

    Each value that is live between loops needs an array, so strips are narrower if there are many.
    """
    made = _strips_of(loop, width)
    while width > LINE and not fits_on_stack(
        stmt for stmt in walk(made) if isinstance(stmt, Local)
    ):
        width //= 2
        made = _strips_of(loop, width)
    return made


def _strips_of(loop: Loop, width: int) -> Tree:
    axis, size = loop.axis, loop.axis.size
    if isinstance(size, int) and size <= width:
        lanes = replace(loop, kind=LoopKind.SERIAL, body=())
        return _Strip(lanes, Index.of(axis), size).segments(loop.body, frozenset())

    def inside(stretch: Loop) -> Tree:
        lanes = replace(stretch, kind=LoopKind.SERIAL, body=())
        strip = _Strip(lanes, Index.of(axis) - lanes.begin, width)
        return strip.segments(loop.body, frozenset())

    return (strip_mined(loop, width, inside, LoopKind.PARALLEL, ("strip", "strip_end")),)


class _Strip:
    """`lanes` is the loop over a strip of `width` columns; `place` is the position in the strip."""

    def __init__(self, lanes: Loop, place: Index, width: int) -> None:
        self.lanes, self.place, self.width = lanes, place, width
        self.wide: set[str] = set()
        """Arrays that have been widened: one element per column instead of one in total."""

    def segments(self, body: Tree, held: frozenset[str]) -> Tree:
        """Put each run of statements without a loop into one loop over the strip.

        `held` are temps and accumulators that are already in arrays.
        """
        new: list[Stmt] = []
        runs = (tuple(run) for _, run in groupby(body, lambda stmt: isinstance(stmt, Loop)))
        living = (temp for temp in live_between(runs) if temp.name not in held)
        for temp in sorted(living, key=lambda t: t.name):
            held |= {temp.name}
            new += self._array(temp.name, temp.dtype)
        own: set[str] = set()
        run: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Loop():
                    new += self._lanes(run, held)
                    run = []
                    new.append(replace(stmt, body=self.segments(stmt.body, held)))
                case Local(name, shape=shape):
                    new += self._lanes(run, held)
                    run = []
                    self.wide.add(name)
                    new.append(replace(stmt, shape=(prod(shape) * self.width,)))
                case Bound():
                    new += [*self._lanes(run, held), stmt]
                    run = []
                case ElementAlias(name, at=at):
                    own.add(name)
                    held |= {name}
                    new.append(replace(stmt, at=self._columns(at)))
                case Init():
                    if stmt.name not in own:
                        new += self._accumulator(stmt)
                    held |= {stmt.name, best_of(stmt.name)}
                    run.append(stmt)
                case _:
                    run.append(stmt)
        return (*new, *self._lanes(run, held))

    def _accumulator(self, init: Init) -> list[Stmt]:
        if init.kind not in POSITIONS:
            return self._array(init.name, init.dtype)
        best = self._array(best_of(init.name), init.dtype)
        return [*self._array(init.name, torch.int64), *best]

    def _array(self, name: str, dtype: torch.dtype) -> list[Stmt]:
        return [Local(name, dtype, (self.width,)), ElementAlias(name, name, (self.place,))]

    def _lanes(self, run: list[Stmt], held: frozenset[str]) -> Tree:
        """A loop over the strip; values that are the same for all columns are hoisted out of it."""
        varying = set(held)
        before: list[Stmt] = []
        inside: list[Stmt] = []
        for stmt in run:
            stmt = with_values(stmt, self._value, lambda index: index)
            if self._is_uniform(stmt, varying):
                before.append(stmt)
                continue
            if isinstance(stmt, Store) and stmt.buffer in self.wide:
                stmt = replace(stmt, index=self._columns((stmt.index,))[0])
            inside.append(stmt)
            defined = defined_by(stmt)
            varying |= {defined.name} if defined is not None else set()
        loop = (replace(self.lanes, body=tuple(inside)),) if inside else ()
        return (*before, *loop)

    def _value(self, node: Expr) -> Expr:
        """The value, with loads of widened arrays redirected to the element of this column."""
        if isinstance(node, Load) and node.buffer in self.wide:
            return replace(node, index=self._columns(node.index))
        return map_expr(node, self._value, lambda index: index)

    def _columns(self, at: tuple[Index, ...]) -> tuple[Index, ...]:
        """The index of this column's element in a widened array."""
        (row,) = at
        return (row * self.width + self.place,)

    def _is_uniform(self, stmt: Stmt, varying: set[str]) -> bool:
        if not isinstance(stmt, Let):
            return False
        read = {temp.name for temp in temps_read(stmt)}
        along = self.lanes.axis in stmt.value.axes()
        return not along and stmt.temp.name not in varying and not read & varying
