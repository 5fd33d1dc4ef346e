"""Constants and counters.  They are nests, so they can be fused.

Inductor: `lowering.py`, `full`, `iota`, `arange`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import sympy
import torch

from inductor_lab.compiler.base.errors import LeftToATen
from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.ir.index import Index, is_integer_size
from inductor_lab.compiler.lower.builder import Builder, size_of
from inductor_lab.compiler.lower.fits import must_fit
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue, identity

aten = torch.ops.aten
prims = torch.ops.prims


OF_ANY = prims.scalar_tensor.default
"""Decompositions call it with any number (`xlogy(1e300, x)`)."""


@lowers(aten.full.default, aten.full_like.default, aten.new_full.default, aten.fill.Scalar)
@lowers(aten.scalar_tensor.default, OF_ANY)
def full(build: Builder, *given: Any, **_: Any) -> TensorValue:
    """A tensor filled with the last argument, which must fit in the dtype, as in eager mode."""
    if build.node.target is not OF_ANY or not isinstance(given[-1], float):
        must_fit(build, given[-1:], build.result.dtype)
    return build.pointwise(build.const(given[-1], build.result.dtype))


@lowers(aten.fill.Tensor)
def fill(build: Builder, x: TensorValue, value: TensorValue) -> TensorValue:
    """A 0-dim tensor, repeated."""
    return build.pointwise(build.load(value, identity(build.result.shape)))


def _filled(number: int, build: Builder, *given: Any, **_: Any) -> TensorValue:
    return build.pointwise(build.const(number, build.result.dtype))


lowers(aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default)(partial(_filled, 0))
lowers(aten.ones.default, aten.ones_like.default, aten.new_ones.default)(partial(_filled, 1))


@lowers(
    aten.empty.memory_format,
    aten.empty_like.default,
    aten.empty_strided.default,
    aten.new_empty.default,
    aten.new_empty_strided.default,
    aten.empty_permuted.default,
)
def empty(build: Builder, *_: Any, **__: Any) -> TensorValue:
    """Zeros; with deterministic algorithms the number with which eager mode fills new memory: NaN,
    or the largest number of the dtype."""
    dtype = build.result.dtype
    return build.pointwise(build.const(_number_in_new_memory(dtype), dtype))


def fills_new_memory() -> bool:
    """Does eager mode fill new memory, as it does with deterministic algorithms?"""
    modes = torch.utils.deterministic
    fills: bool = modes.fill_uninitialized_memory  # type: ignore[attr-defined]  # of its class
    return fills and torch.are_deterministic_algorithms_enabled()


def _number_in_new_memory(dtype: torch.dtype) -> float:
    if not fills_new_memory():
        return 0
    if dtype is torch.bool:
        return True
    return math.nan if dtype.is_floating_point else torch.iinfo(dtype).max


@lowers(prims.iota.default)
def iota(build: Builder, length: Any, *, start: Any, step: Any, **_: Any) -> TensorValue:
    """start, start + step, ..."""
    meta = build.result
    (i,) = identity(meta.shape)
    return build.pointwise(build.position(i * step + start, meta.dtype))


@lowers(aten.arange.start_step, aten.arange.start, aten.arange.default)
def arange(build: Builder, *given: Any, **_: Any) -> TensorValue:
    """start + i * step, in int64, or for floats in the dtype in which eager mode accumulates."""
    start, step = (0, 1) if len(given) == 1 else (given[0], given[2] if len(given) > 2 else 1)
    meta = build.result
    return build.pointwise(_counter(build, identity(meta.shape)[0], start, step, meta.dtype))


def _counter(build: Builder, i: Index, start: Any, step: Any, dtype: torch.dtype) -> Expr:
    if not dtype.is_floating_point:
        start, step = (int(n) if isinstance(n, float) else n for n in (start, step))
    whole = all(is_integer_size(sympy.sympify(n)) for n in (start, step))
    if not whole and not dtype.is_floating_point:
        raise LeftToATen("symbolic float converted to an integer")
    if whole:
        return build.convert(build.position(i * size_of(step) + size_of(start)), dtype)
    wide = torch.float64 if build.result.device == "cpu" else torch.float32
    place = build.position(i, wide)
    return build.op(
        "add", build.op("mul", place, build.const(step, wide)), build.const(start, wide)
    )


def _triangle(name: str, build: Builder, x: TensorValue, diagonal: int = 0) -> TensorValue:
    meta = build.result
    at = identity(meta.shape)
    row, column = at[-2], at[-1]
    test = build.op(name, build.position(column - row), build.const(diagonal, torch.int64))
    zero = build.const(0, meta.dtype)
    return build.pointwise(build.op("where", test, build.load(x, at), zero))


lowers(aten.tril.default)(partial(_triangle, "le"))
lowers(aten.triu.default)(partial(_triangle, "ge"))


@lowers(aten.eye.default, aten.eye.m)
def eye(build: Builder, *given: Any, **_: Any) -> TensorValue:
    """1 on the diagonal."""
    meta = build.result
    row, column = identity(meta.shape)
    test = build.op("eq", build.position(row), build.position(column))
    one, zero = build.const(1, meta.dtype), build.const(0, meta.dtype)
    return build.pointwise(build.op("where", test, one, zero))
