"""Batched products of tiny matrices: each takes less time than the start of the library.

    a[n, 4, 4] @ b[n, 4, 4]
      →   buf0[i0, i1, i2] : f32  = sum over r0<4 of mul(a[i0, i1, r0], b[i0, r0, i2])

Inductor: `decompose_bmm` in `fx_passes/decompose_mem_bound_mm.py`, for rows and columns.
"""

from __future__ import annotations

from math import prod

import torch

from inductor_lab.compiler.lower.builder import Builder
from inductor_lab.compiler.lower.ops.reduce import reduce_to, space_of
from inductor_lab.compiler.lower.tensor import TensorValue, identity

SMALL_PRODUCT = 400
"""Multiplications per matrix product below which eager mode runs plain loops, and so does this."""


def small_product(build: Builder, a: TensorValue, b: TensorValue) -> TensorValue | None:
    """The loop nest, on a CPU and if the matrices are small enough; otherwise None."""
    meta, sizes = build.result, (*a.shape[1:], b.shape[2])
    small = all(isinstance(size, int) for size in sizes) and 0 < prod(sizes) < SMALL_PRODUCT
    on_cpu = meta.device == "cpu" and build.options.target is None
    if not small or not on_cpu or meta.dtype not in (torch.float32, torch.float64):
        return None
    space = space_of(a, 2, keepdim=False)
    (batch, row, column), inner = identity(meta.shape), space.at[2]
    factors = build.load(a, (batch, row, inner)), build.load(b, (batch, inner, column))
    return reduce_to(build, "sum", build.op("mul", *factors), space, meta)
