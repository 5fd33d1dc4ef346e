"""Workarounds for miscompilations by C++ compilers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from inductor_lab.compiler.codegen.cpp.expressions import Writer
from inductor_lab.compiler.codegen.tree.loop_tree import If, Loop, Stmt, Store, When
from inductor_lab.compiler.codegen.tree.visit import expressions, is_innermost, loads_in, walk
from inductor_lab.compiler.ir.expr import Op


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


APART = {f"sub.{dtype}": "lab_difference<{T}>({0}, {1})" for dtype in ("float32", "float64")}
"""Texts for subtractions that GCC cannot combine with additions."""


@contextmanager
def kept_apart(loop: Loop, writer: Writer) -> Iterator[None]:
    """Print subtractions as `lab_difference` in innermost loops with several stores to a buffer.

    GCC 12 compiles adjacent `a*c - b*d` and `a*d + b*c` to `vfmaddsub`, which rounds only once,
    although contraction is off (`-ffp-contract=off`).
    """
    stores = Counter(stmt.buffer for stmt in loop.body if isinstance(stmt, Store))
    table = writer.table
    if is_innermost(loop) and max(stores.values(), default=0) > 1:
        writer.table = {**table, **APART}
    yield
    writer.table = table
