"""Check the loop trees of kernels: after the build and after each pass.

The interpreter runs a tree on right inputs, with results between guard zones and filled with a
pattern, like the kernel (`kernels.py`).  The last tree is printed as code, so it runs first.  If it
is wrong, the earlier trees run in order, and the first wrong one identifies the pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.codegen.cpu.display_trees import part_trees
from inductor_lab.compiler.codegen.generate import results_of
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.tree.build import build_tree
from inductor_lab.compiler.codegen.tree.loop_tree import Tree
from inductor_lab.compiler.codegen.tree.run import run_tree, storage_of
from inductor_lab.compiler.codegen.tree.tree_history import KernelTrees, TreeStep
from inductor_lab.compiler.ir.program import Scatter
from inductor_lab.compiler.schedule.schedule import Group, Schedule
from inductor_lab.debug.blame.kernels import Guarded, judged_in_group, unfused
from inductor_lab.debug.blame.programs import Ran
from inductor_lab.debug.compare.precision import Judged

ITERATIONS = 10_000
"""Maximum number of interpreted iterations of a tree: at about 100 us each, one second."""
THOROUGH = 5 * ITERATIONS
"""The same for the trees of a wrong kernel."""


class TooManyIterations(Exception):
    """Raised for a tree that takes too long to interpret."""


@dataclass(frozen=True)
class WrongTree:
    """The first wrong tree of a kernel.

    made_by  the pass that made it; "build" for the first tree
    value    the first wrong buffer, with its verdict if the tree could be run
    nest     the buffer of the nest whose separate tree is also wrong, if any
    """

    kernel: str
    made_by: str
    value: str
    says: str
    judged: Judged | None = None
    nest: str = ""


class TreeCheck:
    """`wrong_tree` runs the trees of a part's kernels.

    `right` has the buffers of the schedule, `whole` those of the loop program (of every nest).
    """

    def __init__(self, schedule: Schedule, options: Options, right: Ran, whole: Ran) -> None:
        self.schedule, self.options = schedule, options
        self.right, self.whole = right, whole
        self.results = results_of(schedule)

    def wrong_tree(self, kernel: Kernel, iterations: int = ITERATIONS) -> WrongTree | None:
        """The first wrong tree of a kernel; raises TooManyIterations if a tree needs more."""
        for part in kernel.group.parts:
            steps = self._trees(kernel, part).steps
            if self._wrong(kernel, part, steps[-1], iterations) is None:
                continue
            found = (self._wrong(kernel, part, step, iterations) for step in steps)
            first = next(filter(None, found))
            return replace(first, nest=self._culprit(kernel, iterations))
        return None

    def _culprit(self, kernel: Kernel, iterations: int) -> str:
        """The buffer of the first nest whose tree is wrong as a separate kernel."""
        if len(kernel.group.nests) == 1:
            return ""
        apart = unfused(self.schedule, kernel, self.options)
        check = TreeCheck(apart.schedule, apart.options, self.whole, self.whole)
        wrong = (one for one in apart.kernels if check.wrong_tree(one, iterations) is not None)
        first = next(wrong, None)
        return first.group.nests[-1].buffer if first is not None else ""

    def _trees(self, kernel: Kernel, part: Group) -> KernelTrees:
        if kernel.language == "cpp":
            return part_trees(kernel, part, self.results, self.options)
        built = TreeStep("build", build_tree(part, kernel.buffers))
        return KernelTrees(kernel.name, (built,))

    def _wrong(
        self, kernel: Kernel, part: Group, step: TreeStep, iterations: int
    ) -> WrongTree | None:
        try:
            made, outside = self._run(kernel, part, step.tree, iterations)
        except TooManyIterations:
            raise
        except Exception as error:  # a wrong tree may raise any error
            first_line = str(error).partition("\n")[0]
            says = f"it cannot be run: {type(error).__name__}: {first_line}"
            return WrongTree(kernel.name, step.name, part.nests[-1].buffer, says)
        if outside:
            return WrongTree(kernel.name, step.name, outside, f"writes outside of {outside}")
        judged = judged_in_group(self.schedule, part, made, self.right)
        for name, found in judged.items():
            if not found.right:
                return WrongTree(kernel.name, step.name, name, f"{name}: {found}", found)
        return None

    def _run(
        self, kernel: Kernel, part: Group, tree: Tree, iterations: int
    ) -> tuple[Mapping[str, torch.Tensor], str]:
        """The buffers that a tree stores, and the buffer that it writes past the end of."""
        left = iterations

        def on_iteration() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise TooManyIterations

        symbols, outputs = self.right.symbols, dict[str, Guarded]()
        for nest in part.nests:
            if nest.buffer in part.stored:
                base = nest.base if isinstance(nest, Scatter) else ""
                start = self.right.buffers.get(base)
                outputs[nest.buffer] = Guarded.of(kernel.buffers[nest.buffer], symbols, start)
        made = {name: guarded.tensor for name, guarded in outputs.items()}
        flat = {
            name: storage_of(tensor, kernel.buffers[name], symbols)
            for name, tensor in {**self.right.buffers, **made}.items()
            if name in kernel.buffers and tensor.layout is torch.strided
        }
        with torch.no_grad():
            run_tree(tree, flat, symbols, on_iteration)
        overrun = next((name for name, guarded in outputs.items() if not guarded.intact), "")
        return made, overrun
