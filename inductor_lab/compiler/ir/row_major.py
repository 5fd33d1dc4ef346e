"""Conversion between the position of a point in row-major order and its coordinates."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_lab.compiler.ir.index import ZERO, Axis, Index, Size, is_int, mul_sizes
from inductor_lab.compiler.ir.program import Layout


def flat_position(axes: Sequence[Axis]) -> Index:
    """The row-major position of a point: `64*i0 + i1`."""
    layout = Layout.contiguous(tuple(axis.size for axis in axes))
    return layout.element(tuple(map(Index.of, axes)))


def coordinates_at(position: Index, axes: Sequence[Axis]) -> dict[Axis, Index]:
    """The coordinate of each axis at a row-major position; the inverse of `flat_position`.

    If an axis has size 0 there are no points, and every coordinate is 0.
    """
    if any(is_int(axis.size, 0) for axis in axes):
        return dict.fromkeys(axes, ZERO)
    found: dict[Axis, Index] = {}
    below: Size = 1
    for number, axis in reversed(list(enumerate(axes))):
        part = position // below
        found[axis] = part % axis.size if number else part
        below = mul_sizes(below, axis.size)
    return found
