"""The loop trees of a schedule's C++ kernels, for those who look at them."""

from __future__ import annotations

from collections.abc import Iterable

from inductor_lab.codegen.cpu.passes import cpu_tree, switched_off
from inductor_lab.codegen.generate import results_of
from inductor_lab.codegen.kernel import Kernel
from inductor_lab.codegen.trees import KernelTrees
from inductor_lab.options import Options
from inductor_lab.schedule.result import Schedule


def kernel_trees(
    schedule: Schedule, kernels: Iterable[Kernel], options: Options
) -> tuple[KernelTrees, ...]:
    """The loop trees of the C++ kernels, once for those of one name; of parts of a combo with the
    same extents the first."""
    results, off = results_of(schedule), switched_off(options.passes_off)
    found: dict[tuple[object, ...], KernelTrees] = {}
    for kernel in kernels:
        if kernel.language == "cpp":
            for part in kernel.group.parts:
                key = (kernel.name, *((n.axes, n.reduce_axes) for n in part.nests))
                if key not in found:
                    own, team = results & part.stored, bool(kernel.group.combined)
                    made = cpu_tree(part, kernel.buffers, results=own, off=off, team=team)
                    found[key] = KernelTrees(kernel.name, made.steps)
    return tuple(found.values())
