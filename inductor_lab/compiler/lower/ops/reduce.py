"""Reductions: sums, means, extrema, positions.

float16 and bfloat16 accumulate in float32; a separate pointwise nest rounds the result.

    sum(x: bf16[8, 32], dim 1)  →   buf0[i0] : f32  = sum over r0<32 of convert(x[i0, r0])
                                    buf1[i0] : bf16 = convert(buf0[i0])

Inductor: `lowering.py`, `make_reduction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.ir.index import Axis, Index, Size, is_int, product
from inductor_lab.compiler.ir.rules import HALF
from inductor_lab.compiler.lower.builder import Builder, TensorMeta
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue, identity

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Space:
    """The index space of a reduction: `at` has an index for each dimension of the input.

    Reduced dimensions of size 1 have no axis; `count` is the number of elements per result.
    """

    at: tuple[Index, ...]
    reduce_axes: tuple[Axis, ...]
    shape: tuple[Size, ...]
    count: Size


def space_of(x: TensorValue, dims: int | Sequence[int] | None, keepdim: bool) -> Space:
    """The axes of a reduction of `x` over `dims` (all, if None or empty)."""
    given = [dims] if isinstance(dims, int) else list(dims or range(x.ndim))
    reduced = {d % max(x.ndim, 1) for d in given} if x.ndim else set()
    kept = [d for d in range(x.ndim) if d not in reduced]
    shape = tuple(
        1 if d in reduced else x.shape[d] for d in range(x.ndim) if keepdim or d not in reduced
    )
    own = identity(shape)
    names = dict(zip(sorted(reduced), (f"r{n}" for n in range(len(reduced))), strict=True))
    axes = {d: Axis(names[d], x.shape[d]) for d in reduced}
    at = tuple(
        Index.of(axes[d]) if d in reduced else own[d if keepdim else kept.index(d)]
        for d in range(x.ndim)
    )
    visited = tuple(axes[d] for d in sorted(reduced) if not is_int(x.shape[d], 1))
    return Space(at, visited, shape, product(x.shape[d] for d in reduced))


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which sums of this dtype accumulate."""
    return torch.float32 if dtype in HALF else dtype


def reduce_to(build: Builder, kind: str, body: Expr, space: Space, meta: TensorMeta) -> TensorValue:
    """`body` reduced over the space, in the dtype of `meta`; a copy if nothing is reduced."""
    if not space.reduce_axes:
        if kind in ("argmax", "argmin"):
            body = build.const(0, torch.int64)
        return build.pointwise(body, meta)
    made = torch.int64 if kind in ("argmax", "argmin") else body.dtype
    shape = meta if made == meta.dtype else meta.having(made)
    return build.rounded(build.reduction(kind, body, space.reduce_axes, shape), meta)


OF_SOMETHING = frozenset(
    {aten.max.default, aten.min.default, aten.argmax.default, aten.argmin.default}
)
"""Operators that raise if a reduced dimension is empty."""


def reduction(
    kind: str, build: Builder, x: TensorValue, dims: Any = None, keepdim: bool = False, **_: Any
) -> TensorValue:
    """One reduction; the node's fake tensor describes its result."""
    space = space_of(x, dims, keepdim)
    meta = build.result
    if build.node.target in OF_SOMETHING:
        build.need_elements(axis.size for axis in space.reduce_axes)
    body = build.load(x, space.at)
    if kind in ("any", "all"):
        body = build.convert(body, torch.bool)
    elif kind in ("sum", "prod"):
        body = build.convert(body, accumulator(meta.dtype))
    elif body.dtype is torch.bool:
        kind = {"max": "any", "min": "all"}.get(kind, kind)
    else:
        body = build.convert(body, accumulator(body.dtype))
    return reduce_to(build, kind, body, space, meta)


lowers(aten.sum.dim_IntList, aten.sum.default)(partial(reduction, "sum"))
lowers(aten.amax.default, aten.max.default)(partial(reduction, "max"))
lowers(aten.amin.default, aten.min.default)(partial(reduction, "min"))
lowers(aten.prod.default, aten.prod.dim_int)(partial(reduction, "prod"))
lowers(aten.any.default, aten.any.dim, aten.any.dims)(partial(reduction, "any"))
lowers(aten.all.default, aten.all.dim, aten.all.dims)(partial(reduction, "all"))
lowers(aten.argmax.default)(partial(reduction, "argmax"))
lowers(aten.argmin.default)(partial(reduction, "argmin"))


def _extreme(
    kind: str, build: Builder, x: TensorValue, dim: int, keepdim: bool = False
) -> tuple[TensorValue, TensorValue]:
    """The extreme values of a dimension, and their positions: two nests."""
    space = space_of(x, dim, keepdim)
    build.need_elements(axis.size for axis in space.reduce_axes)
    values, places = build.tensors
    body = build.load(x, space.at)
    number = build.convert(body, torch.uint8 if body.dtype is torch.bool else accumulator(x.dtype))
    return (
        reduce_to(build, kind, number, space, values),
        reduce_to(build, f"arg{kind}", number, space, places),
    )


lowers(aten.max.dim)(partial(_extreme, "max"))
lowers(aten.min.dim)(partial(_extreme, "min"))


@lowers(aten.mean.default, aten.mean.dim)
def mean(
    build: Builder, x: TensorValue, dims: Any = None, keepdim: bool = False, **_: Any
) -> TensorValue:
    """A sum, and a nest that divides by the number of elements."""
    return mean_over(build, x, space_of(x, dims, keepdim), build.result)


def mean_over(build: Builder, x: TensorValue, space: Space, meta: TensorMeta) -> TensorValue:
    """The mean of `x` over a space, in the dtype of `meta`; sums are float32 at least."""
    wide = accumulator(meta.dtype)
    body = build.convert(build.load(x, space.at), wide)
    total = reduce_to(build, "sum", body, space, meta.having(wide))
    value = build.load(total, identity(meta.shape))
    return build.pointwise(build.op("truediv", value, build.const(space.count, wide)), meta)
