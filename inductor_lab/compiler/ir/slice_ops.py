"""Our own operators for values that are known only at run time, such as the start of a slice.

    i = t.item(); x[:, i:]        u1 = inductor_lab.first_of_slice.default(5, u0)
                                  u2 = inductor_lab.length_of_slice.default(5, u0, None, 1)

Only at run time is it known whether such an index is negative or out of range.  Therefore the
computation is a call.  The host program, the interpreter and a saved program find these operators
under `torch.ops`.
"""

from __future__ import annotations

from typing import Any

import torch

from inductor_lab.compiler.torch_door import torch_aot


def first_of_slice(size: int, start: int | None) -> int:
    """The first position of `x[start:]`."""
    return slice(start, None).indices(size)[0]


def length_of_slice(size: int, start: int | None, end: int | None, step: int) -> int:
    """The number of elements of `x[start:end:step]`."""
    return len(range(*slice(start, end, step).indices(size)))


def position_in(size: int, index: int) -> int:
    """`index` counted from the front.

    Raises:
        IndexError: the index is out of range.
    """
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for a dimension of size {size}")
    return index % size


def expanded_from_one(length: int) -> int:
    """The length of `x.expand(length)` in a dimension of length 1."""
    return 1 if length == -1 else length


def placed(x: torch.Tensor, base: torch.Tensor | None, more: int) -> torch.Tensor:
    """A copy of `x` with the same strides, and the storage offset from which AOTAutograd recreates
    it `more` elements after the start of `base`; without a base that offset is `more`."""
    start = 0 if base is None or torch_aot.ADDS_OFFSET_OF_BASE else base.storage_offset()
    offset = start + more
    end = 1 + sum((n - 1) * stride for n, stride in zip(x.shape, x.stride(), strict=True))
    storage = x.new_empty(offset + (end if x.numel() else 0))
    return storage.as_strided(x.shape, x.stride(), offset).copy_(x)


def again(x: torch.Tensor) -> torch.Tensor:
    """A new tensor that shares the memory of `x` and that autograd does not treat as a view of
    `x`."""
    storage = x.untyped_storage()
    return x.new_empty(0).set_(storage, x.storage_offset(), x.shape, x.stride())


def evaluated(x: torch.Tensor) -> None:
    """Does nothing.  It keeps the kernel that computes `x`, because that kernel raises errors."""


OWN: Any = torch.library.Library("inductor_lab", "FRAGMENT")
"""The library of our own operators; `library_ops.py` adds those that represent library calls."""

EXPLICIT, IMPLICIT = "CompositeExplicitAutograd", "CompositeImplicitAutograd"
for _function, _signature, _how in (
    (first_of_slice, "(SymInt size, SymInt? start) -> SymInt", EXPLICIT),
    (length_of_slice, "(SymInt size, SymInt? start, SymInt? end, SymInt step) -> SymInt", EXPLICIT),
    (position_in, "(SymInt size, SymInt index) -> SymInt", EXPLICIT),
    (expanded_from_one, "(SymInt length) -> SymInt", EXPLICIT),
    (placed, "(Tensor x, Tensor? base, SymInt more) -> Tensor", EXPLICIT),
    (again, "(Tensor(a) x) -> Tensor(a)", IMPLICIT),
    (evaluated, "(Tensor x) -> ()", EXPLICIT),
):
    OWN.define(_function.__name__ + _signature)
    OWN.impl(_function.__name__, _function, _how)

OPERATORS = torch.ops.inductor_lab
