"""Matrix products as loop nests for a GPU, chosen by `accelerate/tune_matmul.py`.

    a[128, 64] @ b[64, 48] + bias
      →   buf0[i0, i1] : f32  = sum over r0<64 of mul(f32(a[i0, r0]), f32(b[r0, i1]))
          buf1[i0, i1] : f16  = f16(add(buf0[i0, i1], f32(bias[i1])))

Consumers of the result are fused into their kernel (`codegen/triton/matmul_kernel.py`), so the rows
have the shape that the consumers read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.ir.match_matmul import product_of
from inductor_lab.compiler.ir.program import Layout, Reduction
from inductor_lab.compiler.lower.builder import Builder, TensorMeta
from inductor_lab.compiler.lower.tensor import TensorValue, axes_of, flatten, identity, reshape

aten = torch.ops.aten
MARK = "lab_matmul_nest"
"""In the `meta` of a product that is to be a loop nest."""
VIEWS = (aten.view.default, aten.reshape.default, aten._unsafe_view.default)


def mark(module: GraphModule, names: Collection[str]) -> None:
    """Let these products, and no others, be loop nests."""
    for node in module.graph.nodes:
        node.meta[MARK] = node.name in names


def own_product(build: Builder, *args: Any) -> TensorValue | None:
    """`bias + a @ b`, with or without a batch, if this node is marked (`mark`); otherwise None."""
    if not build.node.meta.get(MARK):
        return None
    *biases, a, b = args
    meta, wide = build.result, torch.float32
    shape = shape_of_view(build.node)
    seen = TensorMeta(shape, Layout.contiguous(shape).stride, meta.dtype, meta.device)
    at, terms = identity(shape), Axis("r0", a.shape[-1])
    batch, column, inner = at[: a.ndim - 2], at[-1], Index.of(terms)
    row = flatten(at[a.ndim - 2 : -1], shape[a.ndim - 2 : -1])
    factors = build.load(a, (*batch, row, inner)), build.load(b, (*batch, inner, column))
    body = build.op("mul", *(build.convert(factor, wide) for factor in factors))
    if product_of(Reduction("", axes_of(shape), (terms,), "sum", body)) is None:
        return None
    value = build.load(build.reduction("sum", body, (terms,), seen.having(wide)), at)
    for bias in biases:
        value = build.op("add", value, build.convert(build.load(bias, (row, column)), wide))
    return reshape(build.pointwise(value, seen), meta.shape)


def shape_of_view(node: Node) -> tuple[int, ...]:
    """The shape of a product, with the rows in the shape of its view."""
    shape: tuple[int, ...] = tuple(node.meta["val"].shape)
    seen = [tuple(user.meta["val"].shape) for user in node.users if user.target in VIEWS]
    fits = (view for view in seen if len(shape) == 2 and view[-1:] == shape[-1:])
    return next(fits, shape)
