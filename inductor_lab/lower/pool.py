"""Pooling in one to three dimensions: the largest, or the mean, of each window.

    max_pool2d(x[n, c, 8, 8], 2)  →  max over r0<2, r1<2 of x[i0, i1, 2*i2 + r0, 2*i3 + r1]

What lies outside of the input is masked.  float16 and bfloat16 are added in float32.

Inductor: `lowering.py`, `max_pool2d_with_indices`, `avg_pool2d`, `_adaptive_avg_pool2d`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import torch

from inductor_lab.errors import LeftToATen
from inductor_lab.ir.expr import Expr
from inductor_lab.ir.index import Index, Size, product
from inductor_lab.ir.ops import neutral
from inductor_lab.lower.builder import Builder
from inductor_lab.lower.places import all_hold, masked
from inductor_lab.lower.reduce import accumulator
from inductor_lab.lower.registry import lowers
from inductor_lab.lower.tensor import TensorValue, flatten, identity
from inductor_lab.lower.window import Adaptive, Sliding, Window, fold

aten = torch.ops.aten


def each(given: Sequence[int] | int, count: int, default: Sequence[int] = ()) -> list[int]:
    """`3`, `[3]` and `[3, 3]` mean the same; an empty list means the default."""
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
    kernels = each(kernel, n)
    parts = (kernels, each(stride, n, kernels), each(padding, n), each(dilation, n))
    return [Sliding(*one) for one in zip(sizes, results, *parts, strict=True)]


def adaptive(sizes: Sequence[Size], results: Sequence[Size]) -> list[Window]:
    """One window for each dimension, of sizes that are known."""
    if not all(isinstance(size, int) for size in (*sizes, *results)):
        raise LeftToATen("symbolic windows")
    if 0 in results:
        raise LeftToATen("no windows")
    return [Adaptive(*one) for one in zip(sizes, results, strict=True)]


class Pool:
    """`windows` over the last dimensions of x; `element(r)` is what a result reads at r."""

    def __init__(
        self, build: Builder, x: TensorValue, windows: Sequence[Window], shape: tuple[Size, ...]
    ) -> None:
        self.build, self.x, self.windows = build, x, windows
        self.wide = accumulator(x.dtype)
        own = identity(shape)
        self.front, self.o = own[: -len(windows)], own[-len(windows) :]
        self.kernel = [w.kernel for w in windows]

    def places(self, r: Sequence[Index]) -> list[Index]:
        return [w.place(o, n) for w, o, n in zip(self.windows, self.o, r, strict=True)]

    def tests(self, r: Sequence[Index]) -> list[Expr]:
        """What has to hold for a place to be one of the input."""
        parts = zip(self.windows, self.o, self.places(r), strict=True)
        return [test for w, o, place in parts for test in w.is_read(self.build, o, place)]

    def element(self, r: Sequence[Index], outside: Any) -> Expr:
        """The element of the input, or `outside` where there is none."""
        at = (*self.front, *self.places(r))
        body = self.build.convert(self.build.load(self.x, at), self.wide)
        other = self.build.const(outside, self.wide)
        return masked(self.build, self.tests(r), body, other)


def max_pool(
    build: Builder, x: TensorValue, windows: Sequence[Window]
) -> tuple[TensorValue, TensorValue]:
    """The largest element of each window, and its place in the flattened input.

    Of equal ones the first counts, of several NaN the last, as in eager.  So the place is what is
    least of these: the place of a maximum, minus the place of a NaN, and for others more than any.
    """
    values, places = build.tensors
    pool = Pool(build, x, windows, values.shape)
    outside = neutral("max", pool.wide)
    largest = fold(build, "max", pool.kernel, partial(pool.element, outside=outside), values)
    at = identity(values.shape)
    sizes = [w.size for w in windows]
    count = product(sizes)
    short = isinstance(count, int) and count < 2**31
    whole = torch.int32 if short else torch.int64

    def key(r: Sequence[Index]) -> Expr:
        value = pool.element(r, outside)
        place = build.position(flatten(pool.places(r), sizes), whole)
        best = build.convert(build.load(largest, at), value.dtype)
        found = all_hold(build, [build.op("eq", value, best), *pool.tests(r)])
        nowhere = build.const(count, whole)
        chosen = build.op("where", found, place, nowhere)
        if not value.dtype.is_floating_point:
            return chosen
        return build.op("where", build.op("isnan", value), build.op("neg", place), chosen)

    least = fold(build, "min", pool.kernel, key, places.having(whole))
    return largest, build.pointwise(build.op("abs", build.load(least, at)), places)


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
    """How many elements the mean of window o is taken over."""
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
    """The sum of each window over the number of its elements that count."""
    meta = build.result
    pool = Pool(build, x, windows, meta.shape)
    element = partial(pool.element, outside=0)
    total = fold(build, "sum", pool.kernel, element, meta.having(pool.wide))
    value = build.load(total, identity(meta.shape))
    count = divisor(build, windows, pool.o, pool.wide, **counting)
    name = "truediv" if pool.wide.is_floating_point else "truncdiv"
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
