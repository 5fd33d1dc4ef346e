"""The shape of a loop tree as blocks see it: outer loops, inner loops, and what they touch."""

from __future__ import annotations

from collections.abc import Iterator

from inductor_lab.codegen.tree import Accumulate, Let, Loop, LoopKind, Stmt, When
from inductor_lab.codegen.visit import expressions, places, walk
from inductor_lab.ir.index import Axis, Index, is_int


def outer_loops(tree: tuple[Stmt, ...]) -> tuple[tuple[Axis, ...], tuple[Stmt, ...]]:
    """The independent outermost loops; what is computed between them joins the body."""
    axes: list[Axis] = []
    before: list[Stmt] = []
    while True:
        *first, last = tree
        parallel = isinstance(last, Loop) and last.kind in (LoopKind.PARALLEL, LoopKind.VECTOR)
        if not parallel or not all(isinstance(s, Let | When) for s in first):
            return tuple(axes), (*before, *tree)
        assert isinstance(last, Loop)
        before.extend(first)
        axes.append(last.axis)
        tree = last.body


def flattened(loop: Loop) -> tuple[tuple[Axis, ...], tuple[Stmt, ...]] | None:
    """A nest of loops as one: its axes and the statements of one point; None if it is no such nest.

    Values computed between the loops move inside; accumulators started there make it impossible.
    """
    inside = [s for s in loop.body if isinstance(s, Loop)]
    if not inside:
        return (loop.axis,), loop.body
    *first, last = loop.body
    if (
        len(inside) > 1
        or last is not inside[0]
        or not all(isinstance(s, Let | When) for s in first)
    ):
        return None
    below = flattened(inside[0])
    if below is None:
        return None
    axes, body = below
    return (loop.axis, *axes), (*first, *body)


def inner_loops(body: tuple[Stmt, ...]) -> Iterator[tuple[tuple[Axis, ...], tuple[Stmt, ...]]]:
    """The loops that become block dimensions."""
    for stmt in body:
        if isinstance(stmt, Loop) and stmt.kind is not LoopKind.BISECT:
            flat = flattened(stmt) if stmt.kind is not LoopKind.ORDERED else None
            if flat is not None:
                yield flat
            else:
                yield from inner_loops(stmt.body)


def flat_indices(body: tuple[Stmt, ...]) -> Iterator[Index]:
    """The places in memory that statements touch."""
    for stmt in walk(body):
        if not isinstance(stmt, Accumulate):
            yield from places(stmt)
        for value in expressions(stmt):
            for load in value.loads():
                yield from load.index


def unit_axis(index: Index, axes: tuple[Axis, ...]) -> Axis | None:
    """The axis of `axes` along which neighbours are neighbours in memory."""
    return next((axis for axis in axes if is_int(index.coefficient(axis), 1)), None)
