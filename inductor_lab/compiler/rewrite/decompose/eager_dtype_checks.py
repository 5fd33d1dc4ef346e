"""Dtypes and numbers that eager's kernels refuse: ATen is called, and says so as in eager mode.

    frac(x: i64)   →   called as it is; PrimTorch has x - trunc(x) for it, which has an answer

What ATen can do after all, on another device say, it does.

Inductor has no counterpart: it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isfinite
from typing import Any

import torch

FLOATS = frozenset(
    """
    frac logaddexp2 round.decimals _softmax _log_softmax silu mish glu elu celu hardswish
    hardsigmoid softplus log_sigmoid_forward _prelu_kernel huber_loss smooth_l1_loss mse_loss
    soft_margin_loss binary_cross_entropy nll_loss_forward nll_loss2d_forward native_batch_norm
    _native_batch_norm_legit_functional _native_batch_norm_legit_no_training native_group_norm
    max_unpool2d max_unpool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d
    adaptive_max_pool3d max_pool2d_with_indices_backward bernoulli.default normal
    """.split()
)
"""Operators whose first tensor must be of floating point numbers."""

INEXACT = frozenset("lerp logaddexp logcumsumexp addcdiv var std im2col".split())
"""The same, or of complex numbers."""

NUMBERS = frozenset(
    """
    abs ceil floor trunc round relu threshold div.Tensor_mode addcmul dot vdot mv bmm trace argmax
    argmin bucketize searchsorted reflection_pad1d reflection_pad2d reflection_pad3d avg_pool2d
    avg_pool3d max_pool2d_with_indices max_pool3d_with_indices
    """.split()
)
"""Operators whose tensors must not all be of bools."""

OPERANDS = frozenset({"clamp", "fmod", "remainder", "pow"})
"""The same, but with a number beside them the result is one: `mask ** 2`."""

NO_HALVES = frozenset({"_cdist_forward", "avg_pool3d", "special_log_ndtr"})
"""Operators that take no float16 on a CPU."""

ALIKE = frozenset(
    """
    linalg_cross heaviside mv bmm dot vdot _cdist_forward binary_cross_entropy index_put
    binary_cross_entropy_with_logits
    """.split()
)
"""Operators whose tensors must be of one dtype."""

INDEXED = frozenset(
    "index_add index_copy index_reduce put nll_loss_forward nll_loss2d_forward".split()
)
"""The same, but for the second one, which holds indices."""

NORMS = frozenset({"native_layer_norm", *(name for name in FLOATS if "_norm" in name)})
"""The same, but float16 and bfloat16 may have parameters of float32."""


FILLED = frozenset({"masked_fill", "index_fill.int_Tensor"})
"""Operators that put the number in a tensor into another, whose dtype it must fit."""


def is_refused(operator: Any, given: Sequence[Any]) -> bool:
    """Does eager's kernel, on some device at least, refuse the dtypes of these arguments?"""
    name = operator._schema.name.removeprefix("aten::")
    names = {name, f"{name}.{operator._overloadname}"}
    dtypes = [item.dtype for item in given if isinstance(item, torch.Tensor)]
    if names & {"sub", "rsub"}:
        return torch.bool in dtypes or bool in map(type, given[:2])
    if not dtypes:
        return False
    first, others = dtypes[0], {*dtypes[2 if names & INDEXED else 1 :]}
    numbers = not {int, float, complex}.isdisjoint(map(type, given))
    floats = names & FLOATS or (names & INEXACT and not first.is_complex)
    no_bools = names & NUMBERS or (names & OPERANDS and not numbers)
    one_dtype = names & (ALIKE | INDEXED) or (names & NORMS and first.itemsize > 2)
    return bool(
        (floats and not first.is_floating_point)
        or (no_bools and {first, *others} == {torch.bool})
        or (names & NO_HALVES and first is torch.float16)
        or (one_dtype and others - {first})
        or (names & FILLED and torch.promote_types(first, dtypes[-1]) is not first)
    )


def left_whole_if_refused(table: Mapping[Any, Callable[..., Any]]) -> dict[Any, Any]:
    """Definitions that leave an operator in the graph where eager refuses its arguments."""

    def definition(operator: Any, made: Callable[..., Any], *given: Any, **more: Any) -> Any:
        return NotImplemented if is_refused(operator, given) else made(*given, **more)

    return {operator: partial(definition, operator, made) for operator, made in table.items()}


def range_of(dtype: torch.dtype) -> tuple[float, float]:
    """The least and the greatest number of a dtype; an int below zero wraps around in an unsigned
    one."""
    highest = (torch.finfo if dtype.is_floating_point else torch.iinfo)(dtype).max
    return -highest if dtype.is_floating_point else torch.iinfo(dtype).min or -highest, highest


def fits(number: float, dtype: torch.dtype) -> bool:
    """Does eager convert a known number to a dtype?  To floats infinities and NaN, too."""
    if dtype is torch.bool or dtype.is_complex:
        return True
    lowest, highest = range_of(dtype)
    if isinstance(number, float) and not dtype.is_signed:
        lowest = 0
    return lowest <= number <= highest or (dtype.is_floating_point and not isfinite(number))
