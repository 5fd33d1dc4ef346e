"""Matrix products, convolutions and attention: ATen computes them, on purpose.

One product becomes a loop nest: a row times a matrix that is computed from fewer bytes than it has,
such as a dequantized int8 or int4 weight.  Its time is the time to read the matrix.  The loop nest
reads the quantized weight and never stores the matrix.  If one byte holds two weights, the nest
computes both terms together.

    row[1, 4096] @ (w.to(float32) * scale)[4096, 4096]
      →   buf2[i0, i1] : f32  = sum over r0<4096 of mul(row[0, r0], buf1[i1, r0])

Inductor: `kernel/mm.py`, `kernel/conv.py`, where templates compete with ATen; here loop nests do
(`matmul_nests.py`, if they are measured to be faster). `fx_passes/decompose_mem_bound_mm.py` for
the row.
"""

from __future__ import annotations

from functools import partial, reduce
from math import lcm, prod
from typing import Any

import torch

from inductor_lab.compiler.ir.expr import Expr, Masked
from inductor_lab.compiler.ir.index import Axis, Index, Quotient, Remainder, is_int
from inductor_lab.compiler.ir.library_ops import OWN_CONVOLUTION
from inductor_lab.compiler.ir.program import Pointwise, read_by
from inductor_lab.compiler.lower.builder import Builder
from inductor_lab.compiler.lower.extern import call
from inductor_lab.compiler.lower.ops.matmul_nests import own_product
from inductor_lab.compiler.lower.ops.reduce import accumulator
from inductor_lab.compiler.lower.ops.small_matmul import small_product
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import (
    TensorValue,
    by_stride,
    flatten,
    identity,
    is_dense,
    layout_of,
)

aten = torch.ops.aten

MOST_TOGETHER = 4
"""Four 2-bit weights in one byte; more terms would hardly fit in registers."""


def _library(op: Any, build: Builder, *args: Any, **kwargs: Any) -> Any:
    """One extern call with the node's own arguments, or a matrix product as a loop nest."""
    return own_product(build, *args) or call(build, op, args, kwargs)


LIBRARY = """
    baddbmm addmv linear
    convolution convolution_backward
    _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_flash_attention_for_cpu_backward
    _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_backward
    _scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward
    _scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward
    _scaled_dot_product_fused_attention_overrideable
    _scaled_dot_product_fused_attention_overrideable_backward
    scaled_dot_product_attention
""".split()
"""Operators for which a library is faster than generated loops."""

for _op in (*(getattr(aten, name).default for name in LIBRARY), OWN_CONVOLUTION):
    lowers(_op)(partial(_library, _op))


@lowers(aten.mm.default)
def mm(build: Builder, a: TensorValue, b: TensorValue) -> Any:
    """The library call, or a loop nest for a row and a quantized weight."""
    return _row_times(build, a, b) or _library(aten.mm.default, build, a, b)


@lowers(aten.addmm.default)
def addmm(build: Builder, bias: TensorValue, a: TensorValue, b: TensorValue, **scaled: Any) -> Any:
    """The same with a bias."""
    made = None if scaled else _row_times(build, a, b, bias)
    return made or _library(aten.addmm.default, build, bias, a, b, **scaled)


@lowers(aten.bmm.default)
def bmm(build: Builder, a: TensorValue, b: TensorValue) -> Any:
    """The library call, or a loop nest for tiny matrices."""
    return small_product(build, a, b) or _library(aten.bmm.default, build, a, b)


def _row_times(
    build: Builder, a: TensorValue, b: TensorValue, bias: TensorValue | None = None
) -> TensorValue | None:
    """`a @ b + bias` as a sum over the row, if that reads fewer bytes than the library would."""
    meta = build.result
    fixed = all(isinstance(size, int) for size in (*a.shape, *b.shape))
    if not fixed or meta.device != "cpu" or meta.dtype not in (torch.float32, torch.bfloat16):
        return None
    columns = _columns(build, b)
    if a.shape[0] != 1 or a.shape[1] < 2 or columns is None:
        return None
    together = _dequantized_together(build, columns)
    if not together:
        return None
    wide, (row, column) = accumulator(meta.dtype), identity(meta.shape)
    *outer, length = columns.shape[1:]
    space = tuple(Axis(f"r{n}", size) for n, size in enumerate((*outer, length // together)))
    *others, within = map(Index.of, space)
    terms = []
    for part in range(together):
        at = (*others, within * together + part)
        load = build.load(a, (row, flatten(at, columns.shape[1:])))
        factors = (load, build.load(columns, (column, *at)))
        terms.append(build.op("mul", *(build.convert(factor, wide) for factor in factors)))
    product = reduce(partial(build.op, "add"), terms)
    total = build.reduction("sum", product, space, meta.having(wide))
    if bias is None and wide == meta.dtype:
        return total
    value = build.load(total, (row, column))
    if bias is not None:
        start = build.load(bias, (row, column))
        value = build.op("add", value, build.convert(start, wide))
    return build.pointwise(value, meta)


def _columns(build: Builder, b: TensorValue) -> TensorValue | None:
    """The columns of `b`, each in the shape in which it was computed ([groups, elements] if each
    group has its own scale); None if the columns are not contiguous."""
    buffer = build.buffers[b.buffer]
    layout = layout_of(b, buffer)
    whole = TensorValue.of(buffer)
    in_rows = layout is not None and layout.stride == (1, b.shape[0]) and layout.offset == 0
    if not in_rows or not is_dense(buffer.layout) or whole.shape[:1] != b.shape[1:]:
        return None
    return whole if by_stride(buffer.layout) == list(range(whole.ndim)) else None


def _dequantized_together(build: Builder, value: TensorValue) -> int:
    """The number of elements that should be computed together (two for 4-bit weights), if a
    pointwise nest computes the tensor from fewer bytes than it has; otherwise 0."""
    makers = {step.buffer: step for step in build.steps if isinstance(step, Pointwise)}
    leaves, together, waiting, seen = 0, 1, [value.buffer], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in makers:
            together = lcm(together, *map(_period, makers[name].body.walk()))
            waiting.extend(read_by(makers[name]))
        else:
            leaves += _nbytes(build, name)
    less = value.buffer in makers and leaves < _nbytes(build, value.buffer)
    even = together <= MOST_TOGETHER and is_int(value.shape[-1] % together, 0)
    return together if less and even else 0


def _period(node: Expr) -> int:
    """The number of adjacent elements after which the index pattern of a node repeats."""
    atoms = [atom for index in node.indices() for atom, _ in index.terms]
    if not all(isinstance(atom, Axis | Quotient | Remainder) for atom in atoms):
        return MOST_TOGETHER + 1
    periods = [atom.divisor for atom in atoms if isinstance(atom, Quotient | Remainder)]
    if isinstance(node, Masked):
        periods += [axis.size for axis in node.mask.axes()]
    return lcm(*(size if isinstance(size, int) else MOST_TOGETHER + 1 for size in periods))


def _nbytes(build: Builder, name: str) -> int:
    """Bytes of a buffer; a very large number if its sizes are symbolic."""
    buffer = build.buffers[name]
    sizes = [size for size in buffer.layout.size if isinstance(size, int)]
    known = len(sizes) == len(buffer.layout.size)
    return prod(sizes) * buffer.dtype.itemsize if known else 1 << 60
