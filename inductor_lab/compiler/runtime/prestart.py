"""Starts work before a graph is captured or lowered."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable
from typing import Any

import torch

from inductor_lab.compiler.base.errors import NothingToChange
from inductor_lab.compiler.runtime.rank_failures import register_rank
from inductor_lab.compiler.runtime.toolchain.background_compile import BackgroundValue


def before_capture(_: object) -> None:
    """Start Triton at the beginning of a capture if the process uses a GPU."""
    if torch.cuda.is_initialized():
        start_triton()


def before_lowering(mode: str, inputs: Iterable[Any]) -> None:
    """Start Triton if an input is on a GPU; otherwise warn if the mode has no effect."""
    register_rank()
    if any(isinstance(given, torch.Tensor) and given.is_cuda for given in inputs):
        start_triton()
    elif mode != "default":
        warn_of_mode(mode)


@functools.cache
def warn_of_mode(mode: str) -> None:
    """Warn of a mode that has no effect, once per process."""
    warnings.warn(
        f'mode="{mode}" has no effect on a CPU: there, matrix products are always tuned, and calls'
        " have no launch overhead",
        NothingToChange,
        stacklevel=4,
    )


@functools.cache
def start_triton() -> BackgroundValue[Any] | None:
    """Start the process that compiles Triton kernels, in a thread.  It is ready after a second.

    This process compiles nothing itself at this point, because that would slow down the capture.
    If Triton is not installed, nothing happens until a kernel needs it.
    """
    try:
        from inductor_lab.compiler.runtime.triton.launch import this_gpu
        from inductor_lab.compiler.runtime.triton.worker_processes import processes
    except ImportError:
        return None
    device = torch.cuda.current_device()

    def make() -> Any:
        with torch.cuda.device(device):
            return processes(this_gpu())

    return BackgroundValue(make)
