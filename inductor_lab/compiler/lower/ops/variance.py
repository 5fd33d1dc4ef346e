"""Variances: the mean of squared differences from the mean, in two passes over the data.

    var(x, dim 1)     mean[i] = (sum over r of x[i, r]) / n
                      squares[i] = sum over r of (x[i, r] - mean[i])²

On a GPU, variances over several dimensions are combined from parts that fit in one block, so that
the data is read once, unless the GPU keeps the rows (`lower/passes/gpu_rows.py`):

    x[16, 64, 112, 112], dims 0, 2, 3     4 parts of 28 * 112 elements of each image and channel

A sum of equal numbers is rounded, so their computed mean may differ from them, and a norm would
scale this error up to one.  Therefore the mean is the first element plus the mean of the
differences from it, unless the accumulator is wider than the data, so that the sum is exact.  If
adjacent elements in memory belong to different results (channels last), this guess of the mean
makes one loop per part sufficient:

    guess[p, i] = x[p, 0, i]
    off[p, i] = sum over r of x[p, r, i] - guess[p, i]
    squares[p, i] = (sum over r of (x[p, r, i] - guess[p, i])²) - off[p, i]² / n

The guess is one of the values, so the rounding error grows by at most a factor of n.

Inductor: `lowering.py`, `var_mean_helper_`; `ir.py`, `WelfordReduction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import torch

from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.ir.gpu_sizes import LONGEST_HELD
from inductor_lab.compiler.ir.index import ZERO, Index, add_sizes, exact_quotient, is_int, product
from inductor_lab.compiler.ir.program import Layout
from inductor_lab.compiler.lower.builder import Builder, TensorMeta
from inductor_lab.compiler.lower.ops.reduce import (
    Space,
    accumulator,
    mean_over,
    reduce_to,
    space_of,
)
from inductor_lab.compiler.lower.passes.gpu_rows import on_gpu, rows_fit
from inductor_lab.compiler.lower.passes.split_reductions import (
    NEIGHBOURS,
    PROGRAMS_OF_COLUMNS,
    in_triton,
)
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue, axes_of, compose, identity

aten = torch.ops.aten


@lowers(aten.var.correction, aten.std.correction)
def var(
    build: Builder, x: TensorValue, dims: Any = None, correction: Any = 1, keepdim: bool = False
) -> TensorValue:
    """Mean of the squared differences from the mean, or its root, in two passes over the data.

    On a CPU in double, as in eager mode: differences of numbers far from zero have few correct bits
    in float32.
    """
    space = space_of(x, dims, keepdim)
    wide = accumulator(x.dtype) if in_triton(x.device, build.options) else torch.float64
    _, squares = _mean_and_squares(build, x, space, build.result.having(wide))
    return _variance_of(build, squares, space, correction, build.result)


@lowers(aten.var_mean.correction)
def var_mean(
    build: Builder, x: TensorValue, dims: Any = None, correction: Any = 1, keepdim: bool = False
) -> tuple[TensorValue, TensorValue]:
    """The variance, and the mean that it uses."""
    space = space_of(x, dims, keepdim)
    spread, middle = build.tensors
    center, squares = _mean_and_squares(build, x, space, middle.having(accumulator(x.dtype)))
    rounded = build.rounded(center, middle)
    return _variance_of(build, squares, space, correction, spread), rounded


def _mean_and_squares(
    build: Builder, x: TensorValue, space: Space, meta: TensorMeta
) -> tuple[TensorValue, TensorValue]:
    """The mean, and the sum of squared differences from it."""
    triton = in_triton(x.device, build.options)
    if triton and not _gpu_keeps_rows(build, x, space, meta):
        if parts := _parts_of_moments(build, x, space):
            return _moments_of_parts(build, x, space, meta, *parts)
    return _in_two_passes(build, x, space, meta)


def _in_two_passes(
    build: Builder, x: TensorValue, space: Space, meta: TensorMeta
) -> tuple[TensorValue, TensorValue]:
    """The mean, and the sum of the squared differences from it."""
    has_first = all(build.is_sure(0, 0, axis.size) for axis in space.reduce_axes)
    if has_first and meta.dtype == x.dtype:
        center = _from_first(build, x, space, meta)[-1]
    else:
        center = mean_over(build, x, space, meta)
    away = _difference_from(build, x, space, build.load(center, identity(space.shape)))
    return center, reduce_to(build, "sum", build.op("square", away), space, meta)


def _in_one_pass(
    build: Builder, x: TensorValue, space: Space, meta: TensorMeta
) -> tuple[TensorValue, TensorValue]:
    """The same in one loop, with the first element as a guess of the mean."""
    away, off, mean_off, center = _from_first(build, x, space, meta)
    about = reduce_to(build, "sum", build.op("square", away), space, meta)
    too_much = build.op("mul", off, mean_off)
    squares = build.op("sub", build.load(about, identity(space.shape)), too_much)
    return center, build.pointwise(build.op("maximum", build.const(0, meta.dtype), squares), meta)


def _from_first(
    build: Builder, x: TensorValue, space: Space, meta: TensorMeta
) -> tuple[Expr, Expr, Expr, TensorValue]:
    """The difference of each value from the first one, the sum and mean of the differences, and the
    mean."""
    first = dict.fromkeys(space.reduce_axes, ZERO)
    at = tuple(index.substitute(first) for index in space.at)
    guess = build.convert(build.load(x, at), meta.dtype)
    away = _difference_from(build, x, space, guess)
    off = build.load(reduce_to(build, "sum", away, space, meta), identity(space.shape))
    mean_off = build.op("truediv", off, build.const(space.count, meta.dtype))
    return away, off, mean_off, build.pointwise(build.op("add", guess, mean_off), meta)


def _difference_from(build: Builder, x: TensorValue, space: Space, center: Expr) -> Expr:
    value = build.convert(build.load(x, space.at), center.dtype)
    return build.op("sub", value, center)


def _gpu_keeps_rows(build: Builder, x: TensorValue, space: Space, meta: TensorMeta) -> bool:
    """Does a GPU keep the rows for the squares and for the normalization?"""
    if not on_gpu(x.device, build.options) or meta.dtype != torch.float32:
        return False
    place = _place(build, x, space)
    along = any(is_int(place.coefficient(axis), 1) for axis in space.reduce_axes)
    return along and rows_fit(product(space.shape), space.count)


def _place(build: Builder, x: TensorValue, space: Space) -> Index:
    """The position of an element in memory."""
    return build.buffers[x.buffer].layout.element(compose(x.index, x.shape, space.at))


SHORTEST_PART, FEWEST_PARTS = 32, 8
"""A part that one Triton block holds is read once for its mean and its squares."""


def _parts_of_moments(build: Builder, x: TensorValue, space: Space) -> tuple[int, int] | None:
    """The axis that is split, and the number of its elements per part, including all inner axes.

    None if parts have no advantage.
    """
    axes = space.reduce_axes
    sizes = tuple(axis.size for axis in axes if isinstance(axis.size, int))
    if len(sizes) < len(axes):
        return None
    if _has_adjacent_results(build, x, space):
        return _parts_of_columns(sizes, space)
    longer = [d for d in range(len(sizes)) if prod(sizes[d:]) > LONGEST_HELD]
    if not longer or len(axes) == 1:
        return None
    cut = longer[-1]
    inside = prod(sizes[cut + 1 :])
    place = _place(build, x, space)
    steps = tuple(place.coefficient(axis) for axis in axes[cut:])
    in_one_piece = steps == Layout.contiguous(sizes[cut:]).stride
    # the longest part that fits in a block; a part of several elements must be contiguous in memory
    for count in range(LONGEST_HELD // inside if in_one_piece else 1, 0, -1):
        parts = prod(sizes[: cut + 1]) // count
        if sizes[cut] % count == 0 and parts >= FEWEST_PARTS and count * inside >= SHORTEST_PART:
            return cut, count
    return None


def _has_adjacent_results(build: Builder, x: TensorValue, space: Space) -> bool:
    """Do adjacent elements in memory belong to different results?"""
    place = _place(build, x, space)
    return any(is_int(place.coefficient(axis), 1) for axis in axes_of(space.shape))


def _parts_of_columns(sizes: Sequence[int], space: Space) -> tuple[int, int] | None:
    """Parts that fill a GPU, if columns are long."""
    points = product(space.shape)
    if not isinstance(points, int) or prod(sizes) <= LONGEST_HELD:
        return None
    wanted = PROGRAMS_OF_COLUMNS // max(points // NEIGHBOURS, 1)
    for cut in range(len(sizes)):
        for count in range(sizes[cut], 0, -1):
            parts = prod(sizes[: cut + 1]) // count
            if sizes[cut] % count == 0 and parts >= wanted:
                enough = parts >= FEWEST_PARTS and prod(sizes) // parts >= SHORTEST_PART
                return (cut, count) if enough else None
    return None


def _moments_of_parts(
    build: Builder, x: TensorValue, space: Space, meta: TensorMeta, cut: int, length: int
) -> tuple[TensorValue, TensorValue]:
    """Moments of parts of equal length n, combined; a GPU reads the data once.

        center = mean of the parts' means
        squares = sum of the parts' squares + n * (its mean - center)²

    Chan, Golub and LeVeque: Updating formulae and a pairwise algorithm for computing sample
    variances (1979).
    """
    axis = space.reduce_axes[cut]
    outer = (*space.reduce_axes[:cut], replace(axis, size=exact_quotient(axis.size, length)))
    element = replace(axis, size=length)
    inner = (*([element] if length > 1 else []), *space.reduce_axes[cut + 1 :])
    shape = (*(axis.size for axis in outer), *space.shape)
    own, within = identity(shape), identity(space.shape)
    kept = (*space.reduce_axes[: cut + 1], *axes_of(space.shape))
    moved = dict(zip(kept, own, strict=True))
    moved[axis] = own[cut] * length + Index.of(element)
    at = tuple(index.substitute(moved) for index in space.at)
    part = Space(at, inner, shape, product(axis.size for axis in inner))
    of_parts = TensorMeta(shape, Layout.contiguous(shape).stride, meta.dtype, meta.device)
    of_part = _in_one_pass if _has_adjacent_results(build, x, space) else _in_two_passes
    means, squares = of_part(build, x, part, of_parts)
    over = Space((*map(Index.of, outer), *within), outer, space.shape, product(shape[: cut + 1]))
    center = mean_over(build, means, over, meta)
    away = build.op("sub", build.load(means, over.at), build.load(center, within))
    shift = build.op("mul", build.op("square", away), build.const(part.count, meta.dtype))
    total = build.op("add", build.load(squares, over.at), shift)
    return center, reduce_to(build, "sum", total, over, meta)


def _variance_of(
    build: Builder, squares: TensorValue, space: Space, correction: Any, meta: TensorMeta
) -> TensorValue:
    total = build.load(squares, identity(meta.shape))
    correction = 1 if correction is None else correction
    degrees = _degrees_of_freedom(build, space, correction, squares.dtype)
    value = build.op("truediv", total, degrees)
    is_root = build.node.target is aten.std.correction
    return build.pointwise(build.op("sqrt", value) if is_root else value, meta)


def _degrees_of_freedom(build: Builder, space: Space, correction: Any, dtype: torch.dtype) -> Expr:
    """max(0, n - correction)."""
    if isinstance(space.count, int) and isinstance(correction, int | float):
        return build.const(max(0, space.count - correction), dtype)
    if isinstance(correction, int):
        left = build.const(add_sizes(space.count, -correction), dtype)
    else:
        count = build.const(space.count, dtype)
        left = build.op("sub", count, build.const(correction, dtype))
    return build.op("maximum", build.const(0, dtype), left)
