"""The last passes over a tree: mark loops that C++ compilers would compile wrongly.

    for j0 in 0 .. 5:                    for j0 in 0 .. 5, not unrolled:
        when a[..] > 0: ..        →          when a[..] > 0: ..

The printers print the marks in `Loop.execution`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Execution,
    If,
    Loop,
    Stmt,
    Store,
    Tree,
    When,
)
from inductor_lab.compiler.codegen.tree.visit import (
    expressions,
    is_innermost,
    loads_in,
    old_if_same,
    walk,
)
from inductor_lab.compiler.ir.expr import Op
from inductor_lab.compiler.ir.index import is_int


def keep_rolled(tree: Tree, facts: Facts) -> Tree:
    """Mark loops that GCC 12 would unroll and compile wrongly.

    OpenMP directives also prevent unrolling, so loops with a directive need no mark.
    """

    def marked(loop: Loop) -> Execution:
        own = loop.execution
        directive = own.threads or own.team or own.simd or not is_int(own.work, 0)
        return own if directive or not is_misread(loop) else replace(own, rolled=True)

    return _with_marks(tree, marked)


def keep_rounding(tree: Tree, facts: Facts) -> Tree:
    """Mark innermost loops with several stores to one buffer.

    GCC 12 compiles adjacent `a*c - b*d` and `a*d + b*c` to `vfmaddsub`, which rounds only once,
    although contraction is off (`-ffp-contract=off`).
    """

    def marked(loop: Loop) -> Execution:
        stores = Counter(stmt.buffer for stmt in loop.body if isinstance(stmt, Store))
        several = is_innermost(loop) and max(stores.values(), default=0) > 1
        return replace(loop.execution, rounds_differences=True) if several else loop.execution

    return _with_marks(tree, marked)


def _with_marks(tree: Tree, marked: Callable[[Loop], Execution]) -> Tree:
    """The tree with a new `execution` for each loop; the same tree if none changes."""

    def change(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Loop | When | If):
            return stmt
        body = _with_marks(stmt.body, marked)
        new = stmt if body is stmt.body else replace(stmt, body=body)
        if isinstance(new, Loop) and isinstance(stmt, Loop):
            marks = marked(stmt)
            return new if marks == stmt.execution else replace(new, execution=marks)
        return new

    return old_if_same(tuple(map(change, tree)), tree)


def is_misread(loop: Loop) -> bool:
    """Would GCC 12 unroll this loop and compile it wrongly for AVX-512?

    GCC fully unrolls loops of up to 16 iterations.  If the trip count is not a power of two, it can
    merge the loads of all iterations into one vector load, guarded by the condition of the first
    iteration (`for (j < 5) out[5 * i + j] = a[5 * i + j] > 0 ? b[5 * i + j] : 0`).
    """
    count = loop.axis.size if isinstance(loop.axis.size, int) else 0
    if not 2 < count <= 16 or count & (count - 1) == 0 or not is_innermost(loop):
        return False
    inside = list(walk(loop.body))
    nodes = (node for stmt in inside for value in expressions(stmt) for node in value.walk())
    return any(isinstance(stmt, When | If) for stmt in inside) or any(
        isinstance(node, Op) and node.name == "where" for node in nodes
    )


def is_guarded(stmt: Stmt) -> bool:
    """Does the statement load under a condition?

    GCC 12 vectorizes two conditional loads of adjacent elements along the enclosing loop, and
    permutes the AVX-512 lanes wrongly
    (`if (i < 33) { out[2 * i] = a[2 * i]; out[2 * i + 1] = a[2 * i + 1]; }`).
    """
    return any(any(loads_in((when,))) for when in walk((stmt,)) if isinstance(when, When | If))
