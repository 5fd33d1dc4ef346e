"""The functions for tensors and numbers that host programs call."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch

from inductor_lab.compiler.base.errors import BrokenPromise, IntegerTooLarge
from inductor_lab.compiler.codegen.host.host_program import HELPERS
from inductor_lab.compiler.runtime.toolchain.shared_library import place_of
from inductor_lab.compiler.torch_door.torch_api import (
    empty_strided_cpu,
    empty_strided_cuda,
    reinterpret,
)

__all__ = [
    "empty_strided_cpu", "empty_strided_cuda", "int64", "laid_out", "reinterpret", "restrided",
    "view_of",
]  # fmt: skip
HELPERS.update(dict.fromkeys(__all__, __name__))
CPU = torch.device("cpu")


def int64(value: int) -> int:
    """Return the value if it fits in 64 bits, as kernels require.  Raises IntegerTooLarge."""
    if -(1 << 63) <= value < 1 << 63:
        return value
    raise IntegerTooLarge(value)


def laid_out(
    tensor: torch.Tensor | None,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: torch.dtype,
    op: Any,
    *nodes: str,
    device: torch.device = CPU,
    traces: Mapping[str, str] = MappingProxyType({}),
) -> torch.Tensor | None:
    """Return the result of `op` with the planned strides; a copy if it has other strides.

    Raises BrokenPromise, with the user's lines of its FX nodes, if it does not have the size, dtype
    and device of its meta function.  Kernels would otherwise read out of bounds.
    """
    if (
        tensor is None
        or tensor.shape != size
        or tensor.dtype is not dtype
        or tensor.device != device
    ):
        made = "None" if tensor is None else _kind(tensor.dtype, tensor.shape, tensor.device)
        where = place_of(frozenset(nodes), traces)
        raise BrokenPromise(str(op), _kind(dtype, size, device), made, where)
    return tensor if tensor.stride() == stride else restrided(tensor, stride)


def restrided(tensor: torch.Tensor | None, stride: tuple[int, ...]) -> torch.Tensor | None:
    """Return the tensor itself if it has the planned strides, otherwise a copy with them.

    A library can return another layout than its meta function, but kernels rely on the latter.
    The strides of dimensions of length 1 and of empty tensors have no meaning.  Some libraries
    return None, or a tensor of other sizes, for an unused result.  It is returned unchanged, and
    no kernel reads it.
    """
    if tensor is None or tensor.stride() == stride:
        return tensor
    if tensor.numel() == 0 or tensor.ndim != len(stride):
        return tensor
    pairs = zip(tensor.shape, tensor.stride(), stride, strict=True)
    if all(length == 1 or actual == planned for length, actual, planned in pairs):
        return reinterpret(tensor, tuple(tensor.shape), stride)
    new = torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype, device=tensor.device)
    return new.copy_(tensor)


def _kind(dtype: torch.dtype, size: tuple[int, ...], device: torch.device) -> str:
    return f"{str(dtype).removeprefix('torch.')}{list(size)} on {device}"


def view_of(
    tensor: torch.Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int = 0
) -> torch.Tensor:
    """Like `reinterpret`, but the result is a view for autograd too."""
    return tensor.as_strided(size, stride, tensor.storage_offset() + offset)
