"""Insert run-time checks: indices out of range, and integer division by zero.

    t0 = in0[i0]                  →      t0 = in0[i0]
    t1 = in1[t0]                         check t0 in 0 .. 100
                                         t1 = in1[t0]
                                         check t3 is not 0
    t4 = t2 // t3                        t4 = t2 // t3

Indices of loads are clamped, so nothing is read out of range; the check makes the kernel report an
error. Inductor: `TORCH_CHECK` through `check_bounds`; divisions by zero trap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.tree.loop_tree import Check, If, Let, Loop, Stmt, Tree, When
from inductor_lab.compiler.codegen.tree.visit import (
    defined_by,
    expressions,
    old_if_same,
    places,
    walk,
)
from inductor_lab.compiler.ir.expr import NO_ORIGINS, Expr, Origins, Temp, integer_divisors
from inductor_lab.compiler.ir.index import gathered_in


def checks(tree: Tree, facts: Facts) -> Tree:
    """Insert each check after the definition of its value and before its first use.

    The index of a masked load may be out of range where the mask is false.  So an index is checked
    after its definition only if it is also used without a mask; otherwise, and for results of
    reductions, it is checked just before each use.
    """
    made = set(map(defined_by, walk(tree)))
    known = [check for check in dict.fromkeys(unmasked(tree)) if check.value in made]

    def inside(body: Tree) -> Tree:
        new: list[Stmt] = []
        for stmt in body:
            if not isinstance(stmt, When):
                new += (Check(by, (), origins) for by, origins in divisors(stmt))
            new += (check for check in dict.fromkeys(gathers(stmt)) if check not in known)
            if isinstance(stmt, Loop | When | If):
                end = (Let(stmt.result, stmt.value),) if isinstance(stmt, When) else ()
                below = checks((*stmt.body, *end), facts) if end else inside(stmt.body)
                below = old_if_same(below[: len(below) - len(end)], stmt.body)
                stmt = stmt if below is stmt.body else replace(stmt, body=below)
            new.append(stmt)
            new += (check for check in known if check.value == defined_by(stmt))
        return old_if_same(tuple(new), body)

    return inside(tree)


def is_checked(tree: Tree, facts: Facts) -> bool:
    """Does the tree need run-time checks?"""
    return any(isinstance(stmt, Check) for stmt in walk(checks(tree, facts)))


def divisors(stmt: Stmt) -> list[tuple[Expr, Origins]]:
    """The integer divisors in this statement itself."""
    return [found for value in expressions(stmt) for found in integer_divisors(value)]


def unmasked(tree: Tree) -> Iterator[Check]:
    """Checks of the indices that statements use outside masks."""
    for stmt in tree:
        yield from gathers(stmt)
        yield from unmasked(stmt.body if isinstance(stmt, Loop | If) else ())


def gathers(stmt: Stmt) -> Iterator[Check]:
    """Checks of the indices that this statement itself uses outside its mask."""
    origins = NO_ORIGINS if isinstance(stmt, Loop) else stmt.origins
    values = (stmt.mask, stmt.other) if isinstance(stmt, When) else expressions(stmt)
    nodes = (node for value in values for node in value.walk())
    for index in (*(i for node in nodes for i in node.indices()), *places(stmt)):
        for atom in gathered_in(index):
            if isinstance(atom.value, Temp):
                yield Check(atom.value, (atom.size,), origins)
