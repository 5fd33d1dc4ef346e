"""Softmax of long rows in parts, so that a GPU reads a row once for its maximum and its sum.

    top[i] = max over r<131072 of x[i, r]
    sum[i] = sum over r<131072 of exp(x[i, r] - top[i])

    best[i, p] = max over r<4096 of x[i, 4096*p + r]                                    p<32
    part[i, p] = sum over r<4096 of exp(x[i, 4096*p + r] - best[i, p])
    top[i] = max over p<32 of best[i, p]
    sum[i] = sum over p<32 of part[i, p] * exp(best[i, p] - top[i])

One block holds a part.  If all elements of a part are -inf, 0 is used as its maximum, and its sum
is 0.

Milakov and Gimelshein: Online normalizer calculation for softmax (2018). Inductor: `ir.py`,
`OnlineSoftmaxReduction`, which keeps both in the registers of one loop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from inductor_lab.compiler.ir.expr import Const, Expr, Load, Op, map_expr
from inductor_lab.compiler.ir.index import Axis, Index, product
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    Layout,
    LoopProgram,
    Pointwise,
    Reduction,
    Step,
)
from inductor_lab.compiler.lower.passes.facts import ProgramFacts
from inductor_lab.compiler.lower.passes.gpu_rows import ENOUGH_PROGRAMS, kept_rows
from inductor_lab.compiler.lower.passes.split_reductions import in_triton

LONG_ROW = 16384
"""Shorter rows stay in the caches between two loops over them (chosen, not measured)."""

PART, SHORTEST_PART = 4096, 1024
"""Elements that one block holds at most, and at least, so that a block is well filled."""

Makers = Mapping[str, Step]


@dataclass(frozen=True)
class Normalizer:
    """The two reductions of a softmax, and the length of a part of their rows."""

    top: Reduction
    sum: Reduction
    length: int

    @property
    def parts(self) -> Axis:
        (row,) = self.top.reduce_axes
        assert isinstance(row.size, int), "rows of symbolic length are not split"
        return Axis("p0", row.size // self.length)


def softmax_from_parts(program: LoopProgram, facts: ProgramFacts) -> LoopProgram:
    """The program in which each long softmax that will be a Triton kernel is computed in parts."""
    options = facts.options
    makers = {
        step.buffer: step for step in program.steps if isinstance(step, Pointwise | Reduction)
    }
    found = [
        normalizer
        for step in program.steps
        if isinstance(step, Reduction)
        and in_triton(program.buffers[step.buffer].device, options)
        and (normalizer := _normalizer(step, makers)) is not None
    ]
    if not found:
        return program
    pairs = kept_rows(program, options)
    normalized = {reduced.buffer for reduced, again in pairs if isinstance(again, Pointwise)}
    found = [one for one in found if one.sum.buffer not in normalized]
    buffers = dict(program.buffers)
    new: dict[str, tuple[Reduction, ...]] = {}
    for normalizer in found:
        if normalizer.top.buffer not in new:
            tops, sums = _in_parts(normalizer, buffers)
            new |= {normalizer.top.buffer: tops, normalizer.sum.buffer: sums}
    if not new:
        return program
    steps = (new.get(getattr(step, "buffer", ""), (step,)) for step in program.steps)
    return replace(program, buffers=buffers, steps=tuple(s for several in steps for s in several))


def _normalizer(nest: Reduction, makers: Makers) -> Normalizer | None:
    """Is it a sum over rows of exp(element - maximum of the row)?"""
    length = _length_of_part(nest)
    power = _expanded(nest.body, makers) if nest.kind == "sum" and length else None
    if not (isinstance(power, Op) and power.name == "exp"):
        return None
    (difference,) = power.args
    if not (isinstance(difference, Op) and difference.name == "sub"):
        return None
    value, largest = difference.args
    top = makers.get(largest.buffer) if isinstance(largest, Load) else None
    if not (isinstance(top, Reduction) and top.kind == "max"):
        return None
    same_rows = (top.axes, top.reduce_axes) == (nest.axes, nest.reduce_axes)
    own = Load(top.buffer, tuple(map(Index.of, top.axes)), largest.dtype)
    if not same_rows or largest != own or value != _expanded(top.body, makers):
        return None
    return Normalizer(top, nest, length)


def _length_of_part(nest: Reduction) -> int:
    """The longest part of a row that one block can hold; 0 if there is none."""
    sizes = [axis.size for axis in (*nest.axes, *nest.reduce_axes)]
    if len(nest.reduce_axes) != 1 or not all(isinstance(size, int) for size in sizes):
        return 0
    row, rows = sizes[-1], product(axis.size for axis in nest.axes)
    assert isinstance(row, int) and isinstance(rows, int), "sizes are ints here"
    lengths = range(PART, SHORTEST_PART - 1, -1) if row >= LONG_ROW else ()
    length = next((n for n in lengths if row % n == 0), 0)
    return length if length and rows * (row // length) >= ENOUGH_PROGRAMS else 0


def _expanded(expr: Expr, makers: Makers) -> Expr:
    """The expression with pointwise nests inlined."""
    if isinstance(expr, Load):
        maker = makers.get(expr.buffer)
        if isinstance(maker, Pointwise):
            return _expanded(maker.at(expr.index), makers)
    return map_expr(expr, lambda child: _expanded(child, makers), lambda index: index)


def _in_parts(
    found: Normalizer, buffers: dict[str, Buffer]
) -> tuple[tuple[Reduction, ...], tuple[Reduction, ...]]:
    """The nests that replace the maximum, and those that replace the sum."""
    top, total, parts = found.top, found.sum, found.parts
    (row,) = top.reduce_axes
    inner = Axis(row.name, found.length)
    place = Index.of(parts) * found.length + Index.of(inner)
    value, dtype = top.body.substitute({row: place}), top.body.dtype
    axes = (*top.axes, parts)
    own, outer = tuple(map(Index.of, axes)), tuple(map(Index.of, top.axes))

    def reduced(nest: Reduction, name: str, body: Expr) -> Load:
        """A new nest over the elements of each part, and the load of what it gives."""
        old = buffers[nest.buffer]
        layout = Layout.contiguous(tuple(axis.size for axis in axes))
        buffers[name] = Buffer(name, BufferKind.COMPUTED, dtype, old.device, layout, nest.origins)
        made.append(Reduction(name, axes, (inner,), nest.kind, body, nest.origins))
        return Load(name, own, dtype, nest.origins)

    made: list[Reduction] = []
    best = reduced(top, f"{top.buffer}_best", value)
    lowest, zero = Const(-math.inf, dtype), Const(0.0, dtype)
    nothing = Op("eq", (best, lowest), torch.bool, total.origins)
    base = Op("where", (nothing, zero, best), dtype, total.origins)
    part = reduced(total, f"{total.buffer}_part", _power(value, base, total))
    whole = Load(top.buffer, outer, dtype, top.origins)
    shrunk = Op("mul", (part, _power(best, whole, total)), dtype, total.origins)
    return (
        (made[0], replace(top, reduce_axes=(parts,), body=best)),
        (made[1], replace(total, reduce_axes=(parts,), body=shrunk)),
    )


def _power(value: Expr, base: Expr, nest: Reduction) -> Op:
    difference = Op("sub", (value, base), value.dtype, nest.origins)
    return Op("exp", (difference,), value.dtype, nest.origins)
