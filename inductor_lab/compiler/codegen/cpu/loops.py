"""Queries and rewrites of loops that several passes share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from inductor_lab.compiler.codegen.tree.loop_tree import Accumulate, Loop, LoopKind, Stmt, Tree
from inductor_lab.compiler.codegen.tree.visit import (
    defined_by,
    nodes_in,
    old_if_same,
    temps_read,
    walk,
    with_body,
)
from inductor_lab.compiler.ir.expr import Op, Temp
from inductor_lab.compiler.ir.ops import EXPENSIVE_FLOPS, OPS

POINTS = (LoopKind.PARALLEL, LoopKind.VECTOR)


def has_expensive(body: Tree) -> bool:
    """Does the tree contain an operation that takes much longer than an addition?"""
    ops = (node.name for node in nodes_in(body) if isinstance(node, Op))
    return any(OPS[name].flops >= EXPENSIVE_FLOPS for name in ops)


def live_between(runs: Iterable[Tree]) -> list[Temp]:
    """Temps and accumulators that one run of statements sets and a later run reads."""
    known: set[str] = set()
    found: dict[Temp, None] = {}
    for run in runs:
        read = (temp for stmt in walk(run) for temp in temps_read(stmt))
        found |= dict.fromkeys(temp for temp in read if temp.name in known)
        known |= {temp.name for temp in map(defined_by, run) if temp is not None}
        known |= {stmt.name for stmt in run if isinstance(stmt, Accumulate)}
    return list(found)


def is_point(stmt: Stmt) -> bool:
    """Is it a loop over the group's axes?"""
    return isinstance(stmt, Loop) and stmt.kind in POINTS


def point_loops(tree: Tree) -> list[Loop]:
    """The loops over the group's axes, outermost first."""
    found: list[Loop] = []
    body = tree
    while True:
        points = [s for s in body if isinstance(s, Loop) and s.kind in POINTS]
        if not points:
            return found
        found.append(points[0])
        body = points[0].body


def innermost_loops(body: Tree) -> Iterator[Loop]:
    """Loops that contain no loop."""
    for stmt in body:
        if isinstance(stmt, Loop):
            below = list(innermost_loops(stmt.body))
            yield from below or [stmt]


def fed_by(loop: Loop) -> list[Accumulate]:
    """One statement for each accumulator that a loop feeds."""
    names = {s.name: s for s in reversed(list(walk(loop.body))) if isinstance(s, Accumulate)}
    return list(reversed(names.values()))


def at_points(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """Apply `change` to the statements that run once per point.

    These are the bodies of the innermost PARALLEL loops, or the full tree if there are none.
    """
    if not any(isinstance(s, Loop) and s.kind is LoopKind.PARALLEL for s in tree):
        return change(tree)
    new = (
        with_body(s, at_points(s.body, change))
        if isinstance(s, Loop) and s.kind is LoopKind.PARALLEL
        else s
        for s in tree
    )
    return old_if_same(tuple(new), tree)


def each_loop(body: Tree, change: Callable[[Loop], Tree | None]) -> Tree:
    """Apply `change` to loops, outer loops first; if it returns None, visit the loops inside."""
    new: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Loop):
            new.append(stmt)
        elif (made := change(stmt)) is not None:
            new += made
        else:
            new.append(with_body(stmt, each_loop(stmt.body, change)))
    return old_if_same(tuple(new), body)
