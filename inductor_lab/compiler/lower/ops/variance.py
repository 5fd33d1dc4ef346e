"""Variances: the mean of squared differences from the mean.

A sum of equal numbers is rounded, and the error of their mean would count as a difference, which a
norm makes as large as one.  So all sums are of differences from a guess, which is one of the
values.  A CPU sums float32 and narrower values in double, in one pass over the data:

    guess[i] = x[i, 0]
    off[i] = sum over r of x[i, r] - guess[i]
    squares[i] = (sum over r of (x[i, r] - guess[i])²) - off[i]² / n

The subtraction cancels at most the factor n, if the guess is an outlier; double has the bits.
Where sums are no wider than the data (float64, Triton), there are two passes.  The second one
corrects the mean, which an outlier as the guess makes inexact:

    center[i] = guess[i] + off[i] / n
    rest[i] = sum over r of x[i, r] - center[i]
    squares[i] = (sum over r of (x[i, r] - center[i])²) - rest[i]² / n
    mean[i] = center[i] + rest[i] / n

On a GPU, variances over several dimensions are combined from parts that fit in one block, so that
the data is read once, unless the GPU keeps the rows (`lower/passes/gpu_rows.py`):

    x[16, 64, 112, 112], dims 0, 2, 3     4 parts of 28 * 112 elements of each image and channel

If adjacent elements in memory belong to different results (channels last), a part is computed in
one pass.  Its guess is the median of three values, so that a single outlier is never the guess.

Where a norm takes the root of a float32 variance, it is taken of the sums in double: the variance
of numbers beyond 1.8e19 exceeds float32, its root does not.

    rsqrt(f32(v) + eps)   →   1 / f32(sqrt(v + eps))        a division in double takes longer

Chan, Golub and LeVeque: Algorithms for computing the sample variance (1983).
Inductor: `lowering.py`, `var_mean_helper_`; `ir.py`, `WelfordReduction`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import torch
from torch.fx import Node

from inductor_lab.compiler.capture.operands import operand as fx_operand
from inductor_lab.compiler.ir.expr import Const, Expr, Load, Op
from inductor_lab.compiler.ir.gpu_sizes import LONGEST_HELD
from inductor_lab.compiler.ir.index import ZERO, Index, add_sizes, exact_quotient, is_int, product
from inductor_lab.compiler.ir.program import Layout, Pointwise
from inductor_lab.compiler.lower.builder import Builder, TensorMeta
from inductor_lab.compiler.lower.ops.pointwise import elementwise, named
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
from inductor_lab.compiler.lower.promote import TO_FLOAT
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue, axes_of, compose, identity

aten = torch.ops.aten


@lowers(aten.var.correction, aten.std.correction)
def var(
    build: Builder, x: TensorValue, dims: Any = None, correction: Any = 1, keepdim: bool = False
) -> TensorValue:
    """Mean of the squared differences from the mean, or its root."""
    space = space_of(x, dims, keepdim)
    _, squares = _mean_and_squares(build, x, space, build.result)
    return _variance_of(build, squares, space, correction, build.result)


@lowers(aten.var_mean.correction, aten.std_mean.correction)
def var_mean(
    build: Builder, x: TensorValue, dims: Any = None, correction: Any = 1, keepdim: bool = False
) -> tuple[TensorValue, TensorValue]:
    """The variance or its root, and the mean from which it is taken."""
    space = space_of(x, dims, keepdim)
    spread, middle = build.tensors
    center, squares = _mean_and_squares(build, x, space, middle)
    rounded = build.rounded(center, middle)
    return _variance_of(build, squares, space, correction, spread), rounded


def _mean_and_squares(
    build: Builder, x: TensorValue, space: Space, meta: TensorMeta
) -> tuple[TensorValue, TensorValue]:
    """The mean, and the sum of squared differences from it, in the dtype of the sums."""
    sums = meta.having(accumulator(x.dtype))
    if in_triton(x.device, build.options):
        if not _gpu_keeps_rows(build, x, space, sums):
            if parts := _parts_of_moments(build, x, space):
                return _moments_of_parts(build, x, space, sums, *parts)
    elif x.dtype != torch.float64:
        sums = meta.having(torch.float64)
        if _has_first(build, space):
            return _in_one_pass(build, x, space, sums, _element(build, x, space, sums.dtype))
    return _in_two_passes(build, x, space, sums)


def _in_one_pass(
    build: Builder, x: TensorValue, space: Space, meta: TensorMeta, guess: Expr
) -> tuple[TensorValue, TensorValue]:
    """The moments from sums about a guess of the mean."""
    away = _difference_from(build, x, space, guess)
    off = _sum(build, away, space, meta)
    about = _sum(build, build.op("square", away), space, meta)
    mean_off = build.op("truediv", off, build.const(space.count, meta.dtype))
    squares = build.op("sub", about, build.op("mul", off, mean_off))
    return (
        build.pointwise(build.op("add", guess, mean_off), meta),
        build.pointwise(build.op("maximum", build.const(0, meta.dtype), squares), meta),
    )


def _in_two_passes(
    build: Builder, x: TensorValue, space: Space, meta: TensorMeta
) -> tuple[TensorValue, TensorValue]:
    """The same about a mean, so that the second pass only corrects its rounding."""
    if _has_first(build, space):
        guess = _element(build, x, space, meta.dtype)
        off = _sum(build, _difference_from(build, x, space, guess), space, meta)
        mean_off = build.op("truediv", off, build.const(space.count, meta.dtype))
        center = build.pointwise(build.op("add", guess, mean_off), meta)
    else:
        center = mean_over(build, x, space, meta)
    return _in_one_pass(build, x, space, meta, build.load(center, identity(space.shape)))


def _has_first(build: Builder, space: Space) -> bool:
    """Is there an element to guess the mean from?"""
    return all(build.is_sure(0, 0, axis.size) for axis in space.reduce_axes)


def _element(
    build: Builder, x: TensorValue, space: Space, dtype: torch.dtype, third: int = 0
) -> Expr:
    """The first element of each result, or one at a third or two of each reduced axis."""
    place = {
        axis: ZERO + (axis.size * third // 3 if isinstance(axis.size, int) else 0)
        for axis in space.reduce_axes
    }
    at = tuple(index.substitute(place) for index in space.at)
    return build.convert(build.load(x, at), dtype)


def _median(build: Builder, x: TensorValue, space: Space, dtype: torch.dtype) -> Expr:
    """The median of three elements: no single outlier, and the number itself of equal ones."""
    a, b, c = (_element(build, x, space, dtype, third) for third in range(3))
    larger = build.op("minimum", build.op("maximum", a, b), c)
    return build.op("maximum", build.op("minimum", a, b), larger)


def _sum(build: Builder, body: Expr, space: Space, meta: TensorMeta) -> Expr:
    return build.load(reduce_to(build, "sum", body, space, meta), identity(space.shape))


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
    if _has_adjacent_results(build, x, space):
        guess = _median(build, x, part, meta.dtype)
        means, squares = _in_one_pass(build, x, part, of_parts, guess)
    else:
        means, squares = _in_two_passes(build, x, part, of_parts)
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
    is_root = build.node.target in (aten.std.correction, aten.std_mean.correction)
    return build.pointwise(build.op("sqrt", value) if is_root else value, meta)


@lowers(aten.rsqrt.default)
def rsqrt(build: Builder, x: TensorValue) -> TensorValue:
    """1 / sqrt(x), where x may be a variance and a constant that were rounded."""
    exact = _unrounded_variance(build, x)
    if exact is None:
        return elementwise(build, TO_FLOAT, named("rsqrt"), x)
    root = build.convert(build.op("sqrt", exact), build.result.dtype)
    return build.pointwise(build.op("truediv", build.const(1, root.dtype), root))


def _unrounded_variance(build: Builder, x: TensorValue) -> Expr | None:
    """The float64 value of x, if x is a float32 variance and a constant."""
    added = fx_operand(build.node)
    if added.target is not aten.add.Tensor or not _is_variance(added.args[0]):
        return None
    match _body(build, build.load(x, identity(x.shape))):
        case Op("add", (Load() as variance, Const(constant)), torch.float32):
            match _body(build, variance):
                case Op("convert", (exact,), torch.float32) if exact.dtype == torch.float64:
                    return build.op("add", exact, build.const(constant, torch.float64))
    return None


def _is_variance(node: Any) -> bool:
    if isinstance(node, Node) and node.target is operator.getitem and node.args[1] == 0:
        node = node.args[0]
    return isinstance(node, Node) and node.target in (aten.var.correction, aten.var_mean.correction)


def _body(build: Builder, load: Expr) -> Expr | None:
    """What is computed for an element that is loaded."""
    if not isinstance(load, Load):
        return None
    nests = (step for step in reversed(build.steps) if isinstance(step, Pointwise))
    nest = next((nest for nest in nests if nest.buffer == load.buffer), None)
    if nest is None:
        return None
    return nest.body.substitute(dict(zip(nest.axes, load.index, strict=True)))


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
