"""Parallelize the loops inside a point across threads if there are too few points.

    for j0 in 0 .. n:                    for part in 0 .. 32, threads:
        acc0 += x[j0]             →          begin, end = the part's share of n
                                             acc0 = 0
                                             for j0 in begin .. end: acc0 += x[j0]
                                             parts_acc0[part] = acc0
                                         for part in 0 .. 32: acc0 += parts_acc0[part]

The number of parts is fixed, so a sum does not depend on the number of threads.  A scan takes two
rounds: first the total of each part, then each part, starting from the total of the earlier parts.

Inductor: `#pragma omp for reduction`, with one partial result per thread, so that sums depend on
the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from inductor_lab.compiler.codegen.cpu.access import LINE
from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import at_points, fed_by
from inductor_lab.compiler.codegen.cpu.plan import CHUNKS, GRAIN, Simd
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Bound,
    ElementAlias,
    Execution,
    If,
    Init,
    Let,
    Local,
    Loop,
    LoopKind,
    PartBound,
    Stmt,
    Store,
    Tree,
    best_of,
)
from inductor_lab.compiler.codegen.tree.visit import defined_by, is_innermost, old_if_same, read_by
from inductor_lab.compiler.ir.expr import Expr, Load, Op, Temp
from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.ir.ops import POSITIONS

NEVER_SPLIT = (LoopKind.BISECT, LoopKind.ORDERED)


def split_into_parts(tree: Tree, facts: Facts) -> Tree:
    """Parallelize the loops inside points across threads."""
    if not facts.plan.inner_threads:
        return tree

    def change(body: Tree) -> Tree:
        return old_if_same(tuple(new for stmt in body for new in _shared(stmt, facts)), body)

    return at_points(tree, change)


def threads_of(facts: Facts, levels: int = 1) -> Execution:
    """Parallel execution of `levels` nested loops, if there is enough work."""
    return Execution(threads=levels, work=facts.plan.condition or 0, grain=GRAIN)


def _shared(stmt: Stmt, facts: Facts) -> Tree:
    if not isinstance(stmt, Loop) or stmt.kind in NEVER_SPLIT:
        return (stmt,)
    columns = facts.plan.simd is Simd.COLUMNS
    if stmt.kind is LoopKind.REDUCE:
        return _Parts(stmt, facts).reduction()
    if stmt.kind is not LoopKind.SCAN:
        return (replace(stmt, execution=threads_of(facts)),)
    totals = needed_by_scans(stmt.body)
    alone = not read_by(totals) & {s.name for s in totals if isinstance(s, Accumulate)}
    return _Parts(stmt, facts).scan(totals) if alone and not columns else (stmt,)


class _Parts:
    """A loop in parts.

    For columns, an accumulator is an element of the array of parts; for rows, it is a variable that
    is stored in this array at the end.
    """

    def __init__(self, loop: Loop, facts: Facts) -> None:
        size = loop.axis.size
        self.loop, self.facts, self.fed = loop, facts, fed_by(loop)
        self.columns = facts.plan.simd is Simd.COLUMNS
        self.count = min(CHUNKS, size) if isinstance(size, int) else CHUNKS
        self.part = Axis("part", self.count)
        self.at = Index.of(self.part)

    def reduction(self) -> Tree:
        combined = tuple(self._combined(acc) for acc in self.fed)
        return (*self._partial(self.loop.body), Loop(self.part, LoopKind.ORDERED, combined))

    def scan(self, totals: Tree) -> Tree:
        """`totals` are the statements of the body that the total of a part needs."""
        onward: list[Stmt] = []
        for acc in self.fed:
            names = _running(acc)
            for temp in names:
                before = Temp(f"part_{temp.name}", temp.dtype)
                onward.append(Let(before, self._element(temp), acc.origins))
                onward.append(Store(f"parts_{temp.name}", self.at, temp, acc.origins))
            onward.append(_combine_with_part(acc))
        starts = tuple(
            Init(a.name, a.kind, a.value.dtype, a.origins, tuple(map(self._element, _running(a))))
            for a in self.fed
        )
        return (
            *self._partial(totals),
            Loop(self.part, LoopKind.ORDERED, tuple(onward)),
            self._each((*starts, self._within(LoopKind.SCAN, self.loop.body))),
        )

    def _partial(self, body: Tree) -> Tree:
        """Store the partial result of each part in arrays `parts_..`."""
        running = [(acc, temp) for acc in self.fed for temp in _running(acc)]
        arrays = [
            Local(f"parts_{temp.name}", temp.dtype, (self.count,), acc.origins)
            for acc, temp in running
        ]
        starts = [Init(a.name, a.kind, a.value.dtype, a.origins) for a in self.fed]
        within = self._within(LoopKind.REDUCE, body)
        inside: list[Stmt]
        if self.columns:
            inside = [ElementAlias(t.name, f"parts_{t.name}", (self.at,)) for _, t in running]
            return *arrays, self._each((*inside, *starts, within))
        results = [Store(f"parts_{t.name}", self.at, t, acc.origins) for acc, t in running]
        return *arrays, self._each((*starts, within, *results))

    def _within(self, kind: LoopKind, body: Tree) -> Loop:
        begin, end = (Index.of(Axis(name, self.loop.axis.size)) for name in ("begin", "end"))
        return replace(self.loop, kind=kind, body=body, begin=begin, end=end)

    def _each(self, body: Sequence[Stmt]) -> Loop:
        """A threaded loop over the parts, each from `begin` to `end`."""
        size = self.loop.axis.size
        line = LINE if is_innermost(self.loop) and not self.columns else 1
        bounds = [
            Bound(Axis(name, size), PartBound(size, self.part, self.count, line, name == "end"))
            for name in ("begin", "end")
        ]
        execution = threads_of(self.facts)
        return Loop(self.part, LoopKind.SERIAL, (*bounds, *body), execution=execution)

    def _element(self, temp: Temp) -> Load:
        return Load(f"parts_{temp.name}", (self.at,), temp.dtype)

    def _combined(self, acc: Accumulate) -> Accumulate:
        place, *best = map(self._element, _running(acc))
        value, found = (best[0], place) if best else (place, None)
        return Accumulate(acc.name, acc.kind, value, None, acc.origins, found)


def _combine_with_part(acc: Accumulate) -> Stmt:
    """Combine the running value with the total of a part; an empty part has no position."""
    place, *best = (Temp(f"part_{temp.name}", temp.dtype) for temp in _running(acc))
    if not best:
        return Accumulate(acc.name, acc.kind, place, None, acc.origins)
    later: Expr = Op("ge", (place, Temp(acc.name, torch.int64)), torch.bool)
    taken = Accumulate(acc.name, acc.kind, best[0], None, acc.origins, place)
    return If(later, (taken,), acc.origins)


def _running(acc: Accumulate) -> list[Temp]:
    """The values of an accumulator."""
    if acc.kind not in POSITIONS:
        return [Temp(acc.name, acc.value.dtype)]
    return [Temp(acc.name, torch.int64), Temp(best_of(acc.name), acc.value.dtype)]


def needed_by_scans(body: Tree) -> Tree:
    """The accumulations, and the definitions of the values that they need."""
    needed: set[str] = set()
    taken: list[Stmt] = []
    for stmt in reversed(body):
        defined = defined_by(stmt)
        if isinstance(stmt, Accumulate) or (defined is not None and defined.name in needed):
            taken.append(stmt)
            needed |= read_by((stmt,))
    return tuple(reversed(taken))
