"""The loop trees of a kernel: as built, after each pass that changed it, and as printed."""

from __future__ import annotations

from dataclasses import dataclass

from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.compiler.codegen.tree.loop_tree import Tree
from inductor_lab.compiler.codegen.tree.text import tree_text


@dataclass(frozen=True, eq=False)
class TreeStep(Shown):
    """A tree, and the pass that produced it."""

    name: str
    tree: Tree

    def __repr__(self) -> str:
        return f"TreeStep({self.name}: {counted(len(str(self).splitlines()), 'line')})"

    def __str__(self) -> str:
        return tree_text(self.tree)


@dataclass(frozen=True, eq=False)
class KernelTrees(Shown):
    """The trees of one kernel (or of one part of a combo), from the first to the printed one."""

    kernel: str
    steps: tuple[TreeStep, ...]

    @property
    def passes(self) -> tuple[str, ...]:
        """The passes that changed the tree, in order."""
        return tuple(step.name for step in self.steps[1:])

    def __repr__(self) -> str:
        return f"KernelTrees({self.kernel}: {counted(len(self.passes), 'pass')})"

    def __str__(self) -> str:
        return "\n".join(f"# {step.name}\n{step}" for step in self.steps)
