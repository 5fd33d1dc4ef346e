"""What a pass is, and its input besides the tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from inductor_lab.compiler.codegen.cpu.plan import CpuPlan
from inductor_lab.compiler.codegen.tree.loop_tree import Tree


@dataclass(frozen=True, slots=True)
class Facts:
    """`plan` is how the tree is to run; `names` are the kernel's parameters by buffer, `streamed`
    results that are written past the caches; it is `tiled` if transposed reads go in tiles."""

    plan: CpuPlan
    names: Mapping[str, str]
    streamed: frozenset[str] = frozenset()
    tiled: bool = False


@dataclass(frozen=True, slots=True)
class Pass:
    """A function from tree to tree that preserves the meaning.

    `apply` returns the same object if there is nothing to do.  A pass that is `needed` is no
    optimization: without it the tree cannot be printed, or is not exact enough.
    """

    name: str
    what: str
    apply: Callable[[Tree, Facts], Tree]
    needed: bool = False
