"""Decompositions: operators as formulas of simpler operators.

In:    nothing; AOTAutograd uses the table while it traces a graph.
Out:   `table()`: operator → Python function that computes the same with other operators.

    aten._softmax(x, 1)   ->   e = exp(x - amax(x, 1));  e / sum(e, 1)

Most formulas are torch's own.  This file adds formulas for what torch keeps as an operator.  Other
operators stay as they are: `lower.py` makes them a loop or a call.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import functorch.compile
import torch
from torch import Tensor

aten = torch.ops.aten
FROM_TORCH = """
    _log_softmax_backward_data _softmax_backward_data addcdiv addcmul elu elu_backward
    gelu_backward hardtanh hardtanh_backward leaky_relu leaky_relu_backward lerp masked_fill
    mse_loss mse_loss_backward new_full native_layer_norm_backward new_ones new_zeros ones
    ones_like rsub sigmoid_backward silu silu_backward square squeeze t tanh_backward
    threshold_backward transpose tril triu where zeros zeros_like""".split()
"""Operators whose formula in torch's tables is a chain of loops.  The tables have more, but their
other formulas are slower than the operator, or are not made for gradients."""


def in_loops(formula: Callable[..., Any]) -> Callable[..., Any]:
    """The formula for dtypes that loops compute; for others the operator stays as it is."""
    def chosen(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        is_known = x.dtype in (torch.float32, torch.float64) and x.numel() > 0
        return formula(x, *args, **kwargs) if is_known else NotImplemented

    return chosen


def softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`softmax([0, log 3])` is [0.25, 0.75]; `softmax([1000, 1000])` is [0.5, 0.5]."""
    e = (x - x.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)


def log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`log_softmax([0, log 3])` is [log 0.25, log 0.75]; `log_softmax([0, 1000])` is [-1000, 0]."""
    x = x - x.amax(dim, keepdim=True)
    return x - x.exp().sum(dim, keepdim=True).log()


def mean(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Without `dim`, or with an empty list, the mean of all elements."""
    total = x.sum(dim or None, keepdim=keepdim, dtype=dtype)
    return total / (x.numel() / total.numel())


def layer_norm(x: Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> tuple[Tensor, ...]:
    """The result; the mean and 1 / sqrt(variance + eps) of each row, with the axes kept.

    `layer_norm([1, 3], [2], None, None, 0)`   ->   [-1, 1], [2], [1]
    """
    dims = list(range(x.dim() - len(shape), x.dim()))
    average = x.mean(dims, keepdim=True)
    centered = x - average
    scale = ((centered * centered).mean(dims, keepdim=True) + eps).rsqrt()
    y = centered * scale
    y = y if weight is None else y * weight
    return y if bias is None else y + bias, average, scale


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """`x * P(X <= x)` for a normal variable X, from `erf`; or its approximation with `tanh`."""
    if approximate == "tanh":
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5)))


OWN: dict[Any, Callable[..., Any]] = {
    aten._softmax.default: softmax, aten._log_softmax.default: log_softmax, aten.mean.dim: mean,
    aten.mean.default: mean, aten.native_layer_norm.default: layer_norm, aten.gelu.default: gelu,
}  # fmt: skip


@functools.cache
def table() -> dict[Any, Callable[..., Any]]:
    known: dict[Any, Any] = dict(functorch.compile.default_decompositions)
    known |= torch.export.default_decompositions().items()
    theirs = {op: f for op, f in known.items() if op.overloadpacket.__name__ in FROM_TORCH}
    return theirs | {op: in_loops(formula) for op, formula in OWN.items()}


# What the full compiler does differently
#
# - compiler/rewrite/decompose/decompositions.py: a table of some 300 operators, most from torch;
#   own_definitions.py has more formulas than this file, chosen by accuracy.
# - compiler/rewrite/aten/identities.py: simplifies the graph afterwards (`x * 1`, `x.T.T`, ...).
# - compiler/rewrite/passes.py: matches attention, and merges matrix products with equal operands.
