"""Scans: running sums, products and extrema along one dimension.

As in eager mode, a scan accumulates in a wider dtype than its result: float16 and bfloat16 in
float32, and on the CPU float32 in float64.

    cumsum(x: f32[8, 32], dim 1)   →   buf0[i0, i1] : f32 = sum up to i1 of f64(x[i0, i1])

Inductor: `lowering.py`, `cumsum`, and `ir.Scan`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.ir.index import is_int
from inductor_lab.compiler.ir.ops import POSITIONS
from inductor_lab.compiler.lower.builder import Builder, TensorMeta
from inductor_lab.compiler.lower.ops.reduce import accumulator
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue, identity

aten = torch.ops.aten


def scan_to(build: Builder, kind: str, body: Expr, dim: int, meta: TensorMeta) -> TensorValue:
    """`body` accumulated along `dim`; a copy if the tensor is 0-dim."""
    rank, nothing = len(meta.shape), any(is_int(size, 0) for size in meta.shape)
    if nothing or rank == 0 or is_int(meta.shape[dim % rank], 1):
        position = nothing or kind in POSITIONS
        return build.pointwise(build.const(0, meta.dtype) if position else body, meta)
    return build.scan(kind, body, dim % rank, meta)


def running_total(
    kind: str, build: Builder, x: TensorValue, dim: int, dtype: Any = None, **_: Any
) -> TensorValue:
    """A running sum or product; integers and bool give int64 unless a dtype is given."""
    meta = build.result
    value = build.convert(build.load(x, identity(meta.shape)), meta.dtype)
    if meta.dtype is torch.bool:
        kind = {"sum": "any", "prod": "all"}[kind]
    return scan_to(build, kind, build.convert(value, _wide(build, meta)), dim, meta)


def _wide(build: Builder, meta: TensorMeta) -> torch.dtype:
    """The dtype in which eager mode accumulates."""
    on_cpu = meta.device == "cpu" and build.options.target is None
    doubles = on_cpu and meta.dtype is torch.float32
    return torch.float64 if doubles else accumulator(meta.dtype)


lowers(aten.cumsum.default)(partial(running_total, "sum"))
lowers(aten.cumprod.default)(partial(running_total, "prod"))


@lowers(aten.logcumsumexp.default)
def logcumsumexp(build: Builder, x: TensorValue, dim: int) -> TensorValue:
    """log(cumsum(exp(x))) without overflow.

    Its gradient is exp of a difference of two such values, which amplifies their rounding errors.
    """
    meta = build.result
    value = build.convert(build.load(x, identity(meta.shape)), _wide(build, meta))
    return scan_to(build, "logsumexp", value, dim, meta)


def running_extreme(
    kind: str, build: Builder, x: TensorValue, dim: int
) -> tuple[TensorValue, TensorValue]:
    """The extreme values so far, and their last positions: two nests over the same axes."""
    values, places = build.tensors
    body = build.load(x, identity(values.shape))
    of_bool = body.dtype is torch.bool
    number = build.convert(body, torch.uint8 if of_bool else accumulator(body.dtype))
    logical = {"max": "any", "min": "all"}[kind]
    best = (logical, body) if of_bool else (kind, number)
    return (
        scan_to(build, *best, dim, values),
        scan_to(build, f"arg{kind}_last", number, dim, places),
    )


lowers(aten.cummax.default)(partial(running_extreme, "max"))
lowers(aten.cummin.default)(partial(running_extreme, "min"))
