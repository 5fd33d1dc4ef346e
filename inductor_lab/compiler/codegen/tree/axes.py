"""Choose the loops of a kernel: reorder axes, merge adjacent axes, split an axis into two loops.

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
from inductor_lab.compiler.ir.row_major import coordinates_at, flat_position

SHORTEST_ROW = 16
"""An inner loop with fewer elements costs more than the divisions that it saves."""


@dataclass(frozen=True, slots=True)
class Space:
    """The loops chosen for some axes.

    `loops` are outermost first; `mapping` expresses each original axis in terms of the loops.
    """

    loops: tuple[Axis, ...]
    mapping: Mapping[Axis, Index]


def loop_space(
    axes: Sequence[Axis], seen: Sequence[Access], letter: str, *, keep_order: bool = False
) -> Space:
    """Order `axes` by memory stride, merge axes that are contiguous in every access.

    The loops are named `letter`0, `letter`1 and so on. `keep_order` is for loops whose order
    affects the result (argmax returns the first maximum).
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
        mapping.update(coordinates_at(Index.of(loop), run))
    return Space(loops, mapping)


def split_loop_space(axes: Sequence[Axis], seen: Sequence[Access], letter: str) -> Space:
    """Like `loop_space`, but split each axis that some index divides by a row length.

    The axis becomes a loop over rows and a loop within a row. Merged attention heads or image
    patches cause such divisions.
    """
    innermost = _by_stride(axes, seen)[-1:]
    flats = [access.flat for access in seen]
    parts = {axis: _parts(axis, flats, SHORTEST_ROW * (axis in innermost)) for axis in axes}
    whole = {axis: flat_position(parts[axis]) for axis in axes}
    cut = [replace(access, flat=access.flat.substitute(whole)) for access in seen]
    space = loop_space([part for axis in axes for part in parts[axis]], cut, letter)
    mapping = {axis: index.substitute(space.mapping) for axis, index in whole.items()}
    return Space(space.loops, mapping)


def _parts(axis: Axis, flats: Sequence[Index], shortest: int) -> tuple[Axis, ...]:
    """Split an axis so that no index divides a part; the last part has `shortest` or more elements,
    or the axis is not split."""
    divisors = {d for flat in flats for d in _divisors(flat, axis)}
    length = min(divisors, key=hint, default=None)
    count = None if length is None else exact_ratio(axis.size, length)
    if length is None or count is None or hint(length) < shortest:
        return (axis,)
    rows, place = Axis(f"{axis.name} // {length}", count), Axis(f"{axis.name} % {length}", length)
    cut = {axis: flat_position((rows, place))}
    inside = [flat.substitute(cut) for flat in flats]
    if any(_divisors(flat, place) for flat in inside):
        return (axis,)
    return (*_parts(rows, inside, 1), place)


def _divisors(index: Index, axis: Axis) -> list[Size]:
    """The divisors of an axis, including divisors of sums that contain the axis."""
    found: list[Size] = []
    for atom, _ in index.terms:
        if isinstance(atom, Quotient | Remainder) and axis in atom.dividend.axes():
            inside = _divisors(atom.dividend, axis)
            found += inside or [atom.divisor]
    return found


def _by_stride(axes: Sequence[Axis], seen: Sequence[Access]) -> list[Axis]:
    """Largest stride outermost. Use the strides of stores, or of loads if nothing is stored."""
    stores = [a.flat for a in seen if a.store and any(axis in axes for axis in a.flat.axes())]
    deciding = stores or [a.flat for a in seen if a.buffer is not None]

    def key(position: int) -> tuple[int, int]:
        strides = [abs(hint(flat.coefficient(axes[position]))) for flat in deciding]
        return -max(strides, default=0), position

    return [axes[p] for p in sorted(range(len(axes)), key=key)]


def _joins(index: Index, outer: Axis, inner: Axis) -> bool:
    """Does the pair occur only as `outer * inner.size + inner`, also inside divisions?

    Values inside gathered indices are separate accesses and are checked separately.
    """
    if index.coefficient(outer) != mul_sizes(index.coefficient(inner), inner.size):
        return False
    return all(
        _joins(atom.dividend, outer, inner)
        for atom, _ in index.terms
        if isinstance(atom, Quotient | Remainder)
    )
