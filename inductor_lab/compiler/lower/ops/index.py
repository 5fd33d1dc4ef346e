"""Operators that select elements by position: cat, pad, embedding, gather, indexing with tensors.

Inductor: `lowering.py`, `cat`, `constant_pad_nd`, `embedding`, `index_impl`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import sympy
import torch

from inductor_lab.compiler.base.errors import LeftToATen
from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.ir.index import Index, add_sizes, is_int
from inductor_lab.compiler.lower.builder import Builder, size_of
from inductor_lab.compiler.lower.index_table import Piece, pieces_along_last
from inductor_lab.compiler.lower.places import along, indexed, inside, is_mask, masked, slices
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue, identity

aten = torch.ops.aten

MOST_PARTS = 8
"""The largest number of inputs of a `cat` that becomes loops: the number of bits of a byte.

Each element tests every input, unless the loops are split at the boundaries
(`codegen/cpu/split_loops.py`).  A stack along the last dimension may have twice as many: the
entries of a 4 by 4 matrix.
"""


@lowers(aten.cat.default)
def cat(build: Builder, tensors: Sequence[TensorValue], dim: int = 0) -> TensorValue:
    """Each input at the positions of its part, shifted to its start."""
    meta = build.result
    dim %= max(len(meta.shape), 1)
    parts = [t for t in tensors if t.ndim == len(meta.shape) and not is_int(t.shape[dim], 0)]
    if not parts:
        return build.pointwise(build.const(0, meta.dtype))
    stacked = dim == len(meta.shape) - 1 and all(is_int(t.shape[dim], 1) for t in parts)
    if len(parts) > MOST_PARTS * (1 + stacked):
        raise LeftToATen("too many inputs")
    starts = list(accumulate((t.shape[dim] for t in parts), add_sizes, initial=0))
    at = identity(meta.shape)
    body: Expr = build.const(0, meta.dtype)
    for part, (begin, end) in reversed(list(zip(parts, pairwise(starts), strict=True))):
        moved = (*at[:dim], at[dim] - begin, *at[dim + 1 :])
        value = build.convert(build.load(part, moved), meta.dtype)
        # test both ends of an inner part: it may be read before the tests of earlier parts
        body = masked(build, inside(build, at[dim], end, begin), value, body)
    return build.pointwise(body)


@lowers(aten.constant_pad_nd.default)
def constant_pad_nd(
    build: Builder, x: TensorValue, pad: Sequence[Any], value: Any = 0
) -> TensorValue:
    """x surrounded by `value`; negative padding removes elements."""
    meta = build.result
    at = list(identity(meta.shape))
    tests = []
    for n, sides in enumerate(zip(pad[::2], pad[1::2], strict=True), 1):
        before, after = map(size_of, sides)
        left = x.shape[-n] + sympy.Min(before, 0) + sympy.Min(after, 0)
        build.require(sympy.Ge(left, 0), "negative padding exceeds the size")
        at[-n] = at[-n] - before
        tests += inside(build, at[-n], x.shape[-n])
    outside = build.const(value, meta.dtype)
    return build.pointwise(masked(build, tests, build.load(x, at), outside))


@lowers(aten.flip.default)
def flip(build: Builder, x: TensorValue, dims: Sequence[int]) -> TensorValue:
    """Reversed dimensions; a copy, as in eager mode."""
    at = list(identity(build.result.shape))
    for d in dims if at else ():  # a scalar may be flipped along dimension 0
        at[d] = (at[d] * -1) + add_sizes(x.shape[d], -1)
    return build.pointwise(build.load(x, at))


@lowers(aten.repeat.default)
def repeat(build: Builder, x: TensorValue, repeats: Sequence[Any]) -> TensorValue:
    """Repeated copies: the position modulo the size."""
    at = identity(build.result.shape)[len(repeats) - x.ndim :]
    return build.pointwise(build.load(x, [i % s for i, s in zip(at, x.shape, strict=True)]))


# ---- loaded indices --------------------------------------------------------------------------


@lowers(aten.embedding.default)
def embedding(build: Builder, weight: TensorValue, indices: TensorValue, *_: Any) -> TensorValue:
    """Rows of a table."""
    build.need_elements(build.result.shape)
    at = identity(build.result.shape)
    row = build.gathered(build.load(indices, at[:-1]), weight.shape[0])
    return build.pointwise(build.gather(weight, (row, at[-1])))


@lowers(aten.gather.default)
def gather(build: Builder, x: TensorValue, dim: int, index: TensorValue, **_: Any) -> TensorValue:
    """Along one dimension, the position given by `index`."""
    return build.pointwise(build.gather(x, along(build, x, dim, index).index))


@lowers(aten.index_select.default)
def index_select(build: Builder, x: TensorValue, dim: int, index: TensorValue) -> TensorValue:
    """Selected positions of one dimension."""
    build.need_elements(build.result.shape)
    return build.pointwise(build.gather(x, slices(build, x, dim, index).index))


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(build: Builder, x: TensorValue, indices: Sequence[TensorValue | None]) -> TensorValue:
    """Advanced indexing.  Bool masks (results of unknown size) are left to ATen."""
    given = [*indices, *[None] * (x.ndim - len(indices))]
    if any(one is not None and is_mask(one) for one in given):
        raise LeftToATen("mask as index")
    target = indexed(build, x, given)
    known = pieces_along_last(build, x, given, target.shape)
    if known is None:
        return build.pointwise(build.gather(x, target.index))
    return build.pointwise(load_by_pieces(build, x, target.index, *known))


def load_by_pieces(
    build: Builder, x: TensorValue, places: Sequence[Index], dim: int, pieces: Sequence[Piece]
) -> Expr:
    """The element of x at `places`; the position in `dim` comes from pieces over the last axis."""
    i = identity(build.result.shape)[-1]
    body: Expr = build.const(0, x.dtype)
    for piece in reversed(pieces):
        value = build.load(x, (*places[:dim], piece.place(i), *places[dim + 1 :]))
        body = masked(build, inside(build, i, piece.end, piece.begin), value, body)
    return body


CHECKED = frozenset({aten.index.Tensor, aten.index_select.default, aten.embedding.default})
"""Operators that raise for a position out of range, even if their result is empty."""
