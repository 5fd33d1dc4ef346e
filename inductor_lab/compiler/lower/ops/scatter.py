"""Operators that write at computed positions: index_put, scatter, index_add, embedding's gradient.

    index_add(x[4, 8], 0, rows[3], source[3, 8])

    buf0[i0, i1] = x[i0, i1]                         a copy for this scatter
    buf1[rows[i0], i1] : f32   i0<3, i1<8
      = buf0 with add of source[i0, i1]

float16 and bfloat16 are combined in float32 and rounded once.

Inductor: `lowering.py`, `index_put_impl_`, `scatter_reduce_`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from inductor_lab.compiler.base.errors import LeftToATen
from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.ir.index import ZERO, Index, Size, is_int, product
from inductor_lab.compiler.ir.ops import ATOMICS, neutral
from inductor_lab.compiler.lower.builder import Builder, size_of
from inductor_lab.compiler.lower.fits import need_shape
from inductor_lab.compiler.lower.ops.reduce import accumulator
from inductor_lab.compiler.lower.places import Target, along, indexed, is_mask, slices, wrapped
from inductor_lab.compiler.lower.registry import LOWERINGS, lowers
from inductor_lab.compiler.lower.tensor import TensorValue, identity, reshape, unflatten

aten = torch.ops.aten


def base_copy(build: Builder, x: TensorValue | None, dtype: torch.dtype) -> TensorValue:
    """A copy of `x` (zeros for None), with the result's shape, which a scatter may overwrite.

    If the result becomes the new value of an input, this is a view of a copy of the complete buffer
    of x, so that the copy can be removed (`lower/passes/in_place.py`).
    """
    if x is not None and x.dtype == dtype and build.node in build.chains.home:
        return build.copy_buffer(x)
    meta = build.result.having(dtype)
    zero = build.const(0, dtype)
    body = zero if x is None else build.load(x, identity(meta.shape))
    return build.pointwise(body, meta)


def stored(build: Builder, x: TensorValue, target: Target, value: Expr) -> TensorValue:
    """x with values stored at the target."""
    return build.scatter(base_copy(build, x, x.dtype), target.shape, target.index, "store", value)


def added(
    build: Builder, x: TensorValue | None, target: Target, value: Expr, kind: str = "add"
) -> TensorValue:
    """x (or zeros) with values added or multiplied at the target."""
    wide = accumulator(build.result.dtype)
    begin = base_copy(build, x, wide)
    made = build.scatter(begin, target.shape, target.index, kind, value)
    return build.rounded(made, build.result)


# ---- index tensors that broadcast together -------------------------------------------------------


@lowers(aten.index_put.default)
def index_put(
    build: Builder,
    x: TensorValue,
    indices: Sequence[TensorValue | None],
    values: TensorValue,
    accumulate: bool = False,
) -> TensorValue:
    """`x[indices] = values`, or `+=`; negative positions count from the end."""
    given = [*indices, *[None] * (x.ndim - len(indices))]
    if any(one is not None and is_mask(one) for one in given):
        return _masked_put(build, x, given, values, accumulate)
    target = indexed(build, x, given)
    value = build.load(values, target.at)
    return (added if accumulate else stored)(build, x, target, value)


def _masked_put(
    build: Builder,
    x: TensorValue,
    given: Sequence[TensorValue | None],
    values: TensorValue,
    accumulate: bool,
) -> TensorValue:
    """One mask, and values that are equal for all selected elements: a `where`.

    If the mask selects complete rows of an input that is updated, ATen does it on a CPU, because it
    visits only these rows.  On a GPU it would wait for their number.
    """
    used = [d for d, one in enumerate(given) if one is not None]
    mask = given[used[0]]
    assert mask is not None
    first, after = used[0], x.ndim - used[0] - mask.ndim
    picked = values.shape[-1 - after] if values.ndim > after else 1
    rows = mask.ndim < x.ndim and x.device == "cpu" and build.node in build.chains.home
    if len(used) > 1 or not is_int(picked, 1) or (rows and build.options.target is None):
        raise LeftToATen("mask as index")
    at = identity(x.shape)
    value = build.load(values, (*at[:first], ZERO, *at[x.ndim - after :]))
    old = build.load(x, at)
    if accumulate:
        wide = accumulator(x.dtype)
        value = build.op("add", build.convert(old, wide), build.convert(value, wide))
    chosen = build.convert(build.load(mask, at[first : first + mask.ndim]), torch.bool)
    value = build.convert(value, x.dtype)
    return build.pointwise(build.op("where", chosen, value, old))


@lowers(aten.put.default)
def put(
    build: Builder,
    x: TensorValue,
    index: TensorValue,
    source: TensorValue,
    accumulate: bool = False,
) -> TensorValue:
    """Positions in the flattened x; negative ones count from the end."""
    flat = wrapped(build, index, identity(index.shape), product(x.shape))
    target = Target(index.shape, tuple(unflatten(flat, x.shape)))
    value = build.load(reshape(source, index.shape), target.at)
    return (added if accumulate else stored)(build, x, target, value)


# ---- one index tensor for one dimension ----------------------------------------------------------


@lowers(aten.scatter.src, aten.scatter.value, aten.scatter.reduce, aten.scatter.value_reduce)
def scatter(
    build: Builder,
    x: TensorValue,
    dim: int,
    index: TensorValue,
    value: Any,
    reduce: str | None = None,
) -> TensorValue:
    """Store values along one dimension.

    If `index` selects one element of each row, this is a `where`, which can be fused: out[i, j] =
    value if j == index[i, 0] else x[i, j].
    """
    if reduce is None and _picks_one(x, dim, index):
        return _choose_by_position(build, x, dim % x.ndim, index, value)
    target = along(build, x, dim, index)
    new = _value(build, value, target.at)
    if reduce is None:
        return stored(build, x, target, new)
    return added(build, x, target, new, {"add": "add", "multiply": "mul"}[reduce])


def _value(build: Builder, value: Any, at: Sequence[Index]) -> Expr:
    if isinstance(value, TensorValue):
        return build.load(value, at)
    return build.const(value, build.result.dtype)


def _picks_one(x: TensorValue, dim: int, index: TensorValue) -> bool:
    if not x.ndim or index.ndim != x.ndim or not is_int(index.shape[dim], 1):
        return False
    return all(index.shape[d] == x.shape[d] for d in range(x.ndim) if d != dim % x.ndim)


def _choose_by_position(
    build: Builder, x: TensorValue, dim: int, index: TensorValue, value: Any
) -> TensorValue:
    at = identity(build.result.shape)
    first = (*at[:dim], ZERO, *at[dim + 1 :])
    chosen = build.position(build.gathered(build.load(index, first), x.shape[dim]))
    test = build.op("eq", build.position(at[dim]), chosen)
    new = _value(build, value, first)
    return build.pointwise(build.op("where", test, new, build.load(x, at)))


@lowers(aten.scatter_add.default)
def scatter_add(
    build: Builder, x: TensorValue, dim: int, index: TensorValue, source: TensorValue
) -> TensorValue:
    """Add values along one dimension; several may have the same position."""
    target = along(build, x, dim, index)
    return added(build, x, target, build.load(source, target.at))


@lowers(aten.index_add.default)
def index_add(
    build: Builder,
    x: TensorValue,
    dim: int,
    index: TensorValue,
    source: TensorValue,
    alpha: Any = 1,
) -> TensorValue:
    """Add slices, multiplied by `alpha`."""
    target = slices(build, x, dim, index)
    value = build.load(source, target.at)
    if alpha != 1:
        wide = accumulator(build.result.dtype)
        value = build.op("mul", build.convert(value, wide), build.const(alpha, wide))
    return added(build, x, target, value)


@lowers(aten.index_copy.default)
def index_copy(
    build: Builder, x: TensorValue, dim: int, index: TensorValue, source: TensorValue
) -> TensorValue:
    """Replace slices."""
    target = slices(build, x, dim, index)
    return stored(build, x, target, build.load(source, target.at))


@lowers(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(
    build: Builder, x: TensorValue, dim: int, index: TensorValue, value: Any
) -> TensorValue:
    """Fill slices with one value."""
    target = slices(build, x, dim, index, wrap=True)
    return stored(build, x, target, _value(build, value, ()))


# ---- reductions of values at the same position ---------------------------------------------------

KINDS = {"sum": "add", "mean": "add", "prod": "mul", "amax": "maximum", "amin": "minimum"}


def _reduced(
    find: Any,
    build: Builder,
    x: TensorValue,
    dim: int,
    index: TensorValue,
    source: TensorValue,
    reduce: str,
    include_self: bool = True,
) -> TensorValue:
    """Reduce the values at each position, together with the old value if `include_self`."""
    target = find(build, x, dim, index)
    if find is slices:
        need_shape(build, source, target.shape)
    kind, meta = KINDS[reduce], build.result
    wide = accumulator(meta.dtype)
    made = base_copy(build, x, wide)
    if not include_self:
        nothing = build.const(neutral(kind, wide), wide)
        made = build.scatter(made, target.shape, target.index, "store", nothing)
    value = build.load(source, target.at)
    made = build.scatter(made, target.shape, target.index, kind, value)
    if reduce != "mean":
        return build.rounded(made, meta)
    counts = build.pointwise(build.const(include_self, torch.int64), meta.having(torch.int64))
    one = build.const(1, torch.int64)
    counts = build.scatter(counts, target.shape, target.index, "add", one)
    at = identity(meta.shape)
    count = build.convert(build.op("maximum", build.load(counts, at), one), wide)
    name = "truediv" if wide.is_floating_point else "floordiv"
    return build.pointwise(build.op(name, build.load(made, at), count))


lowers(aten.scatter_reduce.two)(partial(_reduced, along))
lowers(aten.index_reduce.default)(partial(_reduced, slices))


def has_no_atomic(node: torch.fx.Node) -> bool:
    """Does a GPU have no atomic operation to combine these values?  Then ATen does it."""
    fake = node.meta["val"]
    if not isinstance(fake, torch.Tensor) or fake.device.type == "cpu":
        return False
    kind = _combination(node)
    return kind is not None and accumulator(fake.dtype) not in ATOMICS[kind]


def _combination(node: torch.fx.Node) -> str | None:
    """How an operator combines values at the same position; None if it stores them or is not a
    scatter."""
    schema = getattr(node.target, "_schema", None)
    name = "" if schema is None else schema.name.removeprefix("aten::")
    arguments = [*node.args, *node.kwargs.values()]
    if name in ("scatter", "scatter_reduce", "index_reduce"):
        words = [argument for argument in arguments if isinstance(argument, str)]
        return {**KINDS, "add": "add", "multiply": "mul"}[words[0]] if words else None
    if name in ("index_put", "put"):
        return "add" if arguments[-1] is True else None
    added_up = ("scatter_add", "index_add", "embedding_dense_backward")
    return "add" if name in added_up else None


# ---- gradients -----------------------------------------------------------------------------------


@lowers(aten.embedding_dense_backward.default)
def embedding_dense_backward(
    build: Builder,
    grad: TensorValue,
    indices: TensorValue,
    count: Any,
    padding: int,
    by_frequency: bool,
) -> TensorValue:
    """Add the rows of the gradient to the rows of the table that they came from."""
    wide = accumulator(grad.dtype)
    rows = size_of(count)
    at = identity(grad.shape)
    chosen = build.load(indices, at[:-1])
    row = build.gathered(chosen, rows)
    value = build.convert(build.load(grad, at), wide)
    if by_frequency:
        value = build.op("truediv", value, _frequency(build, indices, rows, row, wide))
    if not isinstance(padding, int) or padding >= 0:
        test = build.op("eq", chosen, build.const(padding, chosen.dtype))
        value = build.op("where", test, build.const(0, wide), value)
    return added(build, None, Target(grad.shape, (row, at[-1])), value)


def _frequency(
    build: Builder, indices: TensorValue, rows: Size, row: Index, dtype: torch.dtype
) -> Expr:
    """How often the table row of `row` was selected."""
    meta = replace(build.result, shape=(rows,), stride=(1,), dtype=torch.int64)
    counts = build.pointwise(build.const(0, torch.int64), meta)
    place = build.gathered(build.load(indices, identity(indices.shape)), rows)
    one = build.const(1, torch.int64)
    counts = build.scatter(counts, indices.shape, (place,), "add", one)
    return build.convert(build.load(counts, (row,)), dtype)


CHECKED = frozenset(op for op, made in LOWERINGS.items() if made.__module__ == __name__)
"""Operators that raise for a position in an empty tensor."""
