"""Compute scans block by block, so that running sums and expensive operations are vectorized.

    for j0 in 0 .. n:                    for j0_block in 0 .. n by 64:
        acc0 += exp(x[j0])        →          for j0 in the block: acc0_block[..] = exp(x[j0])
        out[j0] = acc0                       acc0 = lab_running_sum(acc0, acc0_block, ..)
                                             for j0 in the block: out[j0] = acc0_block[..]

A loop-carried dependence prevents vectorization.  So expensive operations before and after the
accumulation run in separate loops.  Running sums are vectorized too: `lab_running_sum` adds a
vector to itself, shifted by one, two, four lanes and so on.

Inductor has no counterpart: it calls ATen for scans on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import each_loop, has_expensive, live_between
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
"""Elements per block: the arrays between its loops stay in the first-level cache."""
SHORTEST_SUM = 16
"""Smallest row length for which the running sum is vectorized."""

Runs = tuple[Tree, Tree, Tree]
"""The statements before a scan, the scan, and the statements after it."""


def scans(tree: Tree, facts: Facts) -> Tree:
    """Split scans into blocks if this vectorizes something."""
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
        """Arrays for the values that are live between the loops of a block, then the blocks."""
        summed = is_sum(self.scan)
        running = {s.name: s for s in self.scan if isinstance(s, Accumulate)}
        runs = (self.before, self.scan, self.after)
        living = live_between(((*self.before, *self.scan), self.after) if summed else runs)
        known = {temp.name for temp in living}
        if summed:  # the loop before the scan computes the values to add
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
    """One loop over a block, if there are statements."""
    return (replace(loop, body=stmts),) if stmts else ()


def runs_of(loop: Loop) -> Runs:
    """Split the body into three runs; cheap statements stay in the sequential loop of the scan."""
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
    """Are all statements sums of independent values, with a dtype that can be vectorized?"""
    names = {stmt.name for stmt in scan if isinstance(stmt, Accumulate)}
    return all(
        isinstance(stmt, Accumulate)
        and stmt.kind == "sum"
        and stmt.value.dtype in (torch.float32, torch.float64, torch.int64)
        and not read_by((stmt,)) & names
        for stmt in scan
    )
