"""Windows: which positions of a dimension one result reads, and which results read one position.

    Sliding(kernel 3, stride 2, padding 1)     result o reads 2*o - 1 + r              for r < 3
    Adaptive(10 → 4)                           result o reads 10*o//4 + r              for r < 4
                                               if that is below ceil(10*(o+1)/4)

Both directions are index arithmetic.  So a pooling gathers its inputs, and its gradient gathers
from the results that read an element.  There is no scatter, and both vectorize.

Inductor: `lowering.py`, `_max_pool_with_offsets`, `_adaptive_pooling_fn`, `avg_pool2d_backward`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import TypeAlias

from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.ir.index import Axis, Index, Size, add_sizes, is_int
from inductor_lab.compiler.lower.builder import Builder, TensorMeta
from inductor_lab.compiler.lower.ops.reduce import Space, reduce_to
from inductor_lab.compiler.lower.places import compare, inside
from inductor_lab.compiler.lower.tensor import TensorValue

UNROLLED = 32
"""The largest window that is unrolled into one expression."""

COMBINED = {"sum": "add", "max": "maximum", "min": "minimum"}
"""Kinds of reduction → the operation that combines two elements."""


@dataclass(frozen=True, slots=True)
class Sliding:
    """Result o of `results` reads o*stride - padding + dilation*r for r < kernel."""

    size: Size
    results: Size
    kernel: int
    stride: int
    padding: int
    dilation: int = 1

    def place(self, o: Index, r: Index) -> Index:
        return o * self.stride + r * self.dilation - self.padding

    def is_read(self, build: Builder, o: Index, place: Index) -> list[Expr]:
        """The tests that position `place` of result o is inside the input."""
        return inside(build, place, self.size)

    @property
    def readers(self) -> int:
        """The largest number of results that read one position."""
        return self.dilation * (self.kernel - 1) // self.stride + 1

    def reader(self, place: Index, t: Index) -> Index:
        """The results that may read a position, in ascending order for t < readers."""
        return (place + self.padding) // self.stride + t - (self.readers - 1)

    def reads(self, build: Builder, o: Index, place: Index) -> list[Expr]:
        """The tests that o is a valid result and that its window (without dilation) contains
        `place`."""
        tests = inside(build, o, self.results)
        if self.readers * self.stride > self.kernel:
            tests.append(compare(build, "lt", place - self.place(o, Index((), 0)), self.kernel))
        return tests

    def counted(self, build: Builder, o: Index, padded: bool) -> Expr | int:
        """The number of positions of the window inside the input (with its padding if `padded`)."""
        padding = self.padding if padded else 0
        last = self.place(o, Index.constant_of(self.kernel - 1))
        first, end = self.place(o, Index((), 0)), add_sizes(self.size, padding)
        if not inside(build, first + padding, end) and not inside(build, last, end):
            return self.kernel
        start = build.position(first)
        stop = build.op("add", start, build.const(self.kernel, start.dtype))
        limit = build.const(end, start.dtype)
        begin = build.op("maximum", start, build.const(-padding, start.dtype))
        return build.op("sub", build.op("minimum", stop, limit), begin)


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Result o of `results` reads from floor(o*size/results) up to ceil((o+1)*size/results)."""

    size: int
    results: int

    def start(self, o: Index) -> Index:
        return (o * self.size) // self.results

    def end(self, o: Index) -> Index:
        return (o * self.size + (self.size + self.results - 1)) // self.results

    def place(self, o: Index, r: Index) -> Index:
        return self.start(o) + r

    @property
    def lengths(self) -> frozenset[int]:
        """The set of window lengths."""
        n, k = self.size, self.results
        return frozenset(-(-(o + 1) * n // k) - o * n // k for o in range(k))

    @property
    def kernel(self) -> int:
        return max(self.lengths, default=1)

    def is_read(self, build: Builder, o: Index, place: Index) -> list[Expr]:
        """The tests that position `place` is inside the window of result o."""
        return [compare(build, "lt", place - self.end(o), 0)] if len(self.lengths) > 1 else []

    @property
    def readers(self) -> int:
        """The largest number of results that read one position."""
        n, k = self.size, self.results
        return max((-(-(i + 1) * k // n) - i * k // n for i in range(n)), default=1)

    def reader(self, place: Index, t: Index) -> Index:
        """The results that may read a position, in ascending order for t < readers."""
        return (place * self.results) // self.size + t

    def reads(self, build: Builder, o: Index, place: Index) -> list[Expr]:
        """The tests that o is a valid result and that its window contains `place`."""
        if self.readers == 1:
            return []
        begun = compare(build, "ge", place - self.start(o), 0)
        return [*inside(build, o, self.results), begun]

    def counted(self, build: Builder, o: Index, padded: bool) -> Expr | int:
        """The length of the window."""
        return build.position(self.end(o) - self.start(o)) if len(self.lengths) > 1 else self.kernel


Window: TypeAlias = Sliding | Adaptive


def fold(
    build: Builder,
    kind: str,
    box: Sequence[int],
    element: Callable[[Sequence[Index]], Expr],
    meta: TensorMeta,
) -> TensorValue:
    """The sum, max or min of `element` over a box of positions, for each element of `meta`.

    A small box is unrolled: the nest is pointwise, and the vector lanes run along its results.
    """
    if prod(box) <= UNROLLED:
        places = product(*(map(Index.constant_of, range(size)) for size in box))
        parts = [element(place) for place in places]
        return build.pointwise(reduce(lambda a, b: build.op(COMBINED[kind], a, b), parts), meta)
    axes = [Axis(f"r{n}", size) for n, size in enumerate(box)]
    visited = tuple(axis for axis in axes if not is_int(axis.size, 1))
    body = element([Index.of(axis) for axis in axes])
    return reduce_to(build, kind, body, Space((), visited, meta.shape, prod(box)), meta)
