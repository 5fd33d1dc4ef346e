"""Blocked scans: what is expensive before and after them, and running sums, in vector lanes.

    for j0 in 0 .. n:                    for j0_block in 0 .. n by 64:
        acc0 += exp(x[j0])        →          for j0 in the block: acc0_block[..] = exp(x[j0])
        out[j0] = acc0                       acc0 = lab_running_sum(acc0, acc0_block, ..)
                                             for j0 in the block: out[j0] = acc0_block[..]

A loop-carried dependence rules out vector lanes.  So what is expensive before and after the
accumulation runs in loops of its own.  Sums have lanes all the same:
`lab_running_sum` adds a vector to itself, moved by one, two, four places and so on.

Inductor has no counterpart: scans on the CPU are ATen's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import crossing, each_loop, has_expensive
from inductor_lab.compiler.codegen.cpu.plan import Simd
from inductor_lab.compiler.codegen.cpu.strip_mine import strip_mined
from inductor_lab.compiler.codegen.cpu.thread_parts import needed_by_scans
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Address,
    Call,
    ElementAlias,
    Local,
    Loop,
    LoopKind,
    Stmt,
    Store,
    Tree,
)
from inductor_lab.compiler.codegen.tree.visit import defined_by, read_by
from inductor_lab.compiler.ir.expr import Temp
from inductor_lab.compiler.ir.index import Index, hint

SCAN_BLOCK = 64
"""Elements of a block: the arrays between its loops stay in the first-level cache."""
SHORTEST_SUM = 16
"""Length of a row from which on its running sum is computed in lanes."""

Runs = tuple[Tree, Tree, Tree]
"""What comes before a scan, the scan, and what comes after it."""


def scans(tree: Tree, facts: Facts) -> Tree:
    """The tree with scans blocked, where something gains vector lanes."""
    if facts.plan.simd is Simd.COLUMNS:
        return tree

    def change(loop: Loop) -> Tree | None:
        if loop.kind is not LoopKind.SCAN:
            return None
        before, scan, after = runs_of(loop)
        return _Blocks(loop, before, scan, after).tree() if before or after else (loop,)

    return each_loop(tree, change)


@dataclass
class _Blocks:
    loop: Loop
    before: Tree
    scan: Tree
    after: Tree

    def tree(self) -> Tree:
        """Arrays for what is live between the loops of a block, and the blocks."""
        summed = is_sum(self.scan)
        running = {s.name: s for s in self.scan if isinstance(s, Accumulate)}
        runs = (self.before, self.scan, self.after)
        living = crossing(((*self.before, *self.scan), self.after) if summed else runs)
        known = {temp.name for temp in living}
        if summed:  # they are in the loop before them
            extra = [s for name, s in running.items() if name not in known]
            living += [Temp(s.name, s.value.dtype) for s in extra]

        def inside(stretch: Loop) -> Tree:
            return self._block(stretch, living, running, summed)

        arrays = (Local(f"{t.name}_block", t.dtype, (SCAN_BLOCK,)) for t in living)
        return (*arrays, strip_mined(self.loop, SCAN_BLOCK, inside))

    def _block(
        self, stretch: Loop, living: list[Temp], running: dict[str, Accumulate], summed: bool
    ) -> Tree:
        place = Index.of(stretch.axis) - stretch.begin
        held = [ElementAlias(t.name, f"{t.name}_block", (place,)) for t in living]
        body: list[Stmt] = [h for h in held if h.name not in running]
        within = replace(stretch, kind=LoopKind.SERIAL)
        if summed:
            body += self._summed(running, within, place)
        else:
            so_far = [
                Store(f"{t.name}_block", place, t, running[t.name].origins)
                for t in living
                if t.name in running
            ]
            body += _block(within, self.before)
            body += _block(stretch, (*self.scan, *so_far))
        body += [h for h in held if h.name in running]
        return (*body, *_block(within, self.after))

    def _summed(self, running: dict[str, Accumulate], within: Loop, place: Index) -> list[Stmt]:
        added = [Store(f"{n}_block", place, s.value, s.origins) for n, s in running.items()]
        count = within.stop - within.begin
        sums = [
            Call(
                "lab_running_sum",
                (Temp(name, stmt.value.dtype), Address(f"{name}_block"), count),
                name,
                stmt.origins,
            )
            for name, stmt in running.items()
        ]
        return [*_block(within, (*self.before, *added)), *sums]


def _block(loop: Loop, stmts: Tree) -> Tree:
    """One loop over a block."""
    return (replace(loop, body=stmts),) if stmts else ()


def runs_of(loop: Loop) -> Runs:
    """The body split in three; what is cheap stays in the sequential loop of the scan."""
    body = loop.body
    needed = needed_by_scans(body)
    depends = {stmt.name for stmt in needed if isinstance(stmt, Accumulate)}
    before: list[Stmt] = []
    for stmt in needed:
        if isinstance(stmt, Accumulate) or read_by((stmt,)) & depends:
            defined = defined_by(stmt)
            depends |= {defined.name} if defined is not None else set()
        else:
            before.append(stmt)
    scan = [stmt for stmt in body if stmt in needed and stmt not in before]
    after = [stmt for stmt in body if stmt not in needed]
    if is_sum(scan) and hint(loop.axis.size, SHORTEST_SUM) >= SHORTEST_SUM:
        return tuple(before), tuple(scan), tuple(after)
    if not has_expensive(tuple(before)):
        before, scan = [], [stmt for stmt in body if stmt in needed]
    if not has_expensive(tuple(after)):
        after, scan = [], [stmt for stmt in body if stmt not in before]
    return tuple(before), tuple(scan), tuple(after)


def is_sum(scan: Sequence[Stmt]) -> bool:
    """Are there only sums, each of what is known beforehand, in numbers that have lanes?"""
    names = {stmt.name for stmt in scan if isinstance(stmt, Accumulate)}
    return all(
        isinstance(stmt, Accumulate)
        and stmt.kind == "sum"
        and stmt.value.dtype in (torch.float32, torch.float64, torch.int64)
        and not read_by((stmt,)) & names
        for stmt in scan
    )
