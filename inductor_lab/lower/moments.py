"""Variances: the mean of squared differences from the mean, in two passes over the data.

    var(x, dim 1)     mean[i] = (sum over r of x[i, r]) / n
                      squares[i] = sum over r of (x[i, r] - mean[i])²

For a GPU those over several dimensions are put together from parts that one block holds, so the
data is read once.

Inductor: `lowering.py`, `var_mean_helper_`; `ir.py`, `WelfordReduction`.
"""

from __future__ import annotations

from typing import Any

import torch

from inductor_lab.ir.expr import Expr
from inductor_lab.ir.index import Axis, Index, add_sizes, product
from inductor_lab.ir.program import Layout
from inductor_lab.lower.builder import Builder, TensorMeta
from inductor_lab.lower.reduce import Space, accumulator, mean_over, reduce_to, space_of
from inductor_lab.lower.registry import lowers
from inductor_lab.lower.split import in_triton
from inductor_lab.lower.tensor import TensorValue, axes_of, identity

aten = torch.ops.aten


@lowers(aten.var.correction)
def var(
    build: Builder, x: TensorValue, dims: Any = None, correction: Any = 1, keepdim: bool = False
) -> TensorValue:
    """Mean of the squared differences from the mean, in two passes over the data."""
    space = space_of(x, dims, keepdim)
    spread = build.result
    _, squares = _moments(build, x, space, spread.having(accumulator(x.dtype)))
    return _spread(build, squares, space, correction, spread)


@lowers(aten.var_mean.correction)
def var_mean(
    build: Builder, x: TensorValue, dims: Any = None, correction: Any = 1, keepdim: bool = False
) -> tuple[TensorValue, TensorValue]:
    """The variance, and the mean from which it is taken."""
    space = space_of(x, dims, keepdim)
    spread, middle = build.tensors
    center, squares = _moments(build, x, space, middle.having(accumulator(x.dtype)))
    rounded = build.rounded(center, middle)
    return _spread(build, squares, space, correction, spread), rounded


def _moments(
    build: Builder, x: TensorValue, space: Space, meta: TensorMeta
) -> tuple[TensorValue, TensorValue]:
    """The mean, and the sum of squared differences from it."""
    inner = _parts_of_moments(space) if in_triton(x.device, build.options) else ()
    if inner:
        return _moments_of_parts(build, x, space, meta, inner)
    center = mean_over(build, x, space, meta)
    return center, _squares(build, x, space, center, meta)


def _squares(
    build: Builder, x: TensorValue, space: Space, center: TensorValue, meta: TensorMeta
) -> TensorValue:
    value = build.convert(build.load(x, space.at), meta.dtype)
    away = build.op("sub", value, build.load(center, identity(space.shape)))
    return reduce_to(build, "sum", build.op("square", away), space, meta)


LONGEST_PART, FEWEST_PARTS = 4096, 8
"""A part that one Triton block holds is read once for its mean and its squares."""


def _parts_of_moments(space: Space) -> tuple[Axis, ...]:
    """The inner axes that make a part; none where parts are no better than the whole."""
    sizes = [axis.size for axis in space.reduce_axes]
    for start in range(1, len(sizes)):
        parts, length = product(sizes[:start]), product(sizes[start:])
        if not (isinstance(parts, int) and isinstance(length, int)):
            return ()
        if length <= LONGEST_PART:
            whole = parts * length > LONGEST_PART and parts >= FEWEST_PARTS
            return space.reduce_axes[start:] if whole else ()
    return ()


def _moments_of_parts(
    build: Builder, x: TensorValue, space: Space, meta: TensorMeta, inner: tuple[Axis, ...]
) -> tuple[TensorValue, TensorValue]:
    """Moments of parts of equal length n, put together; a GPU reads the data once.

        center = mean of the parts' means
        squares = sum of the parts' squares + n * (its mean - center)²

    Chan, Golub and LeVeque: Updating formulae and a pairwise algorithm for computing sample
    variances (1979).
    """
    outer = space.reduce_axes[: -len(inner)]
    count = len(outer)
    shape = (*(axis.size for axis in outer), *space.shape)
    own, within = identity(shape), identity(space.shape)
    moved = dict(zip((*outer, *axes_of(space.shape)), own, strict=True))
    at = tuple(index.substitute(moved) for index in space.at)
    part = Space(at, inner, shape, product(axis.size for axis in inner))
    of_parts = TensorMeta(shape, Layout.contiguous(shape).stride, meta.dtype, meta.device)
    means = mean_over(build, x, part, of_parts)
    squares = _squares(build, x, part, means, of_parts)
    over = Space((*map(Index.of, outer), *within), outer, space.shape, product(shape[:count]))
    center = mean_over(build, means, over, meta)
    away = build.op("sub", build.load(means, over.at), build.load(center, within))
    shift = build.op("mul", build.op("square", away), build.const(part.count, meta.dtype))
    total = build.op("add", build.load(squares, over.at), shift)
    return center, reduce_to(build, "sum", total, over, meta)


def _spread(
    build: Builder, squares: TensorValue, space: Space, correction: Any, meta: TensorMeta
) -> TensorValue:
    total = build.load(squares, identity(meta.shape))
    correction = 1 if correction is None else correction
    degrees = _degrees_of_freedom(build, space, correction, squares.dtype)
    return build.pointwise(build.op("truediv", total, degrees), meta)


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
