"""Lets convolutions of our own library be part of runs (`step_runs.py`)."""

from __future__ import annotations

from functools import partial

import torch

from inductor_lab.compiler.accelerate import own_convolutions
from inductor_lab.compiler.accelerate.convolution_libraries import CONVOLUTION
from inductor_lab.compiler.accelerate.native_steps import (
    NATIVE,
    THREADS,
    NativeStep,
    Prepared,
    is_fixed,
    raise_failure,
)
from inductor_lab.compiler.accelerate.packing import Window, laid_out, packed_for_convolution
from inductor_lab.compiler.ir.program import BufferView, ExternCall, Layout
from inductor_lab.compiler.schedule.schedule import Schedule


def native_convolution(call: ExternCall, schedule: Schedule) -> NativeStep | None:
    """The call as one of a compiled function; None if another library computes it."""
    x, weight, scale, bias, *moves = call.args
    (out,) = call.outputs
    if moves.pop() != own_convolutions.NAME or out is None:
        return None
    assert isinstance(x, BufferView) and isinstance(weight, BufferView), "tensors"
    made = schedule.program.buffers[out].layout
    dense = bias is None or (isinstance(bias, BufferView) and bias.layout.stride == (1,))
    if not (dense and _is_channels_last(x.layout) and _is_channels_last(made)):
        return None
    window, shape = Window(*moves), x.layout.size
    sizes = own_convolutions.sizes_of(shape, weight.layout.size, window)
    packed = Prepared(weight.buffer, scale, partial(_prepare, window, torch.Size(shape)))
    arguments = (x, packed, 0 if bias is None else bias, BufferView(out, made), *sizes, THREADS)
    function = own_convolutions.function()
    return NativeStep(CONVOLUTION, lambda _: function, arguments, (out,), raise_failure)


def _is_channels_last(layout: Layout) -> bool:
    """Are the sizes fixed, and the channels of each pixel next to each other?"""
    _, channels, height, width = layout.size
    stride = height * width * channels, 1, width * channels, channels
    return is_fixed(layout) and layout.stride == stride


def _prepare(
    window: Window, shape: torch.Size, weight: torch.Tensor, scale: torch.Tensor | None
) -> torch.Tensor:
    """The packed weight; packed for this call alone if it changes too often to be kept."""
    packed = packed_for_convolution(weight, scale, window, shape, own_convolutions.NAME)
    if packed is None:
        packed = own_convolutions.pack(laid_out(weight.detach(), scale), window, shape)
    return packed


NATIVE[CONVOLUTION] = native_convolution
