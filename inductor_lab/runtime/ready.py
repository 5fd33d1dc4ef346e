"""What can start before a graph is lowered, or captured."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable
from typing import Any

import torch

from inductor_lab.errors import NothingToChange
from inductor_lab.runtime.ahead import Ahead
from inductor_lab.runtime.peers import introduce
from inductor_lab.torch_api import run_cubin


def before_capture(_: object) -> None:
    """A capture begins: where the process has a GPU, the graph is likely for it."""
    if torch.cuda.is_initialized():
        warm_triton()


def make_ready(mode: str, inputs: Iterable[Any]) -> None:
    """Start it, and warn if the mode changes nothing."""
    introduce()
    if any(isinstance(given, torch.Tensor) and given.is_cuda for given in inputs):
        warm_triton()
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
def warm_triton() -> Ahead[Any] | None:
    """Begin what Triton does once in a process, in a thread: it finds the assembler, reads itself
    for the key of its cache, and builds the module that it loads kernels with.

    Where Triton is not installed, nothing happens before a kernel needs it.
    """
    try:
        import triton
        from triton.compiler import ASTSource
        from triton.runtime.jit import JITFunction

        from inductor_lab.codegen.triton_function import compiled_device
        from inductor_lab.runtime.triton_launch import this_gpu
        from inductor_lab.runtime.triton_processes import processes
    except ImportError:
        return None
    device = torch.cuda.current_device()

    def make() -> Any:
        with torch.cuda.device(device):
            target = this_gpu()
            processes(target)
            compiled_device()
            written, fused = ASTSource(JITFunction(_nothing), {}, {}), {"enable_fp_fusion": True}
            compiled = triton.compile(written, target=target, options=fused)
            return compiled if run_cubin is not None else compiled[1, 1, 1]

    return Ahead(make)


def _nothing() -> None:
    """A kernel."""
