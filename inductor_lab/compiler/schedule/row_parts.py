"""Outer axes that a kernel visits in parts, because it also sums over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from inductor_lab.compiler.ir.index import Axis, Index


@dataclass(frozen=True, slots=True)
class InParts:
    """Outer axes whose points are visited in parts: i0 is at `16 * part + step0`.

    Parts are independent.  The steps of a part run one after the other, so a reduction over them
    can keep a result for each element of a row (`schedule/fusion/mixed_order_reduction.py`).
    """

    part: Axis
    steps: tuple[Axis, ...]
    places: Mapping[Axis, Index]

    @property
    def axes(self) -> tuple[Axis, ...]:
        return (self.part, *self.steps)

    def loops(self, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        """The loops of a reduction with these axes: the outer axes and its other axes."""
        return (*self.places, *(axis for axis in axes if axis != self.part))

    def renamed(self, names: Mapping[Axis, Axis]) -> InParts:
        """The same, with renamed outer axes."""
        places = {names.get(axis, axis): place for axis, place in self.places.items()}
        return replace(self, places=places)
