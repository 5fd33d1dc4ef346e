"""Flops of library calls: matrix products, convolutions, attention.

A multiplication and an addition count one each, as in `torch.utils.flop_counter` (importing that
module takes longer than compiling most graphs).  Biases and the softmax of attention count zero.
The products of attention count for all pairs of queries and keys, because the mask is known only at
run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeAlias

from inductor_lab.compiler.ir.matmul_ops import MATMULS, name_of

Shape: TypeAlias = tuple[int, ...]

FIRST = {"mv", "dot", "_int_mm", "_scaled_mm", "linear", "_linear_pointwise", "_mkl_linear"}
FIRST |= {name_of(op) for op, one in MATMULS.items() if one.first == 0}
SECOND = {"addmv", *(name_of(op) for op, one in MATMULS.items() if one.first == 1)}
"""Products that sum over the last dimension of the first argument (FIRST) or the second
(SECOND)."""
CONVOLUTIONS = ("convolution", "_convolution_pointwise")


def call_flops(op: str, args: Sequence[Any], made: Shape) -> int:
    """Flops of `aten.mm.default(*args)`, with tensors given by their shapes; 0 for other operators.

    >>> call_flops("aten.mm.default", [(4, 8), (8, 16)], (4, 16))
    1024
    """
    name = op.split(".")[1]
    if name in FIRST or name in SECOND:
        return 2 * prod(made) * int(args[name in SECOND][-1])
    if name in CONVOLUTIONS:
        transposed = op.startswith("aten.") and args[6]
        return _convolution(args[0] if transposed else made, args[1])
    if name == "convolution_backward":
        grad, x, weight, transposed, mask = *args[:3], args[7], args[10]
        return int(sum(mask[:2])) * _convolution(x if transposed else grad, weight)
    if "scaled_dot_product" in name or "flex_attention" in name:
        backward = name.endswith("_backward")
        after_one = backward or "flex_attention" in name  # the gradient, or the function
        q, k, v = args[1:4] if after_one else args[:3]
        products = 3 * q[-1] + 2 * v[-1] if backward else q[-1] + v[-1]
        return int(2 * prod(q[:-1]) * k[-2] * products)
    return 0


def _convolution(places: Shape, weight: Shape) -> int:
    """`places` is the shape of the result; for a transposed convolution, the shape of the image."""
    return 2 * prod(places) * prod(weight[1:])
