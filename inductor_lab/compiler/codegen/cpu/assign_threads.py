"""Parallelize the outer loops over points across threads, and vectorize innermost loops.

    for i0 in 0 .. 64:            →      for i0 in 0 .. 64, threads:
        for i1 in 0 .. 512:                  for i1 in 0 .. 512, lanes:

Inductor: `WorkSharing` and `LoopLevel.simd_omp` in `codegen/cpp.py`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain, groupby

from inductor_lab.compiler.codegen.cpu.extremes import PLAIN
from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import each_loop, fed_by, is_point, point_loops
from inductor_lab.compiler.codegen.cpu.plan import Simd
from inductor_lab.compiler.codegen.cpu.thread_parts import threads_of
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Check,
    Execution,
    Loop,
    LoopKind,
    Stmt,
    Store,
    Tree,
)
from inductor_lab.compiler.codegen.tree.visit import (
    defined_by,
    is_innermost,
    old_if_same,
    temps_read,
    walk,
)
from inductor_lab.compiler.ir.index import Axis

CLAUSES = {
    "sum": "+", "prod": "*", "any": "|", "all": "&", "max": "max", "min": "min",
    "greatest": "max", "least": "min", "nan": "|",
}  # fmt: skip
"""The OpenMP name of a reduction."""
INDEPENDENT = (LoopKind.VECTOR, LoopKind.SERIAL)


def assign_threads(tree: Tree, facts: Facts) -> Tree:
    """Parallelize the outermost loops over points across threads."""
    plan = facts.plan
    if not plan.threads:
        return tree
    team = plan.in_team and plan.simd is not Simd.COLUMNS
    # a loop whose short inner loop was unrolled has become the vector loop
    levels = sum(loop.kind is not LoopKind.VECTOR for loop in point_loops(tree)[: plan.threads])
    levels = max(levels, 1)
    execution = Execution(threads=levels, team=True) if team else threads_of(facts, levels)
    new: list[Stmt] = []
    for shared, run in ((shared, tuple(run)) for shared, run in groupby(tree, is_point)):
        if shared:
            new += (replace(loop, execution=execution) for loop in run if isinstance(loop, Loop))
        else:
            new += _on_one_thread(run, tree) if team else run
    return old_if_same(tuple(new), tree)


def _on_one_thread(run: Tree, tree: Tree) -> Tree:
    """Run the statements between parallel loops on one thread of a team.

    Every thread of the team reaches them, and one could read what another has already overwritten.
    The one-iteration loop contains all these statements; if later statements need their values, it
    contains only the stores.
    """
    own = {defined_by(stmt) for stmt in run}
    later = {temp for stmt in walk(tree) if stmt not in run for temp in temps_read(stmt)}
    parts = [run] if own.isdisjoint(later) else [(stmt,) for stmt in run]
    once = partial(
        Loop, Axis("once", 1), LoopKind.SERIAL, execution=Execution(threads=1, team=True)
    )
    new = ((once(p),) if any(isinstance(s, Store) for s in walk(p)) else p for p in parts)
    return tuple(chain.from_iterable(new))


def assign_lanes(tree: Tree, facts: Facts) -> Tree:
    """Vectorize innermost loops whose iterations are independent."""

    def change(loop: Loop) -> Tree | None:
        if not is_innermost(loop):
            return None
        execution = _with_lanes(loop)
        return (loop if execution is loop.execution else replace(loop, execution=execution),)

    return each_loop(tree, change)


def _with_lanes(loop: Loop) -> Execution:
    """The execution of an innermost loop, with vector lanes if possible.

    A loop that accumulates a position has no lanes.  Neither has a loop with checks in a team: the
    error status there is private to threads, not to lanes.
    """
    checked = any(isinstance(stmt, Check) for stmt in walk(loop.body))
    fed = fed_by(loop)
    placed = any(a.position is not None or a.found is not None for a in fed)
    if loop.execution.team and checked:
        return loop.execution
    if loop.kind in INDEPENDENT and not placed:
        return replace(loop.execution, simd=True)
    if loop.kind is not LoopKind.REDUCE or not all(map(_has_clause, fed)):
        return loop.execution
    clauses = tuple((CLAUSES[acc.kind], acc.name) for acc in _flags_first(fed))
    return replace(loop.execution, simd=True, reductions=clauses)


def _has_clause(acc: Accumulate) -> bool:
    """Does OpenMP support the reduction?  Its maximum and minimum of floats lose NaN."""
    extreme_of_floats = acc.kind in PLAIN and acc.value.dtype.is_floating_point
    return acc.kind in CLAUSES and not extreme_of_floats


def _flags_first(fed: list[Accumulate]) -> list[Accumulate]:
    """The accumulators, with the NaN flag of each extreme before the extreme."""
    ordered: list[Accumulate] = []
    for acc in fed:
        ordered.insert(len(ordered) - (acc.kind == "nan"), acc)
    return ordered
