"""Pooling in one to three dimensions: the maximum or the mean of each window.

    max_pool2d(x[n, c, 8, 8], 2)  →  max over r0<2, r1<2 of x[i0, i1, 2*i2 + r0, 2*i3 + r1]

A large window is reduced one dimension at a time, with 26 reads in place of 169 for

    max_pool2d(x[n, c, 20, 20], 13, 1, 6)  →  rows = max over r0<13 of x[i0, i1, i2 + r0 - 6, i3]
                                              max over r1<13 of rows[i0, i1, i2, i3 + r1 - 6]

Positions outside the input are masked.  float16 and bfloat16 are added in float32.

Inductor: `lowering.py`, `max_pool2d_with_indices`, `avg_pool2d`, `_adaptive_avg_pool2d`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import torch

from inductor_lab.compiler.base.errors import LeftToATen
from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.ir.index import Index, Size, is_int, product
from inductor_lab.compiler.ir.ops import neutral
from inductor_lab.compiler.ir.program import Layout
from inductor_lab.compiler.lower.builder import Builder, TensorMeta
from inductor_lab.compiler.lower.ops.reduce import accumulator
from inductor_lab.compiler.lower.places import all_hold, masked
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue, by_stride, flatten, identity
from inductor_lab.compiler.lower.window import UNROLLED, Adaptive, Sliding, Window, fold

aten = torch.ops.aten


def repeated(given: Sequence[int] | int, count: int, default: Sequence[int] = ()) -> list[int]:
    """One value per dimension: `3`, `[3]` and `[3, 3]` are equal; an empty list is the default."""
    values = [given] if isinstance(given, int) else list(given or default)
    return values if len(values) == count else values * count


def sliding(
    sizes: Sequence[Size],
    results: Sequence[Size],
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
) -> list[Window]:
    """One window for each dimension, from the arguments of a pooling operator."""
    n = len(sizes)
    kernels = repeated(kernel, n)
    parts = (kernels, repeated(stride, n, kernels), repeated(padding, n), repeated(dilation, n))
    return [Sliding(*one) for one in zip(sizes, results, *parts, strict=True)]


def adaptive(sizes: Sequence[Size], results: Sequence[Size]) -> list[Window]:
    """One window for each dimension; all sizes must be known."""
    if not all(isinstance(size, int) for size in (*sizes, *results)):
        raise LeftToATen("symbolic windows")
    if 0 in results:
        raise LeftToATen("empty result")
    return [Adaptive(*one) for one in zip(sizes, results, strict=True)]


def window_passes(windows: Sequence[Window]) -> list[Sequence[Window]]:
    """The windows of each pass: one pass for all dimensions, or one for each dimension.

    If each row has one result, one pass reads it.
    """
    large = math.prod(w.kernel for w in windows) > UNROLLED
    if not large or is_int(windows[-1].results, 1) or sum(w.kernel > 1 for w in windows) == 1:
        return [windows]
    before = [Sliding(w.size, w.size, 1, 1, 0) for w in windows]
    after = [Sliding(w.results, w.results, 1, 1, 0) for w in windows]
    return [[*after[:d], w, *before[d + 1 :]] for d, w in enumerate(windows)]


class Pool:
    """`windows` over the last dimensions of x; `element(r)` is the element at position r of a
    window."""

    def __init__(self, build: Builder, x: TensorValue, windows: Sequence[Window]) -> None:
        self.build, self.x, self.windows = build, x, windows
        self.wide = accumulator(x.dtype)
        self.shape = (*x.shape[: -len(windows)], *(w.results for w in windows))
        own = identity(self.shape)
        self.front, self.o = own[: -len(windows)], own[-len(windows) :]
        self.kernel = [w.kernel for w in windows]

    def places(self, r: Sequence[Index]) -> list[Index]:
        return [w.place(o, n) for w, o, n in zip(self.windows, self.o, r, strict=True)]

    def at(self, r: Sequence[Index]) -> tuple[Index, ...]:
        return (*self.front, *self.places(r))

    def tests(self, r: Sequence[Index]) -> list[Expr]:
        """The tests that a position of the window is inside the input."""
        parts = zip(self.windows, self.o, self.places(r), strict=True)
        return [test for w, o, place in parts for test in w.is_read(self.build, o, place)]

    def element(self, r: Sequence[Index], outside: Any) -> Expr:
        """The element of the input, or `outside` if the position is outside."""
        body = self.build.convert(self.build.load(self.x, self.at(r)), self.wide)
        other = self.build.const(outside, self.wide)
        return masked(self.build, self.tests(r), body, other)


def max_pool(
    build: Builder, x: TensorValue, windows: Sequence[Window]
) -> tuple[TensorValue, TensorValue]:
    """The maximum of each window, and its position in the flattened input.

    As in eager mode, the first of several equal maxima counts, and the last of several NaN.
    Therefore the position is the minimum of these keys: the position of a maximum, minus the
    position of a NaN, and a larger number for all other elements.
    """
    sizes, keys = [w.size for w in windows], None
    for passed in window_passes(windows):
        x, keys = _max_pass(Pool(build, x, passed), keys, sizes)
    places = build.tensors[1]
    assert keys is not None, "there is at least one pass"
    return x, build.pointwise(build.op("abs", build.load(keys, identity(places.shape))), places)


def _max_pass(
    pool: Pool, keys: TensorValue | None, sizes: Sequence[Size]
) -> tuple[TensorValue, TensorValue]:
    """The maximum and the smallest key of each window; `keys` are those of the previous pass."""
    build, (values, places) = pool.build, (_with_shape(m, pool.shape) for m in pool.build.tensors)
    element = partial(pool.element, outside=neutral("max", pool.wide))
    largest = fold(build, "max", pool.kernel, element, values)
    count = product(sizes)
    short = isinstance(count, int) and count < 2**31
    whole = torch.int32 if short else torch.int64
    nowhere = build.const(count, whole)

    def key(r: Sequence[Index]) -> Expr:
        value, tests = element(r), pool.tests(r)
        best = build.convert(build.load(largest, identity(pool.shape)), value.dtype)
        if keys is None:
            first = build.position(flatten(pool.places(r), sizes), whole)
            last = build.op("neg", first)
        else:
            first = last = masked(build, tests, build.load(keys, pool.at(r)), nowhere)
        found = all_hold(build, [build.op("eq", value, best), *tests])
        chosen = build.op("where", found, first, nowhere)
        if not value.dtype.is_floating_point:
            return chosen
        return build.op("where", build.op("isnan", value), last, chosen)

    return largest, fold(build, "min", pool.kernel, key, places.having(whole))


def _max_pool(
    dims: int,
    build: Builder,
    x: TensorValue,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[TensorValue, TensorValue]:
    results = build.tensors[0].shape[-dims:]
    return max_pool(build, x, sliding(x.shape[-dims:], results, kernel, stride, padding, dilation))


lowers(aten.max_pool2d_with_indices.default)(partial(_max_pool, 2))
lowers(aten.max_pool3d_with_indices.default)(partial(_max_pool, 3))


def _adaptive_max_pool(dims: int, build: Builder, x: TensorValue, size: Any) -> Any:
    return max_pool(build, x, adaptive(x.shape[-dims:], build.tensors[0].shape[-dims:]))


lowers(aten.adaptive_max_pool2d.default)(partial(_adaptive_max_pool, 2))
lowers(aten.adaptive_max_pool3d.default)(partial(_adaptive_max_pool, 3))


# ---- means -----------------------------------------------------------------------------------


def divisor(
    build: Builder,
    windows: Sequence[Window],
    o: Sequence[Index],
    dtype: torch.dtype,
    padded: bool = True,
    given: int | None = None,
) -> Expr:
    """The number of elements by which the sum of window o is divided."""
    if given is not None:
        return build.const(given, dtype)
    sizes = [w.counted(build, one, padded) for w, one in zip(windows, o, strict=True)]
    known = math.prod(size for size in sizes if isinstance(size, int))
    factors = [size for size in sizes if not isinstance(size, int)]
    if known != 1 or not factors:
        factors.append(build.const(known, torch.int64))
    return build.convert(reduce(lambda a, b: build.op("mul", a, b), factors), dtype)


def mean_pool(
    build: Builder, x: TensorValue, windows: Sequence[Window], **counting: Any
) -> TensorValue:
    """The sum of each window divided by the number of its elements."""
    meta = build.result
    wide, own = accumulator(x.dtype), identity(meta.shape)
    for passed in window_passes(windows):
        pool = Pool(build, x, passed)
        element = partial(pool.element, outside=0)
        x = fold(build, "sum", pool.kernel, element, _with_shape(meta, pool.shape).having(wide))
    value = build.load(x, own)
    count = divisor(build, windows, own[-len(windows) :], wide, **counting)
    name = "truediv" if wide.is_floating_point else "truncdiv"
    return build.pointwise(build.op(name, value, count))


def _avg_pool(
    dims: int,
    build: Builder,
    x: TensorValue,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> TensorValue:
    windows = sliding(x.shape[-dims:], build.result.shape[-dims:], kernel, stride, padding)
    return mean_pool(build, x, windows, padded=count_include_pad, given=divisor_override)


lowers(aten.avg_pool2d.default)(partial(_avg_pool, 2))
lowers(aten.avg_pool3d.default)(partial(_avg_pool, 3))


def _adaptive_avg_pool(dims: int, build: Builder, x: TensorValue, size: Any) -> TensorValue:
    return mean_pool(build, x, adaptive(x.shape[-dims:], build.result.shape[-dims:]))


lowers(aten._adaptive_avg_pool2d.default)(partial(_adaptive_avg_pool, 2))
lowers(aten._adaptive_avg_pool3d.default)(partial(_adaptive_avg_pool, 3))


def _with_shape(meta: TensorMeta, shape: tuple[Size, ...]) -> TensorMeta:
    """A tensor of other sizes with the same order of dimensions in memory."""
    if shape == meta.shape:
        return meta
    inner = by_stride(meta.layout)
    order = [*(d for d in range(len(shape)) if d not in inner), *inner]
    strides = Layout.contiguous(tuple(shape[d] for d in order)).stride
    stride = tuple(strides[order.index(d)] for d in range(len(shape)))
    return TensorMeta(shape, stride, meta.dtype, meta.device)
