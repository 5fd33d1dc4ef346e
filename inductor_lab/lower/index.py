"""Operators that pick elements by position: cat, pad, embedding, gather, indexing with tensors.

A loaded index becomes a `Gathered` atom in the index of another load.

Inductor: `lowering.py`, `cat`, `constant_pad_nd`, `embedding`, `index_impl`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

import torch

from inductor_lab.ir.expr import Expr, Masked
from inductor_lab.ir.index import Index, Size, add_sizes, is_int
from inductor_lab.lower.builder import Builder, size_of
from inductor_lab.lower.extern import fallback
from inductor_lab.lower.registry import lowers
from inductor_lab.lower.table import Piece, known_numbers, pieces_along_last
from inductor_lab.lower.tensor import TensorValue, identity
from inductor_lab.lower.view import begin_of_slice, place_of

aten = torch.ops.aten


def both_hold(build: Builder, tests: Sequence[Expr]) -> Expr:
    """All of some tests (at least one)."""
    return reduce(lambda a, b: build.op("logical_and", a, b), tests)


def compare(build: Builder, name: str, place: Index, limit: Size) -> Expr:
    """A test of a position against a size."""
    return build.op(name, build.position(place), build.const(limit, torch.int64))


def in_piece(build: Builder, piece: Piece, place: Index, size: int) -> list[Expr]:
    """The tests that a position of 0 .. size lies in a piece."""
    tests = [compare(build, "ge", place, piece.begin)] if piece.begin > 0 else []
    if piece.end < size:
        tests.append(compare(build, "lt", place, piece.end))
    return tests


def masked(build: Builder, mask: Expr, body: Expr, other: Expr) -> Expr:
    return Masked(mask, body, other, build.origins)


@lowers(aten.cat.default)
def cat(build: Builder, tensors: Sequence[TensorValue], dim: int = 0) -> TensorValue:
    """Each input where the position lies in its part, moved to its start."""
    facts = build.result
    dim %= max(len(facts.shape), 1)
    parts = [t for t in tensors if t.ndim == len(facts.shape) and not is_int(t.shape[dim], 0)]
    if not parts:
        return build.pointwise(build.const(0, facts.dtype))
    starts = list(accumulate((t.shape[dim] for t in parts), add_sizes, initial=0))
    at = identity(facts.shape)
    body: Expr = build.const(0, facts.dtype)
    for n in reversed(range(len(parts))):
        moved = (*at[:dim], at[dim] - starts[n], *at[dim + 1 :])
        value = build.convert(build.load(parts[n], moved), facts.dtype)
        if len(parts) == 1:
            return build.pointwise(value)
        # both ends of an inner part: it may be read before it is known that an earlier one is meant
        tests = [compare(build, "ge", at[dim], starts[n])] if n > 0 else []
        if n < len(parts) - 1:
            tests.append(compare(build, "lt", at[dim], starts[n + 1]))
        body = masked(build, both_hold(build, tests), value, body)
    return build.pointwise(body)


@lowers(aten.constant_pad_nd.default)
def constant_pad_nd(
    build: Builder, x: TensorValue, pad: Sequence[Any], value: Any = 0
) -> TensorValue:
    """x in the middle, `value` around; negative padding cuts off."""
    facts = build.result
    at = list(identity(facts.shape))
    tests = []
    for n in range(len(pad) // 2):
        d = x.ndim - 1 - n
        before, after = size_of(pad[2 * n]), size_of(pad[2 * n + 1])
        at[d] = at[d] - before
        if not _no_padding(before):
            tests.append(compare(build, "ge", at[d], 0))
        if not _no_padding(after):
            tests.append(compare(build, "lt", at[d], x.shape[d]))
    body = build.load(x, at)
    if tests:
        body = masked(build, both_hold(build, tests), body, build.const(value, facts.dtype))
    return build.pointwise(body)


def _no_padding(amount: Size) -> bool:
    return isinstance(amount, int) and amount <= 0


@lowers(aten.flip.default)
def flip(build: Builder, x: TensorValue, dims: Sequence[int]) -> TensorValue:
    """Dimensions read backwards; a copy, as in eager."""
    at = list(identity(build.result.shape))
    for d in dims if at else ():  # a scalar may be turned around its dimension 0
        at[d] = (at[d] * -1) + add_sizes(x.shape[d], -1)
    return build.pointwise(build.load(x, at))


@lowers(aten.repeat.default)
def repeat(build: Builder, x: TensorValue, repeats: Sequence[Any]) -> TensorValue:
    """Tiles: position modulo the size."""
    at = identity(build.result.shape)[len(repeats) - x.ndim :]
    return build.pointwise(build.load(x, [i % s for i, s in zip(at, x.shape, strict=True)]))


@lowers(aten.slice_scatter.default)
def slice_scatter(
    build: Builder,
    x: TensorValue,
    source: TensorValue,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: int = 1,
) -> TensorValue:
    """`source` at the positions of a slice, x elsewhere."""
    dim %= x.ndim
    at = identity(build.result.shape)
    first = begin_of_slice(build, x.shape[dim], start)
    moved = at[dim] - first
    length = source.shape[dim]
    tests = [compare(build, "ge", moved, 0)] if not is_int(first, 0) else []
    if add_sizes(first, length) != x.shape[dim] or step != 1:
        tests.append(compare(build, "lt", moved // step, length))
    if step != 1:
        tests.append(compare(build, "eq", moved % step, 0))
    value = build.load(source, (*at[:dim], moved // step, *at[dim + 1 :]))
    if tests:
        value = masked(build, both_hold(build, tests), value, build.load(x, at))
    return build.pointwise(value)


@lowers(aten.select_scatter.default)
def select_scatter(
    build: Builder, x: TensorValue, source: TensorValue, dim: int, index: Any
) -> TensorValue:
    """`source` at one position of a dimension, x elsewhere."""
    dim %= x.ndim
    at = identity(build.result.shape)
    place = place_of(build, x.shape[dim], index)
    value = build.load(source, (*at[:dim], *at[dim + 1 :]))
    test = compare(build, "eq", at[dim], place)
    return build.pointwise(build.op("where", test, value, build.load(x, at)))


@lowers(aten.diagonal_scatter.default)
def diagonal_scatter(
    build: Builder,
    x: TensorValue,
    source: TensorValue,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
) -> TensorValue:
    """`source` on a diagonal of two dimensions, x elsewhere."""
    dim1, dim2 = dim1 % x.ndim, dim2 % x.ndim
    at = identity(build.result.shape)
    test = compare(build, "eq", at[dim2] - at[dim1], offset)
    rest = [at[d] for d in range(x.ndim) if d not in (dim1, dim2)]
    along = at[dim1] - max(-offset, 0)
    value = build.load(source, (*rest, along))
    return build.pointwise(masked(build, test, value, build.load(x, at)))


# ---- loaded indices --------------------------------------------------------------------------


@lowers(aten.embedding.default)
def embedding(build: Builder, weight: TensorValue, indices: TensorValue, *_: Any) -> TensorValue:
    """Rows of a table."""
    at = identity(build.result.shape)
    row = build.gathered(build.load(indices, at[:-1]), weight.shape[0])
    return build.pointwise(build.load(weight, (row, at[-1])))


@lowers(aten.gather.default)
def gather(build: Builder, x: TensorValue, dim: int, index: TensorValue, **_: Any) -> TensorValue:
    """Along one dimension, the position that `index` holds at the same place."""
    at = list(identity(build.result.shape))
    if x.ndim == 0:
        return build.pointwise(build.load(x, ()))
    dim %= x.ndim
    at[dim] = build.gathered(build.load(index, at), x.shape[dim])
    return build.pointwise(build.load(x, at))


@lowers(aten.index_select.default)
def index_select(build: Builder, x: TensorValue, dim: int, index: TensorValue) -> TensorValue:
    """Chosen positions of one dimension."""
    at = list(identity(build.result.shape))
    if x.ndim == 0:
        return build.pointwise(build.load(x, ()))
    dim %= x.ndim
    chosen = build.load(index, (at[dim],)) if index.ndim else build.load(index, ())
    at[dim] = build.gathered(chosen, x.shape[dim])
    return build.pointwise(build.load(x, at))


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(build: Builder, x: TensorValue, indices: Sequence[TensorValue | None]) -> TensorValue:
    """Advanced indexing; negative positions count from the end.

    Tensors broadcast together.  Their dimensions stand where the indexed ones were if those are
    neighbours, otherwise in front.  Bool masks (results of unknown size) are left to ATen.
    """
    given = [*indices, *[None] * (x.ndim - len(indices))]
    if any(one is not None and is_mask(one) for one in given):
        return fallback(build, build.node.target, (x, indices), {}, reason="mask as index")
    shape, places = indexed(build, x, given)
    known = pieces_along_last(build, x, given, shape)
    if known is None:
        return build.pointwise(build.load(x, places))
    return build.pointwise(by_pieces(build, x, places, *known))


def by_pieces(
    build: Builder, x: TensorValue, places: Sequence[Index], dim: int, pieces: Sequence[Piece]
) -> Expr:
    """The element of x at `places`, those of one dimension given by pieces of the last axis."""
    i, size = identity(build.result.shape)[-1], pieces[-1].end
    body: Expr = build.const(0, x.dtype)
    for piece in reversed(pieces):
        value = build.load(x, (*places[:dim], piece.place(i), *places[dim + 1 :]))
        tests = in_piece(build, piece, i, size)
        body = masked(build, both_hold(build, tests), value, body) if tests else value
    return body


def is_mask(index: TensorValue) -> bool:
    """Does it pick elements by yes and no?"""
    return index.dtype in (torch.bool, torch.uint8)


def indexed(
    build: Builder, x: TensorValue, given: Sequence[TensorValue | None]
) -> tuple[tuple[Size, ...], tuple[Index, ...]]:
    """The shape of `x[given]`, and the element of x that each of its elements is.

    `given` has an entry for each dimension of x.  A negative position counts from the end.
    """
    used = [(d, one) for d, one in enumerate(given) if one is not None]
    dims = [d for d, _ in used]
    rank = max(one.ndim for _, one in used)
    common: list[Size] = [1] * rank
    for _, one in used:
        for d, size in enumerate(one.shape, rank - one.ndim):
            common[d] = size if is_int(common[d], 1) else common[d]
    first = dims[0] if dims == list(range(dims[0], dims[-1] + 1)) else 0
    others = [size for size, one in zip(x.shape, given, strict=True) if one is None]
    shape = (*others[:first], *common, *others[first:])
    at = identity(shape)
    rest = iter((*at[:first], *at[first + rank :]))
    places = [
        next(rest) if one is None else wrapped(build, one, at[first : first + rank], size)
        for size, one in zip(x.shape, given, strict=True)
    ]
    return shape, tuple(places)


def wrapped(build: Builder, index: TensorValue, at: Sequence[Index], size: Size) -> Index:
    """A loaded position, with `size` added if it is negative."""
    place = build.convert(build.load(index, at), torch.int64)
    numbers = known_numbers(build, index)
    if numbers is not None and numbers.min(initial=0) >= 0:
        return build.gathered(place, size)
    below = build.op("lt", place, build.const(0, torch.int64))
    moved = build.op("add", place, build.const(size, torch.int64))
    return build.gathered(build.op("where", below, moved, place), size)
