"""Tensors during lowering: a buffer and a map from logical indices to buffer indices.

A view costs nothing, because it only changes the index map.  The map is data: one `Index` for each
dimension of the buffer, over the axes `i0, i1, ...` of the view's own shape.  So

    x: f32[4, 6]                    index = (i0, i1)            i0<4, i1<6
    x.t()                           index = (i1, i0)            i0<6, i1<4
    x.t()[1:].reshape(5, 2, 2)      index = (2*i1 + i2, i0 + 1) i0<5, i1<2, i2<2

Inductor: `ir.View`, `ir.PermuteView`, `ir.SliceView` ...: one class per view, closures inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import torch

from inductor_lab.compiler.ir.expr import NO_ORIGINS, Load, Origins
from inductor_lab.compiler.ir.index import (
    ZERO,
    Axis,
    Index,
    Size,
    add_sizes,
    hint,
    is_int,
    is_nonnegative,
    mul_sizes,
)
from inductor_lab.compiler.ir.program import Buffer, Layout


@dataclass(frozen=True, slots=True)
class TensorValue:
    """The value of an FX node that is a tensor.

    `index` has one entry per dimension of the buffer, over `axes_of(shape)`.  `origins` are the
    view nodes between the buffer and this value.
    """

    buffer: str
    shape: tuple[Size, ...]
    dtype: torch.dtype
    device: str
    index: tuple[Index, ...]
    origins: Origins = field(default=NO_ORIGINS, compare=False)

    @staticmethod
    def of(buffer: Buffer) -> TensorValue:
        """The complete buffer with its own layout."""
        shape = buffer.layout.size
        return TensorValue(buffer.name, shape, buffer.dtype, buffer.device, identity(shape))

    @property
    def ndim(self) -> int:
        return len(self.shape)


def axes_of(shape: Sequence[Size]) -> tuple[Axis, ...]:
    """The axes of every nest over this shape: `i0, i1, ...`."""
    return _axes_of(tuple(shape))[0]


def identity(shape: Sequence[Size]) -> tuple[Index, ...]:
    """Each axis of `shape` as an index; axes of size 1 are the constant 0."""
    return _axes_of(tuple(shape))[1]


@lru_cache(maxsize=1 << 12)
def _axes_of(shape: tuple[Size, ...]) -> tuple[tuple[Axis, ...], tuple[Index, ...]]:
    """The axes and their indices, cached: a graph has few different shapes."""
    axes = tuple(Axis(f"i{d}", size) for d, size in enumerate(shape))
    return axes, tuple(map(Index.of, axes))


def load(value: TensorValue, at: Sequence[Index], origins: Origins = NO_ORIGINS) -> Load:
    """The element of `value` at `at`.

    `at` may have more entries than the value has dimensions, and a dimension of size 1 ignores its
    entry.  This is PyTorch's broadcasting.
    """
    at = at[len(at) - value.ndim :]
    index = compose(value.index, value.shape, at)
    return Load(value.buffer, index, value.dtype, origins | value.origins)


def compose(
    index: tuple[Index, ...], shape: Sequence[Size], at: Sequence[Index]
) -> tuple[Index, ...]:
    """`index`, a map over the axes of `shape`, with those axes replaced by the entries of `at`."""
    if tuple(at) == identity(shape):
        return index
    places = dict(zip(axes_of(shape), at, strict=True))
    return tuple(entry.substitute(places) for entry in index)


def viewed(value: TensorValue, shape: Sequence[Size], at: Sequence[Index]) -> TensorValue:
    """A view of `shape`; its element at its own axes is the element of `value` at `at`."""
    index = compose(value.index, value.shape, at)
    return replace(value, shape=tuple(shape), index=index)


def replaced(value: TensorValue, buffer: str) -> TensorValue:
    """The same view of another buffer with the same layout."""
    return replace(value, buffer=buffer)


# ---- the views -------------------------------------------------------------------------------


def permute(value: TensorValue, order: Sequence[int]) -> TensorValue:
    """Dimension d of the result is dimension `order[d]` of `value`."""
    order = [d % value.ndim for d in order]
    shape = [value.shape[d] for d in order]
    own = identity(shape)
    return viewed(value, shape, [own[order.index(d)] for d in range(value.ndim)])


def expand(value: TensorValue, shape: Sequence[Size]) -> TensorValue:
    """Broadcast to `shape`; -1 keeps the current size."""
    new = len(shape) - value.ndim
    kept = [value.shape[d - new] if is_int(s, -1) else s for d, s in enumerate(shape)]
    at = [
        ZERO if is_int(size, 1) else index
        for size, index in zip(value.shape, identity(kept)[new:], strict=True)
    ]
    return viewed(value, kept, at)


def unsqueeze(value: TensorValue, dim: int) -> TensorValue:
    """Insert a dimension of size 1 before dimension `dim`."""
    dim %= value.ndim + 1
    shape = (*value.shape[:dim], 1, *value.shape[dim:])
    own = identity(shape)
    return viewed(value, shape, (*own[:dim], *own[dim + 1 :]))


def select(value: TensorValue, dim: int, position: Size) -> TensorValue:
    """Element `position` of dimension `dim`, which is removed."""
    dim %= value.ndim
    if isinstance(position, int) and position < 0:
        position = add_sizes(position, value.shape[dim])
    return drop(value, {dim: Index.constant_of(position)})


def drop(value: TensorValue, fixed: dict[int, Index]) -> TensorValue:
    """Fix some dimensions at one index each and remove them."""
    shape = [size for d, size in enumerate(value.shape) if d not in fixed]
    own = iter(identity(shape))
    at = [fixed[d] if d in fixed else next(own) for d in range(value.ndim)]
    return viewed(value, shape, at)


def slice_dim(value: TensorValue, dim: int, start: Size, step: int, length: Size) -> TensorValue:
    """`length` elements of dimension `dim`, beginning at `start`, with distance `step`."""
    dim %= value.ndim
    shape = (*value.shape[:dim], length, *value.shape[dim + 1 :])
    at = list(identity(shape))
    at[dim] = at[dim] * step + start
    return viewed(value, shape, at)


def diagonal(value: TensorValue, offset: int, dim1: int, dim2: int, length: Size) -> TensorValue:
    """The diagonal of two dimensions as a new last one."""
    dim1, dim2 = dim1 % value.ndim, dim2 % value.ndim
    rest = [d for d in range(value.ndim) if d not in (dim1, dim2)]
    shape = (*(value.shape[d] for d in rest), length)
    own = identity(shape)
    at = dict(zip(rest, own, strict=False))
    at[dim1] = own[-1] + max(-offset, 0)
    at[dim2] = own[-1] + max(offset, 0)
    return viewed(value, shape, [at[d] for d in range(value.ndim)])


def unfold(value: TensorValue, dim: int, size: int, step: int, windows: Size) -> TensorValue:
    """Sliding windows over `dim`, their elements in a new last dimension."""
    if value.ndim == 0:
        return viewed(value, (size,), ())
    dim %= value.ndim
    shape = (*value.shape[:dim], windows, *value.shape[dim + 1 :], size)
    own = identity(shape)
    at = list(own[:-1])
    at[dim] = own[dim] * step + own[-1]
    return viewed(value, shape, at)


# ---- reshape ---------------------------------------------------------------------------------


def reshape(value: TensorValue, shape: Sequence[Size]) -> TensorValue:
    """The same elements, in row-major order of logical indices, with another shape.

    Dimensions are matched in the smallest chunks with equal products.  So a dimension that the
    reshape does not change stays one axis, and // and % appear only where the boundaries differ.
    """
    at: list[Index] = [ZERO] * value.ndim
    own = identity(shape)
    for old, new in chunks(value.shape, shape):
        flat = flatten([own[d] for d in new], [shape[d] for d in new])
        split = unflatten(flat, [value.shape[d] for d in old])
        for d, index in zip(old, split, strict=True):
            at[d] = index
    return viewed(value, shape, at)


def chunks(old: Sequence[Size], new: Sequence[Size]) -> list[tuple[list[int], list[int]]]:
    """Runs of dimensions of `old` and `new` with the same number of elements, left to right.

    Dimensions of size 1 are skipped.  [2, 3, 4] and [6, 2, 2] give ([0, 1], [0]), ([2], [1, 2]).
    """
    if any(is_int(size, 0) for size in (*old, *new)):
        return []

    def between(sizes: Sequence[Size], first: int, last: int) -> list[int]:
        return [dim for dim in range(first, last) if not is_int(sizes[dim], 1)]

    left, right = _prefixes(old), _prefixes(new)
    shared = [p for p in left if p in right]
    runs = []
    before = (0, 0)
    for p in shared:
        after = (left[p], right[p])
        runs.append((between(old, before[0], after[0]), between(new, before[1], after[1])))
        before = after
    tail = (between(old, before[0], len(old)), between(new, before[1], len(new)))
    return [*runs, tail] if tail[0] else runs


def _prefixes(shape: Sequence[Size]) -> dict[Size, int]:
    """Product of the first n sizes → n, without the sizes of 1 that follow."""
    prefixes: dict[Size, int] = {}
    total: Size = 1
    for n, size in enumerate(shape, 1):
        if not is_int(size, 1):
            total = mul_sizes(total, size)
            prefixes[total] = n
    return prefixes


def flatten(at: Sequence[Index], sizes: Sequence[Size]) -> Index:
    """The row-major position of the element `at` in an array of `sizes`."""
    flat = ZERO
    for index, size in zip(at, sizes, strict=True):
        flat = flat * size + index
    return flat


def unflatten(flat: Index, sizes: Sequence[Size]) -> list[Index]:
    """The indices of element number `flat` in an array of `sizes`.

    It divides dimension by dimension, from the last to the first, so that the quotients stay
    simple. An empty array has no element, so any indices are correct.
    """
    indices: list[Index] = []
    sizes = [size or 1 if isinstance(size, int) else size for size in sizes]
    for d in reversed(range(len(sizes))):
        indices.append(flat % sizes[d] if d else flat)
        flat = flat // sizes[d]
    return indices[::-1]


# ---- strides ---------------------------------------------------------------------------------


def layout_of(value: TensorValue, buffer: Buffer) -> Layout | None:
    """The layout of the view in the storage of its buffer; None if strides cannot describe it.

    A dimension of length 1 gets the buffer's own stride if the view is then the complete buffer.
    """
    flat = buffer.layout.element(value.index)
    if not flat.is_affine:
        return None
    strides = tuple(flat.coefficient(axis) for axis in axes_of(value.shape))
    layout = Layout(value.shape, strides, flat.constant)
    whole = layout.offset == buffer.layout.offset and same_strides(layout, buffer.layout)
    return buffer.layout if whole else layout


def restrided(value: TensorValue, buffer: Buffer, target: Layout) -> TensorValue | None:
    """The `as_strided` view `target` of the storage of `buffer`; None if it is not expressible.

    A dense buffer is a row-major array of its dimensions, sorted by their strides.
    """
    if not is_dense(buffer.layout) or not is_within_storage(target, buffer.layout):
        return None
    flat = target.element(identity(target.size)) - buffer.layout.offset
    sizes = buffer.layout.size
    order = by_stride(buffer.layout)
    places = dict(zip(order, unflatten(flat, [sizes[d] for d in order]), strict=True))
    at = tuple(places.get(d, ZERO) for d in range(len(sizes)))
    return replace(value, shape=target.size, index=at)


def is_within_storage(target: Layout, storage: Layout) -> bool:
    """Is the view inside the storage for all values of the symbols?"""
    return all(map(is_nonnegative, room_around(target, storage)))


def room_around(target: Layout, storage: Layout) -> tuple[Size, Size]:
    """The elements of the storage before the view and after it; negative outside of the storage."""
    end = add_sizes(storage.offset, storage.numel)
    before = add_sizes(target.offset, mul_sizes(storage.offset, -1))
    return before, add_sizes(end, mul_sizes(target.storage_size, -1))


def is_dense(layout: Layout) -> bool:
    """Does each element of the storage belong to exactly one index?  The dimensions may have any
    order."""
    return len(by_stride(layout)) == sum(not is_int(size, 1) for size in layout.size)


def overlaps(layout: Layout) -> bool:
    """May two elements share memory?  Not if each stride is larger than the extent of all smaller
    ones."""
    if is_dense(layout) or any(is_int(size, 0) for size in layout.size):
        return False
    pairs = [p for p in zip(layout.stride, layout.size, strict=True) if not is_int(p[1], 1)]
    reach = 1
    for stride, size in sorted(pairs, key=lambda pair: hint(pair[0])):
        if not (isinstance(stride, int) and isinstance(size, int)) or stride < reach:
            return True
        reach += stride * (size - 1)
    return False


def by_stride(layout: Layout) -> list[int]:
    """The dimensions (without those of size 1) from the largest stride to the smallest.

    It stops at the first dimension whose stride is not the extent of the dimensions inside it.
    """
    order: list[int] = []
    left = [d for d, size in enumerate(layout.size) if not is_int(size, 1)]
    expected: Size = 1
    while left:
        found = next((d for d in left if layout.stride[d] == expected), None)
        if found is None:
            break
        left.remove(found)
        order.append(found)
        expected = mul_sizes(expected, layout.size[found])
    return order[::-1]


def same_strides(a: Layout, b: Layout) -> bool:
    """Equal sizes, and equal strides in all dimensions whose size is not 1."""
    if a.size != b.size:
        return False
    if any(is_int(size, 0) for size in a.size):
        return True
    return all(
        is_int(size, 1) or x == y for size, x, y in zip(a.size, a.stride, b.stride, strict=True)
    )
