"""Groups to kernels: which language each group is written in, and which share one function."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from inductor_lab.codegen.cpp import cpp_kernel
from inductor_lab.codegen.kernel import Code, Kernel
from inductor_lab.codegen.triton import triton_kernel
from inductor_lab.options import Options
from inductor_lab.schedule.result import Schedule

COMMENTS = ("// ", "# ")
"""How the line starts that names a kernel's FX nodes."""


def generate_kernels(schedule: Schedule, options: Options) -> tuple[Kernel, ...]:
    """One kernel for each group, in the order they run; equal ones have one name.

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
    return tuple(shared(kernels))


def shared(kernels: Iterable[Kernel]) -> Iterable[Kernel]:
    """Kernels whose text is equal apart from its name take the name of the first of them.

    So the equal layers of a model are compiled once.  Each keeps its own origins and buffers.
    """
    first: dict[object, str] = {}
    for kernel in kernels:
        lines = (line.text for line in kernel.code.lines if not line.text.startswith(COMMENTS))
        text = "\n".join(lines).replace(kernel.name, "")
        key = (text, kernel.language, kernel.device, repr(kernel.launch))
        name = first.setdefault(key, kernel.name)
        if name == kernel.name:
            yield kernel
        else:
            renamed = (
                replace(line, text=line.text.replace(kernel.name, name))
                for line in kernel.code.lines
            )
            yield replace(kernel, name=name, code=Code.of(renamed))


def _language(device: str, options: Options) -> str:
    if options.target is not None:
        return "triton"
    return options.language or ("cpp" if device == "cpu" else "triton")
