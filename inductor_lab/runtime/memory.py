"""What a host program does with tensors, apart from calling kernels."""

from __future__ import annotations

import torch

from inductor_lab.torch_api import empty_strided_cpu, empty_strided_cuda, reinterpret

__all__ = ["empty_strided_cpu", "empty_strided_cuda", "laid_out", "reinterpret", "view_of"]


def laid_out(tensor: torch.Tensor, stride: tuple[int, ...]) -> torch.Tensor:
    """The tensor itself if it has the strides that were planned for it, otherwise a copy that does.

    A library may choose another layout than its meta function promised; kernels rely on the
    promise.  The stride of a dimension of length 1 means nothing, and neither does any stride of
    an empty tensor.
    """
    if tensor.stride() == stride or tensor.numel() == 0:
        return tensor
    pairs = zip(tensor.shape, tensor.stride(), stride, strict=True)
    if all(size == 1 or actual == planned for size, actual, planned in pairs):
        return reinterpret(tensor, tensor.shape, stride)
    new = torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype, device=tensor.device)
    return new.copy_(tensor)


def view_of(
    tensor: torch.Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int = 0
) -> torch.Tensor:
    """As `reinterpret`, but to autograd too it is a view."""
    return tensor.as_strided(size, stride, tensor.storage_offset() + offset)
