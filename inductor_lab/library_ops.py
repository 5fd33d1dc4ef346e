"""Operators beside ATen's: what oneDNN and MKL offer through torch, and two of our own."""

from __future__ import annotations

from typing import Any

import torch

from inductor_lab.ir.positions import OWN


def _perhaps(namespace: Any, name: str) -> Any:
    """An operator that not every build of torch has; None where it is missing."""
    return getattr(namespace, name, None)


onednn_linear = _perhaps(torch.ops.mkldnn, "_linear_pointwise")
"""`onednn_linear(x, weight, bias, activation, scalars, algorithm)`; the weight may be packed."""

pack_for_onednn = _perhaps(torch.ops.mkldnn, "_reorder_linear_weight")
"""`pack_for_onednn(weight, rows)`: in oneDNN's order, for that many rows of the other matrix."""

mkl_linear = _perhaps(torch.ops.mkl, "_mkl_linear")
"""`mkl_linear(x, packed, weight, bias, rows)`, float32 only."""

pack_for_mkl = _perhaps(torch.ops.mkl, "_mkl_reorder_linear_weight")
"""`pack_for_mkl(weight, rows)`: the same for MKL."""

onednn_convolution = _perhaps(torch.ops.mkldnn, "_convolution_pointwise")
"""`onednn_convolution(x, weight, bias, padding, stride, dilation, groups, activation, ...)`."""

pack_for_convolution = _perhaps(torch.ops.mkldnn, "_reorder_convolution_weight")
"""`pack_for_convolution(weight, padding, stride, dilation, groups, shape of x)`."""

# operators of ours that stand in graphs; `runtime/` says what they do
OWN.define(
    "linear(Tensor x, Tensor weight, Tensor? bias, bool transposed, str library, str otherwise)"
    " -> Tensor"
)
OWN.define(
    "convolution(Tensor x, Tensor weight, Tensor? scale, Tensor? bias, int[] stride,"
    " int[] padding, int[] dilation, int groups) -> Tensor"
)
OWN_CONVOLUTION = torch.ops.inductor_lab.convolution.default


def _convolution_facts(x: Any, weight: Any, scale: Any, bias: Any, *geometry: Any) -> torch.Tensor:
    stride, padding, dilation, groups = geometry
    result = torch.convolution(x, weight, bias, stride, padding, dilation, False, [0, 0], groups)
    return torch.empty_like(result, memory_format=torch.channels_last)


OWN.impl("convolution", _convolution_facts, "Meta")


def onednn_knows(dtype: torch.dtype) -> bool:
    """Does oneDNN multiply in this precision on this CPU?"""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    half = {
        torch.bfloat16: torch.ops.mkldnn._is_mkldnn_bf16_supported,
        torch.float16: torch.ops.mkldnn._is_mkldnn_fp16_supported,
    }
    return dtype is torch.float32 or (dtype in half and half[dtype]())


def mkl_knows(dtype: torch.dtype) -> bool:
    """Does this torch have MKL, and does that multiply by packed weights in this precision?"""
    has_mkl = mkl_linear is not None and torch.backends.mkl.is_available()
    return dtype is torch.float32 and has_mkl
