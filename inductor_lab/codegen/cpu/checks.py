"""Run-time checks of a kernel: indices out of range, and integer divisors of 0.

    t0 = in0[i0]                  →      t0 = in0[i0]
    t1 = in1[t0]                         check t0 in 0 .. 100
                                         t1 = in1[t0]
                                         check t3 is not 0
    t4 = t2 // t3                        t4 = t2 // t3

What is read is clamped, so nothing is read out of range; the check makes the kernel say so.
Inductor: `TORCH_CHECK` through `check_bounds`; divisions by zero trap.
"""

from __future__ import annotations

from dataclasses import replace

from inductor_lab.codegen.cpu.facts import Facts
from inductor_lab.codegen.tree import Check, If, Let, Loop, Stmt, Tree, When
from inductor_lab.codegen.visit import defined_by, expressions, kept, places, walk
from inductor_lab.ir.expr import Expr, Origins, Temp, integer_divisors
from inductor_lab.ir.index import Size, gathered_in


def checks(tree: Tree, facts: Facts) -> Tree:
    """The tree with its checks, each where the value is known and before it is used."""
    gathered = gathered_checks(tree)

    def inside(body: Tree) -> Tree:
        new: list[Stmt] = []
        for stmt in body:
            if not isinstance(stmt, When):
                new += (Check(by, (), origins) for by, origins in divisors(stmt))
            if isinstance(stmt, Loop | When | If):
                below = inside(stmt.body)
                new.append(stmt if below is stmt.body else replace(stmt, body=below))
            else:
                new.append(stmt)
            temp = defined_by(stmt)
            if temp is not None and isinstance(stmt, Let | When):
                new += (Check(temp, (size,), stmt.origins) for size in gathered.get(temp, ()))
        return kept(tuple(new), body)

    return inside(tree)


def is_checked(tree: Tree) -> bool:
    """Does the tree need run-time checks?"""
    return bool(gathered_checks(tree)) or any(map(divisors, walk(tree)))


def divisors(stmt: Stmt) -> list[tuple[Expr, Origins]]:
    """What this very statement divides integers by."""
    return [found for value in expressions(stmt) for found in integer_divisors(value)]


def gathered_checks(tree: Tree) -> dict[Temp, list[Size]]:
    """Temps that are used as an index, each with the lengths it must stay below.

    A load under a mask may have an index out of range where the mask does not hold, so only
    indices that were made under that same mask are checked; the others are clamped in silence.
    """
    found: dict[Temp, list[Size]] = {}

    def visit(stmts: Tree, visible: set[Temp]) -> None:
        for stmt in stmts:
            nodes = (node for value in expressions(stmt) for node in value.walk())
            for index in (*(i for node in nodes for i in node.indices()), *places(stmt)):
                for atom in gathered_in(index):
                    if atom.value in visible:
                        assert isinstance(atom.value, Temp)
                        sizes = found.setdefault(atom.value, [])
                        sizes.extend(() if atom.size in sizes else (atom.size,))
            if isinstance(stmt, Let):
                visible.add(stmt.temp)
            elif isinstance(stmt, When):
                visit(stmt.body, set())
                visible.add(stmt.result)
            elif isinstance(stmt, Loop):
                visit(stmt.body, visible)

    visit(tree, set())
    return found
