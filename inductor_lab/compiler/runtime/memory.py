"""What a host program does with tensors and numbers, apart from calling kernels."""

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
    """The value, for a kernel, which would see its lowest 64 bits.  Raises IntegerTooLarge."""
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
    """What `op` returned, with the strides that were planned for it: a copy if it has others.

    Raises BrokenPromise, with the user's lines of its FX nodes, unless it is a tensor of the size,
    dtype and device that its meta function promised: kernels would read memory that is not there.
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
    """The tensor itself if it has the strides that were planned for it, otherwise a copy that does.

    A library may choose another layout than its meta function promised; kernels rely on the
    promise.  The stride of a dimension of length 1 means nothing, and neither does any stride of
    an empty tensor.  Some libraries return None, or nothing of the promised sizes, in place of
    what nobody is going to need; that stays as it is, and no kernel reads it.
    """
    if tensor is None or tensor.stride() == stride:
        return tensor
    if tensor.numel() == 0 or tensor.ndim != len(stride):
        return tensor
    pairs = zip(tensor.shape, tensor.stride(), stride, strict=True)
    if all(length == 1 or actual == planned for length, actual, planned in pairs):
        return reinterpret(tensor, tensor.shape, stride)
    new = torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype, device=tensor.device)
    return new.copy_(tensor)


def _kind(dtype: torch.dtype, size: tuple[int, ...], device: torch.device) -> str:
    return f"{str(dtype).removeprefix('torch.')}{list(size)} on {device}"


def view_of(
    tensor: torch.Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int = 0
) -> torch.Tensor:
    """As `reinterpret`, but to autograd too it is a view."""
    return tensor.as_strided(size, stride, tensor.storage_offset() + offset)
