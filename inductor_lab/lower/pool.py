"""Pooling: reductions over a sliding window; what lies outside of the input is masked.

    max_pool2d(x[n, c, 8, 8], 2)  →  max over r0<2, r1<2 of x[i0, i1, 2*i2 + r0, 2*i3 + r1]

Inductor: `lowering.py`, `max_pool2d_with_indices`, `avg_pool2d`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from inductor_lab.ir.expr import Expr
from inductor_lab.ir.index import Axis, Index, add_sizes, is_int, is_nonnegative, mul_sizes
from inductor_lab.lower.builder import Builder
from inductor_lab.lower.index import both_hold, compare, masked
from inductor_lab.lower.reduce import Space, accumulator, reduce_to
from inductor_lab.lower.registry import lowers
from inductor_lab.lower.tensor import TensorValue, flatten, identity

aten = torch.ops.aten


def pair(given: Sequence[int] | int, default: Sequence[int] = ()) -> tuple[int, int]:
    """`3`, `[3]` and `[3, 3]` mean the same; an empty list means the default."""
    values = [given] if isinstance(given, int) else list(given or default)
    return values[0], values[-1]


class Window:
    """The elements that one result reads: a box of kernel size, `stride` apart from the next."""

    def __init__(
        self,
        build: Builder,
        x: TensorValue,
        shape: Sequence[Any],
        kernel: tuple[int, int],
        stride: tuple[int, int],
        padding: tuple[int, int],
        dilation: tuple[int, int] = (1, 1),
    ) -> None:
        self.build, self.x, self.kernel = build, x, kernel
        self.axes = tuple(Axis(f"r{n}", size) for n, size in enumerate(kernel))
        own = identity(shape)
        self.places = [
            own[n - 2] * stride[n] + Index.of(self.axes[n]) * dilation[n] - padding[n]
            for n in range(2)
        ]
        self.at = (*own[:-2], *self.places)
        reduce_axes = tuple(axis for axis in self.axes if not is_int(axis.size, 1))
        self.space = Space(self.at, reduce_axes, tuple(shape), kernel[0] * kernel[1])

    def inside(self) -> list[Expr]:
        """The tests that a place needs to be known to be in the input."""
        tests = []
        for place, size in zip(self.places, self.x.shape[-2:], strict=True):
            low, high = place.bounds() or (-1, size)
            if not is_nonnegative(low):
                tests.append(compare(self.build, "ge", place, 0))
            if not is_nonnegative(add_sizes(add_sizes(size, -1), mul_sizes(high, -1))):
                tests.append(compare(self.build, "lt", place, size))
        return tests

    def value(self, dtype: torch.dtype, outside: Any) -> Expr:
        """The element of the input, or `outside` where there is none."""
        body = self.build.convert(self.build.load(self.x, self.at), dtype)
        tests = self.inside()
        if not tests:
            return body
        mask = both_hold(self.build, tests)
        return masked(self.build, mask, body, self.build.const(outside, dtype))


def lowest(dtype: torch.dtype) -> float | int:
    """What no maximum is affected by."""
    return -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min


@lowers(aten.max_pool2d_with_indices.default)
def max_pool2d_with_indices(
    build: Builder,
    x: TensorValue,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    ceil_mode: bool = False,
) -> tuple[TensorValue, TensorValue]:
    """The largest element of each window, and its place in the flattened image."""
    values, places = build.results
    kernel = pair(kernel_size)
    steps = pair(stride, kernel)
    spread = pair(dilation)
    window = Window(build, x, values.shape, kernel, steps, pair(padding), spread)
    wide = accumulator(x.dtype)
    body = window.value(wide, lowest(wide))
    largest = reduce_to(build, "max", body, window.space, values)
    found = reduce_to(build, "argmax", body, window.space, places)
    at = identity(places.shape)
    inner = build.gathered(build.load(found, at), kernel[0] * kernel[1])
    rows = [inner // kernel[1], inner % kernel[1]]
    there = [at[n - 2] * steps[n] + rows[n] * spread[n] - pair(padding)[n] for n in range(2)]
    return largest, build.pointwise(build.position(flatten(there, x.shape[-2:])), places)


@lowers(aten.avg_pool2d.default)
def avg_pool2d(
    build: Builder,
    x: TensorValue,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> TensorValue:
    """The sum of each window over the number of its elements that count."""
    facts = build.result
    kernel, around = pair(kernel_size), pair(padding)
    window = Window(build, x, facts.shape, kernel, pair(stride, kernel), around)
    wide = accumulator(x.dtype)
    space = window.space
    total = reduce_to(build, "sum", window.value(wide, 0), space, facts.having(wide))
    value = build.load(total, identity(facts.shape))
    if divisor_override is not None:
        count = build.const(divisor_override, wide)
    else:
        count = _window_sizes(build, x, window, around if count_include_pad else (0, 0), wide)
    name = "truediv" if wide.is_floating_point else "truncdiv"
    return build.pointwise(build.op(name, value, count))


def _window_sizes(
    build: Builder, x: TensorValue, window: Window, counted: tuple[int, int], dtype: torch.dtype
) -> Expr:
    """How many elements of each window lie in the input, with `counted` padding on either side."""
    if not window.inside():
        return build.const(window.space.count, dtype)
    sizes = []
    for n, (place, size) in enumerate(zip(window.places, x.shape[-2:], strict=True)):
        start = build.position(place.substitute({window.axes[n]: Index.constant_of(0)}))
        end = build.op("add", start, build.const(window.kernel[n], torch.int64))
        limit = build.const(add_sizes(size, counted[n]), torch.int64)
        first = build.op("maximum", start, build.const(-counted[n], torch.int64))
        sizes.append(build.op("sub", build.op("minimum", end, limit), first))
    return build.convert(build.op("mul", *sizes), dtype)
