"""Finds reductions that are matrix products, which a GPU computes with tensor cores.

    buf0[i0, i1] = sum over r0<64 of mul(f32(a[i0, r0]), f32(b[r0, i1]))

No flag marks such a reduction; the match depends only on its body.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from inductor_lab.compiler.ir.expr import Expr, Load, Op
from inductor_lab.compiler.ir.index import Axis, gathered_in, product
from inductor_lab.compiler.ir.program import Nest, Reduction
from inductor_lab.compiler.torch_door.torch_types import torch

DTYPES = (torch.float16, torch.bfloat16)
SMALLEST = 16
"""The smallest number of rows, columns and terms that tensor cores support."""


@dataclass(frozen=True, slots=True)
class Product:
    """Two operands, the axis that is summed over, and the axes of the result: those of both
    operands, of the first one and of the second one."""

    operands: tuple[Load, Load]
    terms: Axis
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]

    @staticmethod
    def of(first: Load, second: Load, terms: Axis, axes: tuple[Axis, ...]) -> Product:
        one, other = (set(load.axes()) for load in (first, second))
        return Product(
            (first, second),
            terms,
            tuple(axis for axis in axes if axis in one and axis in other),
            tuple(axis for axis in axes if axis in one and axis not in other),
            tuple(axis for axis in axes if axis in other and axis not in one),
        )


@lru_cache(maxsize=1 << 10)
def product_of(nest: Nest) -> Product | None:
    """The matrix product that a nest computes, if its matrices have fixed sizes and are large
    enough."""
    if not isinstance(nest, Reduction) or nest.kind != "sum" or len(nest.reduce_axes) != 1:
        return None
    match nest.body:
        case Op("mul", (left, right), torch.float32):
            first, second = _load_of_16_bits(left), _load_of_16_bits(right)
        case _:
            return None
    (inner,) = nest.reduce_axes
    if first is None or second is None or first.dtype != second.dtype:
        return None
    places = [index for load in (first, second) for index in load.index]
    if any(map(any, map(gathered_in, places))):
        return None
    if not all(inner in load.axes() for load in (first, second)):
        return None
    found = Product.of(first, second, inner, nest.axes)
    sizes = [product(axis.size for axis in axes) for axes in (found.rows, found.columns, (inner,))]
    whole = len(found.batch + found.rows + found.columns) == len(nest.axes)
    fixed = all(isinstance(axis.size, int) for axis in nest.axes)
    large = all(isinstance(size, int) and size >= SMALLEST for size in sizes)
    return found if whole and fixed and large else None


def _load_of_16_bits(value: Expr) -> Load | None:
    """The load of a 16-bit value that a factor converts."""
    match value:
        case Op("convert", (Load() as load,), torch.float32) if load.dtype in DTYPES:
            return load
    return None
