"""What a host program does with tensors, apart from calling kernels."""

from __future__ import annotations

from typing import Any

import torch

from inductor_lab.errors import BrokenPromise
from inductor_lab.torch_api import empty_strided_cpu, empty_strided_cuda, reinterpret

__all__ = [
    "empty_strided_cpu",
    "empty_strided_cuda",
    "laid_out",
    "reinterpret",
    "restrided",
    "view_of",
]


def laid_out(
    tensor: torch.Tensor | None,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: torch.dtype,
    op: Any,
) -> torch.Tensor | None:
    """What `op` returned, with the strides that were planned for it: a copy if it has others.

    Raises BrokenPromise where sizes or dtype are not what its meta function promised: kernels would
    read memory that is not there.
    """
    if tensor is None:
        return tensor
    if tensor.shape != size or tensor.dtype is not dtype:
        raise BrokenPromise(str(op), _kind(dtype, size), _kind(tensor.dtype, tuple(tensor.shape)))
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


def _kind(dtype: torch.dtype, size: tuple[int, ...]) -> str:
    return f"{str(dtype).removeprefix('torch.')}{list(size)}"


def view_of(
    tensor: torch.Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int = 0
) -> torch.Tensor:
    """As `reinterpret`, but to autograd too it is a view."""
    return tensor.as_strided(size, stride, tensor.storage_offset() + offset)
