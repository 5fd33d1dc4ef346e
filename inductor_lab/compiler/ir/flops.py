"""Arithmetic of library calls: matrix products, convolutions, attention.

A multiplication and an addition each count one, as in `torch.utils.flop_counter` (which takes
longer to import than most graphs to compile).  Biases and the softmax of attention do not count.
Its products count for all queries and keys: which of them a mask leaves out only the call tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeAlias

Shape: TypeAlias = tuple[int, ...]

FIRST = ("mm", "bmm", "mv", "dot", "_int_mm", "_scaled_mm", "linear", "_linear_pointwise",
         "_mkl_linear")  # fmt: skip
SECOND = ("addmm", "baddbmm", "addmv")
"""Products whose sums run along the last dimension of the first argument, or of the second."""
CONVOLUTIONS = ("convolution", "_convolution_pointwise")


def call_flops(op: str, args: Sequence[Any], made: Shape) -> int:
    """Flops of `aten.mm.default(*args)`, tensors given by their shapes; 0 where nobody counts.

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
        after_one = backward or "flex_attention" in name  # a gradient, or what is called
        q, k, v = args[1:4] if after_one else args[:3]
        products = 3 * q[-1] + 2 * v[-1] if backward else q[-1] + v[-1]
        return int(2 * prod(q[:-1]) * k[-2] * products)
    return 0


def _convolution(places: Shape, weight: Shape) -> int:
    """`places` is the result's shape, or where that is transposed, the image's."""
    return 2 * prod(places) * prod(weight[1:])
