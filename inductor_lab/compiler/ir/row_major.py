"""The position among all points of several axes, outermost first, and the way back."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_lab.compiler.ir.index import ZERO, Axis, Index, Size, is_int, mul_sizes
from inductor_lab.compiler.ir.program import Layout


def joined(axes: Sequence[Axis]) -> Index:
    """The position: `64*i0 + i1`."""
    layout = Layout.contiguous(tuple(axis.size for axis in axes))
    return layout.element(tuple(map(Index.of, axes)))


def parts_of(position: Index, axes: Sequence[Axis]) -> dict[Axis, Index]:
    """Where each axis is at a position; sums of them fold back.

    Axes without points have no parts that matter.
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
