"""Tile transposed reads, so that all elements of a cache line are used before it is evicted.

    for i0 in 0 .. 900:                  for i0_tile in 0 .. 900 by 64:
        for i1 in 0 .. 900:                  for i1_tile in 0 .. 900 by 128:
            out[900*i0 + i1] =    →              for i0 in the tile:
                x[i0 + 900*i1]                       for i1 in the tile: out[..] = x[i0 + 900*i1]

A tile of a large matrix is first transposed into a local array, with contiguous reads:

    lab_transpose(tile0, 144, x + i0_tile + 900 * i1_tile, 900, ..)
    for i0 in the tile:
        for i1 in the tile: out[..] = tile0[144 * (i0 - i0_tile) + i1 - i1_tile]

Inductor: `CppTile2DKernel`, tiles of one vector by one vector.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

import torch

from inductor_lab.compiler.codegen.cpu.access import LINE
from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import each_loop, point_loops
from inductor_lab.compiler.codegen.cpu.plan import TILE, Simd, tiled_axes
from inductor_lab.compiler.codegen.cpu.stack import fits_on_stack
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Address,
    Bound,
    Call,
    Let,
    Local,
    Loop,
    LoopKind,
    Minimum,
    Stmt,
    Tree,
)
from inductor_lab.compiler.ir.expr import Expr, Load, Temp
from inductor_lab.compiler.ir.index import Axis, Index, hint, is_int

SMALLEST_TRANSPOSED = 1 << 16
"""Elements of a matrix that does not fit in the first-level cache: 256 KiB of floats."""


def tiles(tree: Tree, facts: Facts) -> Tree:
    """Tile the two loops of a transposed read.

    If a loop has been split into several pieces, each piece is tiled separately.
    """
    if facts.plan.simd is not Simd.POINTS:
        return tree

    def change(loop: Loop) -> Tree | None:
        tiled = tiled_axes(point_loops((loop,))) if loop.kind is LoopKind.PARALLEL else ()
        return (_tiled(loop, tiled),) if loop.axis in tiled[:1] else None

    return each_loop(tree, change)


def _tiled(loop: Loop, tiled: tuple[Axis, ...]) -> Loop:
    """Tile the two loops; `loop` is the outer one.  Loops between them stay unchanged."""
    if loop.axis not in tiled:
        (inside,) = (stmt for stmt in loop.body if isinstance(stmt, Loop))
        return replace(loop, body=(_tiled(inside, tiled),))
    first = start_of(loop.axis)
    if loop.kind is LoopKind.VECTOR:
        body = _tile(loop, tiled)
    else:
        body = tuple(_tiled(s, tiled) if isinstance(s, Loop) else s for s in loop.body)
    width = TILE[tiled.index(loop.axis)]
    return replace(loop, axis=first, kind=LoopKind.PARALLEL, body=body, step=width)


def _tile(loop: Loop, tiled: tuple[Axis, ...]) -> Tree:
    """The two loops inside a tile."""
    new: list[Stmt] = []
    begin, end = {}, {}
    for axis, width in zip(tiled, TILE, strict=True):
        begin[axis], end[axis] = Index.of(start_of(axis)), Index.of(end_of(axis))
        stop = Minimum(begin[axis] + width, Index.constant_of(axis.size))
        new.append(Bound(end_of(axis), stop))
    outer, inner = tiled
    lanes = replace(loop, begin=begin[inner], end=end[inner])
    rows = Loop(outer, LoopKind.PARALLEL, (lanes,), begin[outer], end[outer])
    return (*new, rows)


def start_of(axis: Axis) -> Axis:
    """The first position of the tile along an axis."""
    return Axis(f"{axis.name}_tile", axis.size)


def end_of(axis: Axis) -> Axis:
    return Axis(f"{axis.name}_end", axis.size)


# ---- local arrays ------------------------------------------------------------------------------


def transpose(tree: Tree, facts: Facts) -> Tree:
    """Read large transposed matrices through local arrays."""
    count = 0

    def change(loop: Loop) -> Tree | None:
        nonlocal count
        if not is_rows_of_tile(loop):
            return None
        before, loop = _transposed(loop, count)
        count += len(before) // 2
        return (*before, loop)

    return each_loop(tree, change)


def is_rows_of_tile(loop: Loop) -> bool:
    """Is it the outer of the two loops inside a tile?"""
    return loop.kind is LoopKind.PARALLEL and loop.end is not None and loop.step == 1


def _transposed(loop: Loop, count: int) -> tuple[list[Stmt], Loop]:
    """The arrays with the calls that fill them, and the loop that reads them."""
    (lanes,) = (stmt for stmt in loop.body if isinstance(stmt, Loop))
    outer, inner = loop.axis, lanes.axis
    if hint(outer.size, 1024) * hint(inner.size, 1024) < SMALLEST_TRANSPOSED:
        return [], loop
    width = TILE[1] + LINE  # rows start in different cache sets
    tile = {axis: Index.of(start_of(axis)) for axis in (outer, inner)}
    row, column = (Index.of(axis) - tile[axis] for axis in (outer, inner))
    before: list[Stmt] = []
    body: list[Stmt] = []
    for stmt in lanes.body:
        if isinstance(stmt, Let) and is_transposed(stmt.value, outer, inner):
            load, name = stmt.value, f"tile{count + len(before) // 2}"
            array = Local(name, load.dtype, (width * TILE[0],), stmt.origins)
            if fits_on_stack((array, *(s for s in before if isinstance(s, Local)))):
                before += [array, _filled(name, load, tile, width, stmt)]
                stmt = replace(stmt, value=Load(name, (row * width + column,), load.dtype))
        body.append(stmt)
    return before, replace(loop, body=(replace(lanes, body=tuple(body)),))


def _filled(name: str, load: Load, tile: dict[Axis, Index], width: int, stmt: Let) -> Call:
    outer, inner = tile
    lengths = (Index.of(end_of(axis)) - tile[axis] for axis in (inner, outer))
    start = Address(load.buffer, load.index[0].substitute(tile))
    stride = Index.constant_of(load.index[0].coefficient(inner))
    args: list[Address | Index | Temp] = [Address(name), Index.constant_of(width), start, stride]
    return Call("lab_transpose", (*args, *lengths), "", stmt.origins)


def is_transposed(value: Expr, outer: Axis, inner: Axis) -> TypeGuard[Load]:
    """Is it a load that is contiguous along `outer` and strided along `inner`?"""
    if not isinstance(value, Load) or value.dtype is torch.bool or not value.index[0].is_affine:
        return False
    index = value.index[0]
    return is_int(index.coefficient(outer), 1) and hint(index.coefficient(inner)) > 1
