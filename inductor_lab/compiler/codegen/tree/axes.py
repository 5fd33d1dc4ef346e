"""Which loops a kernel has: the order of the axes, what neighbours are one loop, which are more.

    for i0 < 64:                            for i0 < 8192:
      for i1 < 128:               →           out[i0] = in[i0]
        out[128*i0 + i1] = in[128*i0 + i1]

    for i0 < 768:                           for i0 < 12:
      out[i0] =                   →           for i1 < 64:
        in[900*(i0 // 64) + i0 % 64]            out[64*i0 + i1] = in[900*i0 + i1]

Inductor: `SIMDScheduling.select_tiling`, `simplify_and_reorder`, `_simplify_loops`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from inductor_lab.compiler.codegen.tree.flat_offsets import Access
from inductor_lab.compiler.ir.index import (
    Axis,
    Index,
    Quotient,
    Remainder,
    Size,
    exact_ratio,
    hint,
    mul_sizes,
    product,
)
from inductor_lab.compiler.ir.row_major import joined, parts_of

SHORTEST_ROW = 16
"""Elements below which a loop of its own costs more than the divisions."""


@dataclass(frozen=True, slots=True)
class Space:
    """The loops chosen for some axes: `loops`, outermost first, and each old axis from them."""

    loops: tuple[Axis, ...]
    mapping: Mapping[Axis, Index]


def loop_space(
    axes: Sequence[Axis], seen: Sequence[Access], letter: str, *, keep_order: bool = False
) -> Space:
    """Order `axes` by memory stride, join what is contiguous everywhere, name them `letter`0.. .

    `keep_order` is for loops whose order is part of the meaning (the first maximum of argmax).
    """
    ordered = list(axes) if keep_order else _by_stride(axes, seen)
    runs: list[list[Axis]] = []
    for axis in ordered:
        if runs and all(_joins(access.flat, runs[-1][-1], axis) for access in seen):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    loops = tuple(Axis(f"{letter}{k}", product(a.size for a in run)) for k, run in enumerate(runs))
    mapping: dict[Axis, Index] = {}
    for loop, run in zip(loops, runs, strict=True):
        mapping.update(parts_of(Index.of(loop), run))
    return Space(loops, mapping)


def cut_space(axes: Sequence[Axis], seen: Sequence[Access], letter: str) -> Space:
    """As `loop_space`, where an axis that is divided by the length of a row, as where heads or
    patches come together, becomes a loop over rows and one within them."""
    innermost = _by_stride(axes, seen)[-1:]
    flats = [access.flat for access in seen]
    parts = {axis: _parts(axis, flats, SHORTEST_ROW * (axis in innermost)) for axis in axes}
    whole = {axis: joined(parts[axis]) for axis in axes}
    cut = [replace(access, flat=access.flat.substitute(whole)) for access in seen]
    space = loop_space([part for axis in axes for part in parts[axis]], cut, letter)
    mapping = {axis: index.substitute(space.mapping) for axis, index in whole.items()}
    return Space(space.loops, mapping)


def _parts(axis: Axis, flats: Sequence[Index], shortest: int) -> tuple[Axis, ...]:
    """The parts of an axis that nothing divides, the last one of at least `shortest` elements."""
    divisors = {d for flat in flats for d in _divisors(flat, axis)}
    length = min(divisors, key=hint, default=None)
    count = None if length is None else exact_ratio(axis.size, length)
    if length is None or count is None or hint(length) < shortest:
        return (axis,)
    rows, place = Axis(f"{axis.name} // {length}", count), Axis(f"{axis.name} % {length}", length)
    cut = {axis: joined((rows, place))}
    inside = [flat.substitute(cut) for flat in flats]
    if any(_divisors(flat, place) for flat in inside):
        return (axis,)
    return (*_parts(rows, inside, 1), place)


def _divisors(index: Index, axis: Axis) -> list[Size]:
    """What an axis is divided by; in sums with others, too."""
    found: list[Size] = []
    for atom, _ in index.terms:
        if isinstance(atom, Quotient | Remainder) and axis in atom.dividend.axes():
            inside = _divisors(atom.dividend, axis)
            found += inside or [atom.divisor]
    return found


def _by_stride(axes: Sequence[Axis], seen: Sequence[Access]) -> list[Axis]:
    """Largest stride outermost; stored buffers decide, and loads where nothing is stored."""
    stores = [a.flat for a in seen if a.store and any(axis in axes for axis in a.flat.axes())]
    deciding = stores or [a.flat for a in seen if a.buffer is not None]

    def key(position: int) -> tuple[int, int]:
        strides = [abs(hint(flat.coefficient(axes[position]))) for flat in deciding]
        return -max(strides, default=0), position

    return [axes[p] for p in sorted(range(len(axes)), key=key)]


def _joins(index: Index, outer: Axis, inner: Axis) -> bool:
    """Does the pair only occur as `outer * inner.size + inner`, inside divisions too?

    Values inside gathered indices are accesses of their own and are judged there.
    """
    if index.coefficient(outer) != mul_sizes(index.coefficient(inner), inner.size):
        return False
    return all(
        _joins(atom.dividend, outer, inner)
        for atom, _ in index.terms
        if isinstance(atom, Quotient | Remainder)
    )
