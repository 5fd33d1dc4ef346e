"""Which dtype an operation computes in, by PyTorch's own promotion rules.

Inductor: `get_promoted_dtype` in `lowering.py`; both ask `torch._prims_common.elementwise_dtypes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from inductor_lab.ir.expr import Expr
from inductor_lab.ir.index import Index
from inductor_lab.lower.builder import Builder
from inductor_lab.lower.tensor import TensorValue
from inductor_lab.torch_api import PROMOTION as PROMOTION
from inductor_lab.torch_api import OpOverload, elementwise_dtypes

KEEP = PROMOTION.DEFAULT
"""The common dtype of the operands: add, mul, maximum."""

TO_FLOAT = PROMOTION.INT_TO_FLOAT
"""Integers and bool become the default float dtype: sin, truediv."""

TO_BOOL = PROMOTION.ALWAYS_BOOL
"""Computed in the common dtype, the result is bool: eq, lt."""


def computation_dtype(operands: Sequence[Any], kind: Any) -> torch.dtype:
    """The dtype to compute in, given fake tensors and numbers; float32 for float16 and bfloat16."""
    return elementwise_dtypes(*operands, type_promotion_kind=kind)[0]


def given_operands(build: Builder, count: int) -> list[Any]:
    """The first `count` arguments of the node at hand: fake tensors and numbers, None left out."""
    args = (*build.node.args, *build.node.kwargs.values())[:count]
    found = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in args]
    return [a for a in found if a is not None]


EXACT_NUMBERS = frozenset({"mul", "div", "true_divide", "floor_divide"})
"""Operators of which eager takes a number as it is, even among float16 and bfloat16."""

EXACT_ON_GPU = frozenset({"add", "sub", "rsub"})


def as_eager(build: Builder, number: Any) -> Any:
    """A number as eager's operator at hand takes it among float16 or bfloat16: rounded to that.

    So `x == 0.3` holds where x is 0.3 as a float16.
    """
    if not isinstance(number, float):
        return number
    target = build.node.target
    assert isinstance(target, OpOverload), f"{target} is no operator of ATen"
    name = target.overloadpacket.__name__
    on_gpu = build.result.device != "cpu"
    common = elementwise_dtypes(*given_operands(build, 2), type_promotion_kind=KEEP)[1]
    if common.itemsize != 2 or name in EXACT_NUMBERS or (on_gpu and name in EXACT_ON_GPU):
        return number
    return torch.tensor(number, dtype=common).item()


def operand(build: Builder, given: Any, at: Sequence[Index], dtype: torch.dtype) -> Expr:
    """An element of a tensor, or a number, in `dtype`."""
    if isinstance(given, TensorValue):
        return build.convert(build.load(given, at), dtype)
    return build.const(given, dtype)
