"""Positions: which element of a tensor an operator reads or writes, and tests of positions.

    x.gather(1, index)       reads x at [i0, index[i0, i1]]
    x[rows, 2:] = values     writes x at [rows[i0], i1 + 2]
    cat([a, b])              is b where len(a) <= i0

A loaded position becomes a `Gathered` atom in the index of another load, or of a scatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import torch

from inductor_lab.compiler.base.errors import LeftToATen
from inductor_lab.compiler.ir.expr import Expr, Load, Masked
from inductor_lab.compiler.ir.index import Index, Size, add_sizes, is_int, is_nonnegative, mul_sizes
from inductor_lab.compiler.lower.builder import Builder
from inductor_lab.compiler.lower.index_table import affine_place, known_numbers
from inductor_lab.compiler.lower.tensor import TensorValue, identity

# ---- tests of positions --------------------------------------------------------------------------


def compare(build: Builder, name: str, place: Index, limit: Size) -> Expr:
    """The comparison of a position with a size."""
    return build.op(name, build.position(place), build.const(limit, torch.int64))


def inside(build: Builder, place: Index, end: Size, begin: Size = 0) -> list[Expr]:
    """The tests of begin <= place < end that are not known to be true."""
    tests = []
    low, high = place.bounds() or (add_sizes(begin, -1), end)
    if not is_nonnegative(add_sizes(low, mul_sizes(begin, -1))):
        tests.append(compare(build, "ge", place, begin))
    if not is_nonnegative(add_sizes(add_sizes(end, -1), mul_sizes(high, -1))):
        tests.append(compare(build, "lt", place, end))
    return tests


def all_hold(build: Builder, tests: Sequence[Expr]) -> Expr:
    """The conjunction of some tests (at least one)."""
    return reduce(lambda a, b: build.op("logical_and", a, b), tests)


def masked(build: Builder, tests: Sequence[Expr], body: Expr, other: Expr) -> Expr:
    """`body` where all tests are true and `other` elsewhere; just `body` if there are no tests."""
    return Masked(all_hold(build, tests), body, other, build.origins) if tests else body


# ---- loaded positions ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """The points of `shape`, and the element of a tensor that each point reads or writes."""

    shape: tuple[Size, ...]
    index: tuple[Index, ...]

    @property
    def at(self) -> tuple[Index, ...]:
        """The point itself, as an index."""
        return identity(self.shape)


def along(build: Builder, x: TensorValue, dim: int, index: TensorValue) -> Target:
    """The points of `index`: each has its own position, except in dimension `dim`."""
    if not x.ndim or index.ndim not in (0, x.ndim):
        raise LeftToATen("scalar or empty tensor")
    shape = index.shape or (1,) * x.ndim
    at = identity(shape)
    dim %= x.ndim
    row = build.gathered(build.load(index, at), x.shape[dim])
    return Target(shape, (*at[:dim], row, *at[dim + 1 :]))


def slices(
    build: Builder, x: TensorValue, dim: int, index: TensorValue, wrap: bool = False
) -> Target:
    """Complete slices of dimension `dim`; `index` has one dimension or none."""
    if not x.ndim:
        raise LeftToATen("scalar tensor")
    dim %= x.ndim
    count = index.shape[0] if index.ndim else 1
    shape = (*x.shape[:dim], count, *x.shape[dim + 1 :])
    at = identity(shape)
    if wrap:
        row = wrapped(build, index, at[dim : dim + 1], x.shape[dim])
    else:
        row = build.gathered(build.load(index, at[dim : dim + 1]), x.shape[dim])
    return Target(shape, (*at[:dim], row, *at[dim + 1 :]))


def indexed(build: Builder, x: TensorValue, given: Sequence[TensorValue | None]) -> Target:
    """The points of `x[given]`; `given` has an entry for each dimension of x.

    Index tensors broadcast together.  Their dimensions replace the indexed ones if these are
    adjacent; otherwise they come first.  A negative position counts from the end.
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
    return Target(shape, tuple(places))


def wrapped(build: Builder, index: TensorValue, at: Sequence[Index], size: Size) -> Index:
    """A loaded position, with `size` added if it is negative."""
    loaded = build.load(index, at)
    place = build.convert(loaded, torch.int64)
    numbers = known_numbers(build, index.buffer)
    if numbers is not None and numbers.min(initial=0) >= 0:
        assert isinstance(loaded, Load), "constants are loads here"
        inside = isinstance(size, int) and numbers.max(initial=0) < size
        affine = affine_place(numbers, loaded.index) if inside else None
        return affine if affine is not None else build.gathered(place, size)
    below = build.op("lt", place, build.const(0, torch.int64))
    moved = build.op("add", place, build.const(size, torch.int64))
    return build.gathered(build.op("where", below, moved, place), size)


def is_mask(index: TensorValue) -> bool:
    """Is it a mask (bool or uint8) rather than a tensor of positions?"""
    return index.dtype in (torch.bool, torch.uint8)
