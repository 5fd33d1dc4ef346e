"""The operators that multiply matrices: the one table of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Matmul:
    """`first` is the position of the first matrix among the arguments; a bias is before it."""

    first: int
    batched: bool = False


MATMULS = {
    "aten.mm.default": Matmul(0),
    "aten.addmm.default": Matmul(1),
    "aten.bmm.default": Matmul(0, batched=True),
    "aten.baddbmm.default": Matmul(1, batched=True),
}
COMMON = {op: one for op, one in MATMULS.items() if not (one.batched and one.first)}
"""Those that graphs have often: rewrites, measurements and quick calls are for these."""
UNBATCHED = {op: one for op, one in MATMULS.items() if not one.batched}
"""Those that several libraries compute."""


def name_of(op: str) -> str:
    """The name of an overload: `mm` of `aten.mm.default`."""
    return op.split(".")[1]
