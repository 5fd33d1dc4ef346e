"""What can start before a graph is lowered, or captured."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable
from typing import Any

import torch

from inductor_lab.compiler.base.errors import NothingToChange
from inductor_lab.compiler.runtime.rank_failures import introduce
from inductor_lab.compiler.runtime.toolchain.background_compile import Ahead


def before_capture(_: object) -> None:
    """A capture begins: where the process has a GPU, the graph is likely for it."""
    if torch.cuda.is_initialized():
        start_triton()


def make_ready(mode: str, inputs: Iterable[Any]) -> None:
    """Start it, and warn if the mode changes nothing."""
    introduce()
    if any(isinstance(given, torch.Tensor) and given.is_cuda for given in inputs):
        start_triton()
    elif mode != "default":
        tell_of_mode(mode)


@functools.cache
def tell_of_mode(mode: str) -> None:
    """A warning for a mode that changes nothing, once in a process."""
    warnings.warn(
        f'mode="{mode}" changes nothing on a CPU: products of matrices are always measured there,'
        " and a call costs no launches",
        NothingToChange,
        stacklevel=4,
    )


@functools.cache
def start_triton() -> Ahead[Any] | None:
    """Start the process that compiles Triton's kernels, in a thread; it is ready after a second.

    Nothing is compiled in this one meanwhile: that would take turns with the capture.  Where Triton
    is not installed, nothing happens before a kernel needs it.
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

    return Ahead(make)
