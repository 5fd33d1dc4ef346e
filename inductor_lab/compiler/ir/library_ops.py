"""Operators outside ATen: those of oneDNN and MKL in torch, and two of our own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from inductor_lab.compiler.ir.slice_ops import OWN
from inductor_lab.compiler.torch_door.torch_names import missing, optional

onednn_linear = optional("torch.ops.mkldnn._linear_pointwise")
"""`onednn_linear(x, weight, bias, activation, scalars, algorithm)`; the weight may be packed."""

pack_for_onednn = optional("torch.ops.mkldnn._reorder_linear_weight")
"""`pack_for_onednn(weight, rows)`: the weight in oneDNN's order, for a left matrix of `rows`
rows."""

mkl_linear = optional("torch.ops.mkl._mkl_linear")
"""`mkl_linear(x, packed, weight, bias, rows)`, float32 only."""

pack_for_mkl = optional("torch.ops.mkl._mkl_reorder_linear_weight")
"""`pack_for_mkl(weight, rows)`: the same for MKL."""

packed_address = optional("torch.ops.mkldnn.data_ptr")
"""`packed_address(packed)`: the address of a weight that oneDNN or MKL packed."""

packed_bytes = optional("torch.ops.mkldnn._nbytes")
"""`packed_bytes(packed)`: the number of its bytes."""

onednn_convolution = optional("torch.ops.mkldnn._convolution_pointwise")
"""`onednn_convolution(x, weight, bias, padding, stride, dilation, groups, activation, ...)`."""

pack_for_convolution = optional("torch.ops.mkldnn._reorder_convolution_weight")
"""`pack_for_convolution(weight, padding, stride, dilation, groups, shape of x)`."""

# our own operators in graphs; `runtime/` implements them
OWN.define(
    "linear(Tensor x, Tensor weight, Tensor? bias, bool transposed, str library, str otherwise)"
    " -> Tensor"
)
OWN.define(
    "convolution(Tensor x, Tensor weight, Tensor? scale, Tensor? bias, int[] stride,"
    " int[] padding, int[] dilation, int groups, str library='oneDNN') -> Tensor"
)
OWN_CONVOLUTION = torch.ops.inductor_lab.convolution.default


def _convolution_facts(x: Any, weight: Any, scale: Any, bias: Any, *geometry: Any) -> torch.Tensor:
    stride, padding, dilation, groups, *_ = geometry
    result = torch.convolution(x, weight, bias, stride, padding, dilation, False, [0, 0], groups)
    return torch.empty_like(result, memory_format=torch.channels_last)


OWN.impl("convolution", _convolution_facts, "Meta")


HALVES = {
    torch.bfloat16: optional("torch.ops.mkldnn._is_mkldnn_bf16_supported"),
    torch.float16: optional("torch.ops.mkldnn._is_mkldnn_fp16_supported"),
}
"""For each half-precision dtype, the function that says whether oneDNN supports it on this CPU."""


def onednn_supports(dtype: torch.dtype) -> bool:
    """Does oneDNN multiply matrices of this dtype on this CPU?"""
    is_there = torch.backends.mkldnn.is_available()
    if not is_there or missing("oneDNN's products"):
        return False
    supports = HALVES.get(dtype)
    return dtype is torch.float32 or (supports is not None and supports())


def packs_convolutions() -> bool:
    """Does this version of torch have oneDNN's convolution with packed weights?"""
    return onednn_supports(torch.float32) and not missing("packed convolutions")


def mkl_supports(dtype: torch.dtype) -> bool:
    """Does this build of torch have MKL, and does MKL multiply by packed weights of this dtype?"""
    built: Callable[[], bool] = torch.backends.mkl.is_available
    return dtype is torch.float32 and not missing("MKL's packed products") and built()
