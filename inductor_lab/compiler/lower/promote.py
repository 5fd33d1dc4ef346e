"""The dtype in which an operation computes, by PyTorch's own promotion rules.

Inductor: `get_promoted_dtype` in `lowering.py`; both call `torch._prims_common.elementwise_dtypes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.ir.index import Index, is_int
from inductor_lab.compiler.ir.rules import HALF
from inductor_lab.compiler.lower.builder import Builder
from inductor_lab.compiler.lower.tensor import TensorValue
from inductor_lab.compiler.torch_door.torch_api import PROMOTION as PROMOTION
from inductor_lab.compiler.torch_door.torch_api import OpOverload, elementwise_dtypes

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
    """The first `count` arguments of the current node, without None: fake tensors and numbers."""
    args = (*build.node.args, *build.node.kwargs.values())[:count]
    found = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in args]
    return [a for a in found if a is not None]


EXACT_NUMBERS = frozenset({"mul", "div", "true_divide", "floor_divide"})
"""Operators for which eager mode does not round a second operand that is a number to float16 or
bfloat16."""

EXACT_ON_GPU = frozenset({"add", "sub", "rsub"})


def as_eager(build: Builder, number: Any) -> Any:
    """A number, rounded to float16 or bfloat16 if eager's operator rounds it.

    So `x == 0.3` is true where x is 0.3 as a float16.
    """
    return _rounded(number, _converts_to(build, number, 1))


def _converts_to(build: Builder, given: Any, place: int) -> torch.dtype | None:
    """The 16-bit dtype to which eager's operator converts an operand before it computes in a wider
    dtype, if this can round the operand; otherwise None."""
    if not isinstance(given, TensorValue | float) or build.result.dtype.itemsize > 2:
        return None
    if isinstance(given, TensorValue) and (given.dtype in HALF or given.dtype.itemsize == 1):
        return None
    target = build.node.target
    assert isinstance(target, OpOverload), f"{target} is not an ATen operator"
    name = target.overloadpacket.__name__
    common = elementwise_dtypes(*given_operands(build, 2), type_promotion_kind=KEEP)[1]
    single = isinstance(given, float) or all(is_int(size, 1) for size in given.shape)
    exact = single and place == 1 and name in EXACT_NUMBERS
    on_gpu = build.result.device != "cpu"
    exact |= isinstance(given, float) and on_gpu and name in EXACT_ON_GPU
    return common if common in HALF and not exact else None


def operand_as_eager(
    build: Builder, given: Any, at: Sequence[Index], dtype: torch.dtype, place: int
) -> Expr:
    """`operand`, rounded if eager's operator converts it first: a number, an integer, or a 0-dim
    float32 tensor that promotion converts to 16 bits."""
    narrow = _converts_to(build, given, place)
    if narrow is not None and isinstance(given, TensorValue):
        return build.convert(operand(build, given, at, narrow), dtype)
    return operand(build, _rounded(given, narrow), at, dtype)


def _rounded(number: Any, narrow: torch.dtype | None) -> Any:
    return number if narrow is None or number == 0 else _rounded_to(number, narrow)


@cache
def _rounded_to(number: float, narrow: torch.dtype) -> Any:
    """A nonzero number, rounded to `narrow`.

    It is cached, because it takes a millisecond under a fake tensor mode.  Zero is excluded,
    because 0.0 and -0.0 would be one key of the cache.
    """
    return torch.tensor(number, dtype=narrow).item()


def operand(build: Builder, given: Any, at: Sequence[Index], dtype: torch.dtype) -> Expr:
    """An element of a tensor, or a number, in `dtype`."""
    if isinstance(given, TensorValue):
        return build.convert(build.load(given, at), dtype)
    return build.const(given, dtype)
