"""Kernels written by hand for some workloads: those of Liger, if liger-kernel is installed.

Liger's cross entropy is not here: it writes the gradient over its argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch


def softmax() -> Callable[..., Any]:
    from liger_kernel.ops.softmax import LigerSoftmaxFunction

    return LigerSoftmaxFunction.apply


def rms_norm() -> Callable[..., Any]:
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    def function(x: torch.Tensor, w: torch.Tensor) -> Any:
        return LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False)

    return function


def layer_norm() -> Callable[..., Any]:
    from liger_kernel.ops.layer_norm import LigerLayerNormFunction

    def function(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> Any:
        return LigerLayerNormFunction.apply(x, w, b, 1e-5)

    return function


def swiglu() -> Callable[..., Any]:
    from liger_kernel.ops.swiglu import LigerSiLUMulFunction

    return LigerSiLUMulFunction.apply


BY_HAND: Mapping[str, Callable[[], Callable[..., Any]]] = {
    "softmax (16384, 4096)": softmax,
    "softmax (1024, 131072)": softmax,
    "RMS norm bf16 (16384, 4096)": rms_norm,
    "layer norm fwd+bwd (8192, 2048)": layer_norm,
    "SwiGLU bf16 (16384, 8192)": swiglu,
}
"""Name of a workload → a function that imports the kernel and returns it."""
