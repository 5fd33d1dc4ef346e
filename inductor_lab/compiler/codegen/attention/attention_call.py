"""The description of an attention call with user functions.

The Triton kernels (`triton_flash.py`) and the C++ kernels (`cpp_flash.py`) are printed from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from inductor_lab.compiler.ir.expr import Origins
from inductor_lab.compiler.ir.index import Size
from inductor_lab.compiler.schedule.schedule import Group, Schedule

WHOLE_LENGTH = 1 << 30
"""A block length that is larger than any sequence: one block covers the whole sequence."""


@dataclass(frozen=True)
class Inner:
    """The user functions that are applied to scores, as a program with one pointwise group.

    The first inputs of the program are `blocks`, by their names in the kernel.  The other inputs
    are tensor arguments of the kernel.  The results become the variables `made`.
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
    """An input or output tensor of a kernel."""

    shape: tuple[Size, ...]
    stride: tuple[Size, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class Visit:
    """The blocks of keys that each block of queries visits, or the blocks of queries for keys.

    `lists` has the number of blocks (`counts[B, H, blocks]`) and their indices
    (`indices[B, H, blocks, most]`).  Without lists, all blocks are visited.  `inner` has the user
    functions to apply there.
    """

    name: str
    inner: Inner
    lists: tuple[Operand, Operand] | None = None

    @property
    def listed(self) -> dict[str, Operand]:
        """The lists, by the names of the kernel's parameters."""
        return dict(zip((f"{self.name}_counts", f"{self.name}_indices"), self.lists or (),
                        strict=False))  # fmt: skip


@dataclass(frozen=True)
class Attention:
    """The arguments of a call.  The user functions read the tensors in `given`.

    `sparse` has the lengths of the listed blocks of queries and of keys.  `exact` means that the
    lists were created for exactly this number of queries and keys.  `causal` means that there
    are no lists, and that the mask shows each query the keys at its position and before.
    """

    query: Operand
    key: Operand
    value: Operand
    given: tuple[Operand, ...]
    sparse: tuple[int, int]
    exact: bool
    origins: Origins
    causal: bool = False

    def length(self, along: str) -> Size:
        return self.query.shape[2] if along == "rows" else self.key.shape[2]

    def listed(self, along: str) -> int:
        """The length of a listed block."""
        return self.sparse[along == "columns"]

    def heads(self, along: str) -> int:
        count = (self.query if along == "rows" else self.key).shape[1]
        assert isinstance(count, int), "the number of heads is static"
        return count

    @property
    def shared_by(self) -> int:
        """The number of query heads that share one key head."""
        return self.heads("rows") // self.heads("columns")
