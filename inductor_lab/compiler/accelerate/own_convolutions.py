"""Our own library for convolutions with a packed weight (`codegen/cpp/headers/lab_convolution.h`).

oneDNN's convolutions wait for weights that are not in the cache, and give each thread an equal
part of the work.  Ours fetch the next part of the weight while they compute, and their threads take
small parts, as our products do (`own_products.py`).  `convolution_libraries.py` chooses one of the
two for each size.

Inductor: `select_algorithm.py` and `kernel/conv.py` measure templates, on GPUs only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import torch

from inductor_lab.compiler.accelerate import own_products
from inductor_lab.compiler.accelerate.packing import (
    CONVOLUTION_LIBRARIES,
    ConvolutionLibrary,
    Window,
    weights_among,
)
from inductor_lab.compiler.accelerate.pool import POOL
from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.runtime.toolchain.shared_library import library_of

NAME = own_products.NAME
_TEXT = """
extern "C" LAB_EXPORT int convolution(
    const float* x, const float* packed, const float* bias, float* out,
    int64_t images, int64_t height, int64_t width, int64_t channels, int64_t rows, int64_t columns,
    int64_t kernels, int64_t window_rows, int64_t window_columns, int64_t down, int64_t across,
    int64_t above, int64_t left, int64_t threads) {
    const lab_convolution_sizes sizes = {
        images, height, width, channels, rows, columns, kernels, window_rows, window_columns, down,
        across, above, left};
    lab_packed_convolution(x, packed, bias, out, sizes, threads);
    return 0;
}
"""


@cache
def function() -> Any:
    """The compiled function; None without a compiler."""
    try:
        found = library_of(_TEXT, "convolution").handle.convolution
    except (LabError, OSError):
        return None
    found.argtypes = (*[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 14)
    found.restype = ctypes.c_int
    return found


def ahead(inputs: Sequence[Any], options: Options) -> Iterable[tuple[Any, tuple[Any, ...]]]:
    """What convolutions with the weights of a graph need."""
    has_images = any(weight.dim() == 4 for weight in weights_among(inputs, options))
    return [(function, ())] if has_images else []


def knows(window: Window) -> bool:
    """Does it compute float32 convolutions with this window on this machine?"""
    if window.groups != 1 or set(window.dilation) != {1}:
        return False
    return own_products.knows(torch.float32) and function() is not None


def pack(weight: torch.Tensor, window: Window, shape: torch.Size) -> torch.Tensor:
    """The packed form of a weight [kernel][channel][row][column]; the rest does not matter."""
    matrix = weight.permute(0, 2, 3, 1).reshape(len(weight), -1)
    return own_products.pack(matrix, 0)


def sizes_of(
    images: tuple[int, ...], weight: tuple[int, ...], window: Window
) -> tuple[int, ...]:
    """The numbers of `lab_convolution_sizes`."""
    count, channels, height, width = images
    kernels, _, *extents = weight
    rows, columns = (
        (size + 2 * margin - extent) // step + 1
        for size, margin, extent, step in zip(
            (height, width), window.padding, extents, window.stride, strict=True
        )
    )
    return (count, height, width, channels, rows, columns, kernels, *extents, *window.stride,
            *window.padding)  # fmt: skip


def convolve(
    x: torch.Tensor, packed: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None,
    window: Window,
) -> torch.Tensor:  # fmt: skip
    """Return the convolution of images, channels-last; of `weight` only the shape is used."""
    x = x.contiguous(memory_format=torch.channels_last)
    sizes = sizes_of(x.shape, weight.shape, window)
    images, _, _, _, rows, columns, kernels, *_ = sizes
    strides = rows * columns * kernels, 1, columns * kernels, kernels
    out = POOL.empty_result((images, kernels, rows, columns), strides, x.dtype)
    begin = None if bias is None else bias.contiguous().data_ptr()
    function()(x.data_ptr(), packed.data_ptr(), begin, out.data_ptr(), *sizes,
               torch.get_num_threads())  # fmt: skip
    return out


CONVOLUTION_LIBRARIES[NAME] = ConvolutionLibrary(pack, convolve, knows, depends=False)
