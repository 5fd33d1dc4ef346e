"""Which operators are decomposed before lowering, and by which definition.

PrimTorch defines most of ATen in terms of a small core (`torch._decomp`).  We use its table, remove
the operators that have a lowering (one nest, a view, or one library call), and add operators of its
core.

    aten._softmax(x, 1)   →   amax, sub, exp, sum, div

Inductor: `decomposition.py`, `select_decomp_table`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from inductor_lab.compiler.rewrite.decompose.eager_dtype_checks import keep_rejected_operators
from inductor_lab.compiler.rewrite.decompose.foreach import foreach_decompositions
from inductor_lab.compiler.rewrite.decompose.own_definitions import DEFINITIONS
from inductor_lab.compiler.torch_door.torch_api import core_decompositions, known_decompositions

aten = torch.ops.aten
Decomposition = Callable[..., Any]

ADDED = (
    aten._softmax.default, aten._log_softmax.default, aten.native_layer_norm.default,
    aten.native_group_norm.default, aten.native_batch_norm.default,
    aten._native_batch_norm_legit.default, aten._native_batch_norm_legit.no_stats,
    aten._native_batch_norm_legit_functional.default,
    aten._native_batch_norm_legit_no_training.default, aten._batch_norm_with_update.default,
    aten._batch_norm_with_update_functional.default, aten._batch_norm_no_update.default,
    aten.batch_norm_backward.default, aten.dist.default,
    aten.ldexp.Tensor, aten.narrow_copy.default, aten.upsample_nearest1d.default,
    aten.upsample_nearest2d.default, aten.upsample_nearest3d.default,
    aten._upsample_nearest_exact1d.default, aten._upsample_nearest_exact2d.default,
    aten._upsample_nearest_exact3d.default, aten.upsample_nearest2d.vec,
    aten.upsample_bilinear2d.vec, aten.upsample_bilinear2d.default, aten.as_strided_copy.default,
    aten.tril_indices.default, aten.triu_indices.default, aten.permute_copy.default,
    aten.view_copy.default, aten.unbind_copy.int, aten.uniform.default, aten.normal.float_float,
    aten.normal.Tensor_float, aten.normal.float_Tensor, aten.normal.Tensor_Tensor,
    aten.exponential.default, aten.cauchy.default, aten.geometric.default, aten.log_normal.default,
    aten.rrelu_with_noise_backward.default,
)  # fmt: skip
"""Operators that are in PrimTorch's full table but not in its core table."""


def decomposition_table(lowered: frozenset[Any]) -> dict[Any, Decomposition]:
    """Overload → its definition in simpler operators, for AOTAutograd; `lowered` operators are
    kept.

    Dynamo may use `prims.fma` for an in-place addcmul; torch creates that operator only then.
    """
    fma = getattr(torch.ops.prims, "fma", None)
    own = DEFINITIONS if fma is None else {fma.default: _multiply_add, **DEFINITIONS}
    known = known_decompositions()
    table = {op: made for op, made in core_decompositions().items() if op not in lowered}
    added = {op: known[op] for op in ADDED if op in known}
    return keep_rejected_operators(table | added | FOREACH | own)


def _multiply_add(a: Any, b: Any, c: Any) -> Any:
    return aten.add(aten.mul(a, b), c)


FOREACH = foreach_decompositions()
