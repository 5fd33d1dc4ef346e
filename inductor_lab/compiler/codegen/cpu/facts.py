"""The facts that passes over loop trees use in addition to the tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inductor_lab.compiler.codegen.cpu.plan import CpuPlan, Means
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.schedule.schedule import Group


@dataclass(frozen=True, slots=True)
class Shape:
    """The facts of the passes that choose the loops.

    `means` are the transformations that later passes provide.
    """

    group: Group
    buffers: Mapping[str, Buffer]
    means: Means


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of all later passes.

    plan      how the tree runs
    names     buffer → name of the kernel's parameter
    streamed  results that are written with streaming stores
    tiled     transposed reads are tiled
    """

    plan: CpuPlan
    names: Mapping[str, str]
    streamed: frozenset[str] = frozenset()
    tiled: bool = False
