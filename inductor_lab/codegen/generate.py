"""Groups to kernels: which language each group is written in."""

from __future__ import annotations

from inductor_lab.codegen.cpp import cpp_kernel
from inductor_lab.codegen.kernel import Kernel
from inductor_lab.codegen.triton import triton_kernel
from inductor_lab.options import Options
from inductor_lab.schedule.result import Schedule


def generate_kernels(schedule: Schedule, options: Options) -> tuple[Kernel, ...]:
    """One kernel for each group, in the order they run.

    C++ for groups on the CPU, Triton for GPUs, for `options.target` and where
    `options.language` says so.
    """
    buffers = schedule.program.buffers
    kernels = []
    for group in schedule.groups:
        device = buffers[group.nests[0].buffer].device
        if _language(device, options) == "cpp":
            kernels.append(cpp_kernel(group, buffers, f"cpp_{group.name}"))
        else:
            target = options.target.split(":")[0] if options.target else device
            kernels.append(triton_kernel(group, buffers, f"triton_{group.name}", device=target))
    return tuple(kernels)


def _language(device: str, options: Options) -> str:
    if options.target is not None:
        return "triton"
    return options.language or ("cpp" if device == "cpu" else "triton")
