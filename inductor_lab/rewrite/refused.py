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
    frac logaddexp logaddexp2 lerp round.decimals _softmax _log_softmax silu mish glu elu celu
    hardswish hardsigmoid softplus log_sigmoid_forward _prelu_kernel huber_loss smooth_l1_loss
    soft_margin_loss binary_cross_entropy nll_loss_forward nll_loss2d_forward multi_margin_loss
    multilabel_margin_loss_forward native_batch_norm _native_batch_norm_legit_functional
    _native_batch_norm_legit_no_training var std im2col max_unpool2d max_unpool3d addcdiv
    _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d
    """.split()
)
"""Operators whose first tensor must be of floating point numbers."""

NUMBERS = frozenset(
    """
    abs ceil floor trunc round relu threshold div.Tensor_mode addcmul dot vdot mv trace argmax
    argmin bucketize reflection_pad1d reflection_pad2d reflection_pad3d avg_pool2d avg_pool3d
    max_pool2d_with_indices max_pool3d_with_indices
    """.split()
)
"""Operators whose tensors must not all be of bools."""

OPERANDS = frozenset({"clamp", "fmod", "remainder", "pow"})
"""The same, but with a number beside them the result is one: `mask ** 2`."""


def is_refused(operator: Any, given: Sequence[Any]) -> bool:
    """Does eager's kernel, on some device at least, refuse the dtypes of these arguments?"""
    name = operator._schema.name.removeprefix("aten::")
    names = {name, f"{name}.{operator._overloadname}"}
    dtypes = [item.dtype for item in given if isinstance(item, torch.Tensor)]
    if names & {"sub", "rsub"}:
        return torch.bool in dtypes or bool in map(type, given[:2])
    exact = bool(dtypes) and not (dtypes[0].is_floating_point or dtypes[0].is_complex)
    bools = set(dtypes) == {torch.bool}
    numbers = not {int, float, complex}.isdisjoint(map(type, given))
    no_bools = names & NUMBERS or (names & OPERANDS and not numbers)
    return bool((names & FLOATS and exact) or (no_bools and bools))


def left_whole_if_refused(table: Mapping[Any, Callable[..., Any]]) -> dict[Any, Any]:
    """Definitions that leave an operator in the graph where eager refuses its arguments."""

    def definition(operator: Any, made: Callable[..., Any], *given: Any, **more: Any) -> Any:
        return NotImplemented if is_refused(operator, given) else made(*given, **more)

    return {operator: partial(definition, operator, made) for operator, made in table.items()}


def range_of(dtype: torch.dtype) -> tuple[float, float]:
    """The least and the greatest number of a dtype; below zero an unsigned one wraps around."""
    highest = (torch.finfo if dtype.is_floating_point else torch.iinfo)(dtype).max
    return -highest if dtype.is_floating_point else torch.iinfo(dtype).min or -highest, highest


def fits(number: float, dtype: torch.dtype) -> bool:
    """Does eager convert a known number to a dtype?  To floats infinities and NaN, too."""
    if dtype is torch.bool or dtype.is_complex:
        return True
    lowest, highest = range_of(dtype)
    return lowest <= number <= highest or (dtype.is_floating_point and not isfinite(number))
