"""The loop trees of a schedule's C++ kernels, for display."""

from __future__ import annotations

from collections.abc import Iterable, Set

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.base.passes import switched_off
from inductor_lab.compiler.codegen.cpu.passes import PASSES, cpu_tree
from inductor_lab.compiler.codegen.generate import results_of
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.tree.tree_history import KernelTrees
from inductor_lab.compiler.schedule.schedule import Group, Schedule


def kernel_trees(
    schedule: Schedule, kernels: Iterable[Kernel], options: Options
) -> tuple[KernelTrees, ...]:
    """The loop trees of the C++ kernels.

    Kernels with the same name appear once. Of the parts of a combo with the same extents, only the
    first appears.
    """
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
    """The loop trees of one part of a C++ kernel.

    A kernel that is not a combo has one part: its group.  `results` are the results of the schedule
    (`results_of`).
    """
    own, off = results & part.stored, switched_off(PASSES, options.passes_off)
    team = bool(kernel.group.combined)
    made = cpu_tree(part, kernel.buffers, results=own, off=off, team=team)
    return KernelTrees(kernel.name, made.steps)
