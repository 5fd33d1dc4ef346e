"""Facts about nests and loads that the scheduler needs often, computed once.

Two numbers matter for a load: how many different elements it touches (the memory traffic) and how
many times the loop evaluates it (the work if the buffer is recomputed instead of loaded).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TypeAlias

from inductor_lab.compiler.ir.expr import Load, Op
from inductor_lab.compiler.ir.index import (
    ZERO,
    Axis,
    Gathered,
    Index,
    Quotient,
    Remainder,
    hint,
    is_int,
)
from inductor_lab.compiler.ir.match_matmul import product_of
from inductor_lab.compiler.ir.ops import OPS
from inductor_lab.compiler.ir.program import Buffer, Layout, Nest, Pointwise, Reduction, Scatter

Place: TypeAlias = tuple[Index, ...]
"""The place of a load: one index per dimension of the buffer."""

Box: TypeAlias = tuple[tuple[int, int], ...]
"""The smallest and the largest index in each dimension, both inclusive."""


@dataclass(frozen=True, slots=True, eq=False)
class NestFacts:
    """A nest, with its position in the program and facts about its body.

    loads    (buffer, place) of each different load, including loads inside gathered indices
    flops    arithmetic of one evaluation of the body
    ops      operations in the body: a measure of code size
    volume   how often the body is evaluated: the product of all axes (symbols hinted)
    loops    its axes, outermost loop first; stores are in memory order
    product  the buffer of the matrix product that the nest computes or rounds; "" if none
    """

    nest: Nest
    position: int
    loads: tuple[tuple[str, Place], ...]
    flops: int
    ops: int
    volume: int
    loops: tuple[Axis, ...]
    product: str = ""

    @property
    def buffer(self) -> str:
        return self.nest.buffer


Facts: TypeAlias = Mapping[str, NestFacts]


def nest_facts(nest: Nest, position: int, layout: Layout, known: Facts) -> NestFacts:
    """The facts of a nest that stores in this layout; `known` are the facts of earlier nests."""
    loads: dict[tuple[str, Place], None] = {}
    flops = int(not isinstance(nest, Pointwise))
    ops = 1
    if isinstance(nest, Scatter):
        loads[nest.base, nest.index] = None
    for node in (node for root in nest.roots for node in root.walk()):
        if isinstance(node, Load):
            loads[node.buffer, node.index] = None
        elif isinstance(node, Op):
            flops += OPS[node.name].flops
            ops += 1
    lengths = [hint(axis.size) for axis in nest.reduce_axes]
    if isinstance(nest, Reduction) and nest.kind == "bisect":
        lengths = [size.bit_length() for size in lengths]
    volume = prod([*(hint(axis.size) for axis in nest.axes), *lengths])
    products = [b for b, _ in loads if b in known and known[b].product == b]
    product = nest.buffer if product_of(nest) else products[0] if products else ""
    flops = 2 if product == nest.buffer else flops  # as in a library call: conversions are loads
    any_order = isinstance(nest, Pointwise | Reduction)
    strides = dict(zip(nest.axes, layout.stride, strict=True)) if any_order else {}
    axes = sorted(nest.axes, key=lambda axis: -hint(strides.get(axis, 0)))
    loops = (*axes, *nest.reduce_axes)
    return NestFacts(nest, position, tuple(loads), flops, ops, volume, loops, product)


def real_axes(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """The axes whose size is not 1; only these occur in indices."""
    return tuple(axis for axis in axes if not is_int(axis.size, 1))


@dataclass(frozen=True, slots=True)
class Access:
    """One load of a buffer in a loop nest.

    elements      number of different elements touched
    box           the range of each index
    evaluations   how often the load is evaluated if it is hoisted as far as possible: a load that
                  depends only on the row is evaluated once per row
    """

    elements: int
    box: Box
    evaluations: int


@lru_cache(maxsize=1 << 13)
def access(place: Place, loops: tuple[Axis, ...], layout: Layout) -> Access:
    used: set[Axis] = set()
    box: list[tuple[int, int]] = []
    for index, size in zip(place, layout.size, strict=True):
        used.update(index.axes())
        low, high = _bounds(index)
        box.append((max(low, 0), min(high, hint(size) - 1)))
    points = prod(hint(axis.size) for axis in used)
    evaluations, reached = 1, 1
    for axis in loops:
        reached *= hint(axis.size)
        if axis in used:
            evaluations = reached
    elements = min(points, _volume(box), storage_elements(layout))
    return Access(elements, tuple(box), evaluations)


def touched(accesses: Sequence[Access], buffer: Buffer) -> int:
    """The number of elements of a buffer that several loads touch; equal ranges count once.

    Different ranges are added; the sum is limited by their bounding box and by the storage.
    """
    if len(accesses) == 1:
        return accesses[0].elements
    boxes: dict[Box, int] = {}
    for one in accesses:
        boxes[one.box] = max(one.elements, boxes.get(one.box, 0))
    enclosing = [
        (min(low for low, _ in ranges), max(high for _, high in ranges))
        for ranges in zip(*boxes, strict=True)
    ]
    return min(sum(boxes.values()), _volume(enclosing), storage_elements(buffer.layout))


def storage_elements(layout: Layout) -> int:
    """The number of different elements of a layout: dimensions of stride 0 repeat elements."""
    pairs = zip(layout.size, layout.stride, strict=True)
    return prod(hint(size) for size, stride in pairs if not is_int(stride, 0))


def _volume(box: Iterable[tuple[int, int]]) -> int:
    return prod(max(high - low + 1, 0) for low, high in box)


def _bounds(index: Index) -> tuple[int, int]:
    """The range of an index, with symbols hinted."""
    if index is ZERO:
        return 0, 0
    low = high = hint(index.constant)
    for atom, coefficient in index.terms:
        match atom:
            case Axis(_, size) | Gathered(_, size) | Remainder(_, size):
                first, last = 0, hint(size) - 1
            case Quotient(dividend, divisor):
                first, last = (bound // max(hint(divisor), 1) for bound in _bounds(dividend))
        factor = hint(coefficient)
        first, last = first * factor, last * factor
        low, high = low + min(first, last), high + max(first, last)
    return low, high
