"""Matrix products, convolutions and attention: ATen does them, on purpose.

One product is ours: a row times a matrix that is made on the fly of less than its own bytes, which
is what weights kept in int8 are.  It takes as long as reading the matrix does; as a loop
nest it reads what the matrix is made of, which is never written out.

    row[1, 4096] @ (w.to(float32) * scale)[4096, 4096]
      →   buf2[i0, i1] : f32  = sum over r0<4096 of mul(row[0, r0], buf1[i1, r0])

Inductor: `kernel/mm.py`, `kernel/conv.py`; there templates compete with ATen, here ATen alone.
`fx_passes/decompose_mem_bound_mm.py` for the row.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import torch

from inductor_lab.ir.expr import Expr, Masked
from inductor_lab.ir.index import Axis, Index
from inductor_lab.ir.program import Pointwise, read_by
from inductor_lab.library_ops import OWN_CONVOLUTION
from inductor_lab.lower.builder import Builder
from inductor_lab.lower.extern import call
from inductor_lab.lower.reduce import accumulator
from inductor_lab.lower.registry import lowers
from inductor_lab.lower.tensor import TensorValue, axes_of, identity

aten = torch.ops.aten


def _library(op: Any, build: Builder, *args: Any, **kwargs: Any) -> Any:
    """One extern call with the node's own arguments."""
    return call(build, op, args, kwargs)


LIBRARY = """
    bmm baddbmm addmv linear
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
"""Operators that a library does better than generated loops."""

for _op in (*(getattr(aten, name).default for name in LIBRARY), OWN_CONVOLUTION):
    lowers(_op)(partial(_library, _op))


@lowers(aten.mm.default)
def mm(build: Builder, a: TensorValue, b: TensorValue) -> Any:
    """The library's, or a loop nest for a row and weights of few bits."""
    return _row_times(build, a, b) or _library(aten.mm.default, build, a, b)


@lowers(aten.addmm.default)
def addmm(build: Builder, bias: TensorValue, a: TensorValue, b: TensorValue, **scaled: Any) -> Any:
    """The same with a bias."""
    made = None if scaled else _row_times(build, a, b, bias)
    return made or _library(aten.addmm.default, build, bias, a, b, **scaled)


def _row_times(
    build: Builder, a: TensorValue, b: TensorValue, bias: TensorValue | None = None
) -> TensorValue | None:
    """`a @ b + bias` as a sum over the row, if that reads less than the library would."""
    facts = build.result
    fixed = all(isinstance(size, int) for size in (*a.shape, *b.shape))
    if not fixed or facts.device != "cpu" or facts.dtype not in (torch.float32, torch.bfloat16):
        return None
    if a.shape[0] != 1 or a.shape[1] < 2 or not _made_of_less(build, b):
        return None
    along = Index.of(axes_of(b.shape)[0])
    if b.index[-1] != along or build.buffers[b.buffer].layout.stride[-1] != 1:
        return None  # the sums would go across its rows
    wide, (row, column), k = accumulator(facts.dtype), identity(facts.shape), Axis("r0", a.shape[1])
    factors = (build.load(a, (row, Index.of(k))), build.load(b, (Index.of(k), column)))
    product = build.op("mul", *(build.convert(factor, wide) for factor in factors))
    total = build.reduction("sum", product, (k,), facts.having(wide))
    if bias is None and wide == facts.dtype:
        return total
    value = build.load(total, (row, column))
    if bias is not None:
        start = build.load(bias, (row, column))
        value = build.op("add", value, build.convert(start, wide))
    return build.pointwise(value, facts)


def _made_of_less(build: Builder, value: TensorValue) -> bool:
    """Does what a tensor is computed from, element by element, have fewer bytes than itself?"""
    makers = {step.buffer: step for step in build.steps if isinstance(step, Pointwise)}
    leaves, waiting, seen = 0, [value.buffer], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in makers:
            if not all(map(_is_plain, makers[name].body.walk())):
                return False
            waiting.extend(read_by(makers[name]))
        else:
            leaves += _nbytes(build, name)
    return value.buffer in makers and leaves < _nbytes(build, value.buffer)


def _is_plain(node: Expr) -> bool:
    """Can a vector of neighbours be computed of vectors of neighbours?  Not out of packed pairs."""
    atoms = [atom for index in node.indices() for atom, _ in index.terms]
    return not isinstance(node, Masked) and all(isinstance(atom, Axis) for atom in atoms)


def _nbytes(build: Builder, name: str) -> int:
    """Bytes of a buffer; of one whose sizes are not fixed too many for anything."""
    buffer = build.buffers[name]
    sizes = [size for size in buffer.layout.size if isinstance(size, int)]
    known = len(sizes) == len(buffer.layout.size)
    return prod(sizes) * buffer.dtype.itemsize if known else 1 << 60
