"""Views: another index map over the same buffer, without work at run time.

The fake tensor of the node has the resulting shape.  Lowerings only map the new indices to the old
ones.

Inductor: `lowering.py`, `view`, `permute`, `slice_`, ...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import sympy
import torch

from inductor_lab.compiler.capture.operands import operand as fx_operand
from inductor_lab.compiler.ir.index import ZERO, add_sizes, is_int, mul_sizes
from inductor_lab.compiler.ir.program import BufferKind, Layout
from inductor_lab.compiler.ir.slice_ops import OPERATORS
from inductor_lab.compiler.lower import tensor
from inductor_lab.compiler.lower.builder import Builder, size_of, symbols_in
from inductor_lab.compiler.lower.extern import fallback
from inductor_lab.compiler.lower.fits import (
    begin_of_slice,
    check_unbacked,
    length_of_slice,
    place_of,
)
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue
from inductor_lab.compiler.rewrite.aliases import storage_of

aten = torch.ops.aten


def add_origin(build: Builder, value: TensorValue) -> TensorValue:
    """Record this view node as one of the origins of the value."""
    return replace(value, origins=value.origins | build.origins)


def as_view(view: Callable[..., TensorValue], build: Builder, x: Any, *given: Any) -> TensorValue:
    """A view operator whose arguments are those of `view`."""
    return add_origin(build, view(x, *given))


lowers(aten.permute.default)(partial(as_view, tensor.permute))
lowers(aten.unsqueeze.default)(partial(as_view, tensor.unsqueeze))
lowers(aten.t.default)(partial(as_view, lambda x: tensor.permute(x, range(x.ndim)[::-1])))
SAME = (aten.alias.default, aten.detach.default, aten.lift_fresh.default, aten.lift.default)
lowers(*SAME)(add_origin)


@lowers(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims)
def squeeze(build: Builder, x: TensorValue, dims: int | Sequence[int] | None = None) -> TensorValue:
    """Dimensions of size 1 removed; torch treats a symbolic size as different from 1."""
    given = [dims] if isinstance(dims, int) else range(x.ndim) if dims is None else dims
    chosen = [d % x.ndim for d in given if x.ndim]
    check_unbacked(build, [sympy.Ne(x.shape[d], 1) for d in chosen])
    return add_origin(build, tensor.drop(x, {d: ZERO for d in chosen if is_int(x.shape[d], 1)}))


@lowers(aten.view.default, aten._unsafe_view.default, aten.reshape.default)
def view(build: Builder, x: TensorValue, *given: Any) -> TensorValue:
    """The same elements with another shape."""
    return add_origin(build, tensor.reshape(x, build.result.shape))


@lowers(aten.transpose.int)
def transpose(build: Builder, x: TensorValue, dim0: int, dim1: int) -> TensorValue:
    """Two dimensions swapped."""
    if x.ndim == 0:
        return x
    order = list(range(x.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return add_origin(build, tensor.permute(x, order))


@lowers(aten.expand.default, torch.ops.prims.broadcast_in_dim.default)
def expand(build: Builder, x: TensorValue, *given: Any, **more: Any) -> TensorValue:
    """Dimensions of size 1 repeated, new ones in front (for the prim, `dimensions` gives their
    positions)."""
    shape = build.result.shape
    for size, length in zip(x.shape[::-1], shape[::-1], strict=False):
        if length in build.unbacked and length != size:
            said = f"{length} is negative: a compiled expand keeps a size only for a literal -1"
            build.check(sympy.Ge(length, 0), said)
    if build.node.target is torch.ops.prims.broadcast_in_dim.default:
        for d in sorted({*range(len(shape))}.difference(given[1])):
            x = tensor.unsqueeze(x, d)
    return add_origin(build, tensor.expand(x, shape))


@lowers(aten.select.int)
def select(build: Builder, x: TensorValue, dim: int, index: Any) -> TensorValue:
    """One position of a dimension."""
    return add_origin(build, tensor.select(x, dim, place_of(build, x.shape[dim % x.ndim], index)))


@lowers(aten.slice.Tensor)
def slice_dim(
    build: Builder, x: TensorValue, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> TensorValue:
    """Every `step`-th position of a dimension between start and end."""
    dim %= x.ndim
    size, length = x.shape[dim], build.result.shape[dim]
    first = begin_of_slice(build, size, start)
    if isinstance(length, sympy.Symbol) and length not in build.symbols:
        build.number(str(OPERATORS.length_of_slice.default), (size, start, end, step), length)
    elif not build.unbacked.isdisjoint(symbols_in((start or 0, end or 0))):
        check_unbacked(build, [sympy.Eq(length, length_of_slice(build, size, start, end, step))])
    return add_origin(build, tensor.slice_dim(x, dim, first, step, length))


CHECKED = frozenset({aten.select.int, aten.constant_pad_nd.default})
"""Operators that raise for a position or a length out of range."""

AT_NUMBERS = frozenset({aten.select.int, aten.slice.Tensor})
"""Views whose position may be a number that is read from a tensor."""


@lowers(aten.diagonal.default)
def diagonal(
    build: Builder, x: TensorValue, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> TensorValue:
    """The diagonal of two dimensions."""
    return add_origin(build, tensor.diagonal(x, offset, dim1, dim2, build.result.shape[-1]))


@lowers(aten.unfold.default)
def unfold(build: Builder, x: TensorValue, dim: int, size: int, step: int) -> TensorValue:
    """Sliding windows."""
    windows = build.result.shape[dim % x.ndim] if x.ndim else 1
    return add_origin(build, tensor.unfold(x, dim, size, step, windows))


@lowers(aten.as_strided.default)
def as_strided(
    build: Builder, x: TensorValue, size: Sequence[Any], stride: Sequence[Any], offset: Any = None
) -> TensorValue:
    """Any strided view of the storage of `x`.

    ATen copies the elements if the storage belongs to an input and the view exceeds this input.
    """
    seen = fx_operand(build.node)
    base, start = storage_of(seen), seen.meta["val"].storage_offset() if offset is None else offset
    value, own = build.strided(build.values[base])
    # the node counts from the start of the storage, a layout from the buffer's first element
    before = add_sizes(size_of(base.meta["val"].storage_offset()), mul_sizes(own.offset, -1))
    named = size_of(start) if offset is None and x.buffer == value.buffer else None
    held = tensor.layout_of(x, build.buffers[x.buffer])
    if held and isinstance(named, sympy.Symbol) and named not in build.symbols:
        # torch knows only the symbol of the offset, not its value
        begins = (sys.maxsize, add_sizes(held.offset, before))
        build.number(str(OPERATORS.first_of_slice.default), begins, named)
    place = add_sizes(size_of(start), mul_sizes(before, -1))
    target = Layout(tuple(map(size_of, size)), tuple(map(size_of, stride)), place)
    for step in target.stride:
        build.require(sympy.Ge(step, 0), "as_strided: negative strides are not supported")
    found = tensor.restrided(value, build.buffers[value.buffer], target)
    if found is None:
        buffer = build.buffers[value.buffer]
        given = buffer.kind in (BufferKind.INPUT, BufferKind.CONSTANT)
        if not given and tensor.is_dense(buffer.layout):
            _require_within(build, target, buffer.layout)
        args = (value, size, stride, offset if base is seen else size_of(start))
        made: TensorValue = fallback(build, aten.as_strided.default, args, {}, "unknown storage")
        return made
    return add_origin(build, found)


def _require_within(build: Builder, target: Layout, storage: Layout) -> None:
    """The host program raises RuntimeError, as ATen does, if a view with elements is not inside the
    storage: a result that is a view is made without a test."""
    before, room = tensor.room_around(target, storage)
    for free in (before, room):
        test = sympy.Ge(mul_sizes(free, target.numel), 0)
        build.require(test, "as_strided: the view is out of bounds of the storage")


@lowers(
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.unsafe_split.Tensor,
    aten.unsafe_split_with_sizes.default,
)
def split(build: Builder, x: TensorValue, sizes: Any, dim: int = 0) -> tuple[TensorValue, ...]:
    """Consecutive slices of a dimension; the shape of each result gives its length."""
    pieces, start = [], 0
    for meta in build.tensors:
        length = meta.shape[dim % x.ndim]
        pieces.append(add_origin(build, tensor.slice_dim(x, dim, start, 1, length)))
        start = add_sizes(start, length)
    return tuple(pieces)


@lowers(aten.unbind.int)
def unbind(build: Builder, x: TensorValue, dim: int = 0) -> tuple[TensorValue, ...]:
    """Each position of a dimension as a tensor."""
    return tuple(add_origin(build, tensor.select(x, dim, n)) for n in range(len(build.tensors)))
