"""A call of attention with functions of the user's, as its kernels see it: Triton's
(`triton_flash.py`) and those of C++ (`cpp_flash.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from inductor_lab.compiler.ir.expr import Origins
from inductor_lab.compiler.ir.index import Size
from inductor_lab.compiler.schedule.schedule import Group, Schedule

WHOLE_LENGTH = 1 << 30
"""A block of lists that is as long as anything."""


@dataclass(frozen=True)
class Inner:
    """What the user's functions make of scores: a program of one pointwise group.

    Its first inputs are blocks, by the names that a kernel has for them, and then come tensors that
    the kernel is given; its results become the variables `made`.
    """

    schedule: Schedule
    blocks: tuple[str, ...]
    made: tuple[str, ...]

    @property
    def group(self) -> Group:
        (group,) = self.schedule.groups
        return group


@dataclass(frozen=True)
class Operand:
    """A tensor that a kernel is given or makes."""

    shape: tuple[Size, ...]
    stride: tuple[Size, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class Visit:
    """The blocks of keys that each block of queries visits, or the other way round: how many
    (`counts[B, H, blocks]`), which (`indices[B, H, blocks, most]`), and what is done there.

    Without lists it visits all."""

    name: str
    inner: Inner
    lists: tuple[Operand, Operand] | None = None

    @property
    def listed(self) -> dict[str, Operand]:
        """The lists, by the names of parameters of a kernel."""
        return dict(zip((f"{self.name}_counts", f"{self.name}_indices"), self.lists or (),
                        strict=False))  # fmt: skip


@dataclass(frozen=True)
class Attention:
    """What a call is given; `given` are read by the user's functions.

    `sparse` are the lengths of the blocks in lists, of queries and of keys; `exact` if lists were
    made for just as many queries and keys.
    """

    query: Operand
    key: Operand
    value: Operand
    given: tuple[Operand, ...]
    sparse: tuple[int, int]
    exact: bool
    origins: Origins

    def length(self, along: str) -> Size:
        return self.query.shape[2] if along == "rows" else self.key.shape[2]

    def listed(self, along: str) -> int:
        """The length of a block of the lists."""
        return self.sparse[along == "columns"]

    def heads(self, along: str) -> int:
        count = (self.query if along == "rows" else self.key).shape[1]
        assert isinstance(count, int), "heads can be counted"
        return count

    @property
    def shared_by(self) -> int:
        """Heads of queries that share one of keys."""
        return self.heads("rows") // self.heads("columns")
