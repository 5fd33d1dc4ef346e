"""The meaning of every operation of `ir/ops.py`: the torch function that computes it.

`OPERATIONS[name](dtype, *operands)`; `REDUCERS[kind](values)`, which reduces the last dimension;
and `scatter_into`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from inductor_lab.compiler.ir.ops import DIVIDING, OPS, REDUCTIONS, SCANS, SCATTERS, neutral

Operation = Callable[..., torch.Tensor]
"""Takes the dtype of the node and the operands; returns the result."""

_WORD = 0xFFFFFFFF


def _torch_function(function: Callable[..., torch.Tensor], **fixed: Any) -> Operation:
    """For torch functions whose result dtype is determined by the operands."""
    return lambda dtype, *operands: function(*operands, **fixed)


def _fma(dtype: torch.dtype, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Rounds once for float32 (the product of two float32 numbers is exact in float64)."""
    if dtype is torch.float32:
        return (a.double() * b.double() + c.double()).to(dtype)
    return a * b + c


def _convert(dtype: torch.dtype, a: torch.Tensor) -> torch.Tensor:
    """torch's conversion.  A float out of range of uint32 is converted through int64, because
    eager's vector loop and its scalar loop over the remaining elements give different results."""
    through = torch.int64 if dtype is torch.uint32 and a.is_floating_point() else a.dtype
    return a.to(through).to(dtype)


def philox(seed: torch.Tensor, offset: torch.Tensor) -> list[torch.Tensor]:
    """Four words of Philox4x32-10, each int64 in [0, 2**32).

    The counter is the 64-bit offset, the key the 64-bit seed, low words first
    (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011).
    """
    key = [seed & _WORD, (seed >> 32) & _WORD]
    zero = torch.zeros_like(offset)
    counter = [offset & _WORD, (offset >> 32) & _WORD, zero, zero]
    for _ in range(10):
        low = counter[0] * 0xD2511F53
        high = counter[2] * 0xCD9E8D57
        counter = [
            ((high >> 32) & _WORD) ^ counter[1] ^ key[0],
            high & _WORD,
            ((low >> 32) & _WORD) ^ counter[3] ^ key[1],
            low & _WORD,
        ]
        key = [(key[0] + 0x9E3779B9) & _WORD, (key[1] + 0xBB67AE85) & _WORD]
    return counter


def _uniform(word: torch.Tensor) -> torch.Tensor:
    """A word as float32 in [0, 1): negative words are mapped to nonnegative ones, then scaled by
    almost 2**-31."""
    signed = torch.where(word >= 1 << 31, word - (1 << 32), word)
    folded = torch.where(signed < 0, -signed - 1, signed)
    return folded.to(torch.float32) * torch.tensor(4.6566127342e-10, dtype=torch.float32)


def _philox_normal(dtype: torch.dtype, seed: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    first, second = (_uniform(word) for word in philox(seed, offset)[:2])
    radius = torch.sqrt(-2.0 * torch.log(first.clamp(min=1.0e-7)))
    return radius * torch.cos(2 * math.pi * second)


_OWN: Mapping[str, Operation] = {
    "convert": _convert,
    "bitcast": lambda dtype, a: a.view(dtype),
    "shift_left": _torch_function(torch.bitwise_left_shift),
    "shift_right": _torch_function(torch.bitwise_right_shift),
    "truediv": _torch_function(torch.true_divide),
    "floordiv": _torch_function(torch.div, rounding_mode="floor"),
    "truncdiv": _torch_function(torch.div, rounding_mode="trunc"),
    "fma": _fma,
    "philox_uniform": lambda dtype, seed, offset: _uniform(philox(seed, offset)[0]),
    "philox_normal": _philox_normal,
    "philox_bits": lambda dtype, seed, offset: philox(seed, offset)[0],
}
"""Operations that torch has under another name, or not at all."""

OPERATIONS: Mapping[str, Operation] = {
    name: _OWN.get(name) or _torch_function(getattr(torch, name)) for name in OPS
}


def nonzero_divisor(name: str, operands: list[torch.Tensor]) -> list[torch.Tensor]:
    """Replace integer divisors of 0 by 1, at places where a mask hides the result.

    torch raises ZeroDivisionError for any zero divisor, also where the mask is false.
    """
    if name not in DIVIDING or operands[1].is_floating_point():
        return operands
    dividend, divisor = operands
    return [dividend, torch.where(divisor == 0, torch.ones_like(divisor), divisor)]


def _extreme(kind: str) -> Callable[[torch.Tensor], torch.Tensor]:
    def reducer(values: torch.Tensor) -> torch.Tensor:
        if values.shape[-1] == 0:
            return values.new_full(values.shape[:-1], neutral(kind, values.dtype))
        return values.amax(-1) if kind == "max" else values.amin(-1)

    return reducer


def _position(find: Callable[..., torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    def reducer(values: torch.Tensor) -> torch.Tensor:
        if values.shape[-1] == 0:
            return values.new_zeros(values.shape[:-1], dtype=torch.int64)
        return find(values.to(torch.uint8) if values.dtype is torch.bool else values, -1)

    return reducer


REDUCERS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda values: values.sum(-1, dtype=values.dtype),
    "prod": lambda values: values.prod(-1, dtype=values.dtype),
    "max": _extreme("max"),
    "min": _extreme("min"),
    "any": lambda values: values.any(-1),
    "all": lambda values: values.all(-1),
    "argmax": _position(torch.argmax),
    "argmin": _position(torch.argmin),
}

SCANNERS: Mapping[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "sum": lambda values, dim: values.cumsum(dim, dtype=values.dtype),
    "prod": lambda values, dim: values.cumprod(dim, dtype=values.dtype),
    "max": lambda values, dim: values.cummax(dim).values,
    "min": lambda values, dim: values.cummin(dim).values,
    "any": lambda values, dim: values.cummax(dim).values,
    "all": lambda values, dim: values.cummin(dim).values,
    "logsumexp": lambda values, dim: values.logcumsumexp(dim),
    "argmax_last": lambda values, dim: values.cummax(dim).indices,
    "argmin_last": lambda values, dim: values.cummin(dim).indices,
}

_COMBINED = {"add": "sum", "mul": "prod", "maximum": "amax", "minimum": "amin"}
"""Kind of scatter → torch's name for it."""


def scatter_into(
    target: torch.Tensor, places: torch.Tensor, values: torch.Tensor, kind: str
) -> None:
    """`target[places] kind= values`, element by element; all tensors are one-dimensional."""
    if target.dtype is torch.bool:
        wide = target.to(torch.uint8)
        combine = {"add": "maximum", "mul": "minimum"}.get(kind, kind)
        scatter_into(wide, places, values.to(torch.uint8), combine)
        target.copy_(wide)
    elif kind == "store":
        order = torch.arange(len(places), device=places.device)
        last = torch.full_like(target, -1, dtype=torch.int64)
        last.scatter_reduce_(0, places, order, "amax")
        target.copy_(torch.where(last < 0, target, values[last.clamp(min=0)]))
    else:
        target.scatter_reduce_(0, places, values, _COMBINED[kind])


assert _OWN.keys() <= OPS.keys(), "a meaning without an operation"
assert {*REDUCERS, "bisect"} == REDUCTIONS.keys(), "every kind of reduction needs a meaning"
assert SCANNERS.keys() == SCANS.keys(), "every kind of scan needs a meaning"
assert {"store", *_COMBINED} == SCATTERS, "every kind of scatter needs a meaning"
