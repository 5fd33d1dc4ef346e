"""The input of passes over loop trees, besides the tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inductor_lab.compiler.codegen.cpu.plan import CpuPlan, Means
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.schedule.schedule import Group


@dataclass(frozen=True, slots=True)
class Shape:
    """The facts of the passes that choose the loops: the group, its buffers, and the `means` that
    later passes offer."""

    group: Group
    buffers: Mapping[str, Buffer]
    means: Means


@dataclass(frozen=True, slots=True)
class Facts:
    """`plan` is how the tree is to run; `names` are the kernel's parameters by buffer, `streamed`
    results that are written past the caches; it is `tiled` if transposed reads go in tiles."""

    plan: CpuPlan
    names: Mapping[str, str]
    streamed: frozenset[str] = frozenset()
    tiled: bool = False
