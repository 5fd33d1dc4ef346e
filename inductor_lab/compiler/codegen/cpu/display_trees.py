"""The loop trees of a schedule's C++ kernels, for those who look at them."""

from __future__ import annotations

from collections.abc import Iterable, Set

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.codegen.cpu.passes import cpu_tree, switched_off
from inductor_lab.compiler.codegen.generate import results_of
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.tree.tree_history import KernelTrees
from inductor_lab.compiler.schedule.schedule import Group, Schedule


def kernel_trees(
    schedule: Schedule, kernels: Iterable[Kernel], options: Options
) -> tuple[KernelTrees, ...]:
    """The loop trees of the C++ kernels, once for those of one name; of parts of a combo with the
    same extents the first."""
    results = results_of(schedule)
    found: dict[tuple[object, ...], KernelTrees] = {}
    for kernel in kernels:
        if kernel.language == "cpp":
            for part in kernel.group.parts:
                key = (kernel.name, *((n.axes, n.reduce_axes) for n in part.nests))
                if key not in found:
                    found[key] = part_trees(kernel, part, results, options)
    return tuple(found.values())


def part_trees(kernel: Kernel, part: Group, results: Set[str], options: Options) -> KernelTrees:
    """The loop trees of one part of a C++ kernel (of one that is no combo: its group); `results`
    are those of its schedule (`results_of`)."""
    own, off = results & part.stored, switched_off(options.passes_off)
    team = bool(kernel.group.combined)
    made = cpu_tree(part, kernel.buffers, results=own, off=off, team=team)
    return KernelTrees(kernel.name, made.steps)
