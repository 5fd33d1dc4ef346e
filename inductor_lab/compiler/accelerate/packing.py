"""Weights in the order in which a library wants to read them, kept from call to call.

A library that multiplies by a weight first copies it into blocks; done once, a call takes 10 to
35 % less.  A convolution does so too; what is folded into its weights (by
`accelerate/convolutions.py`) is a number for each row, which is compared in each call.

The packed copy must never be older than the weight, and a version counter does not tell:
`p.data.add_(1)`, NumPy and DLPack leave it as it is.  So a weight that is packed is made
*copy-on-write*.  We hold a twin that shares its memory; whoever asks torch for a pointer to write
through gives the weight memory of its own first.  Hence, as long as the weight lies where its twin
lies, nobody has written to it, and where it lies is all that a call has to ask.

Who got a raw pointer *before* is not seen by that.  So only a parameter that requires a gradient is
packed (NumPy refuses these), whose storage nothing else refers to (such as a detached tensor, which
NumPy or DLPack may have been given), in memory that torch itself allocated, and only in graphs
without a backward.  What remains: an address that somebody took with `p.data_ptr()`, keeps, and
writes to after a later call; and `p.untyped_storage().resize_()`, which torch refuses for
copy-on-write.

Inductor: `freezing.py` and `fx_passes/mkldnn_fusion.py` pack when a user has set `freezing`, and
see no later change.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from inductor_lab.compiler.ir.library_ops import (
    mkl_knows,
    mkl_linear,
    onednn_convolution,
    onednn_knows,
    onednn_linear,
    pack_for_convolution,
    pack_for_mkl,
    pack_for_onednn,
)
from inductor_lab.compiler.ir.slice_ops import OWN
from inductor_lab.compiler.torch_door.torch_api import data_address, lazy_clone, storage_references

TRIES = 3
"""Packings of one weight after which it must have paid before the next one."""
PAYS = 4
"""Calls after which a packing has paid (chosen, as the others here, not measured)."""
MOST_FORMS = 2
"""Packings of one weight that are kept: for a long prompt and for single words, say."""
NOTHING = torch.empty(0)

State = tuple[Any, ...]
"""The address and the layout of a weight."""
Form = tuple[Any, ...]
"""What a packing depends on besides the weight: a library, the sizes of the other operand."""
Pack = Callable[[torch.Tensor, torch.Tensor | None], torch.Tensor]
"""`pack(weight, scale)`: the form.  It works on a copy, for libraries ask for pointers that they
could write through."""


@dataclass(frozen=True)
class Library:
    """How to pack a weight of one row per column of the result, for that many rows of the other
    matrix, and to multiply: `multiply(x, packed, weight, bias)`."""

    pack: Callable[[torch.Tensor, int], torch.Tensor]
    multiply: Callable[..., torch.Tensor]
    knows: Callable[[torch.dtype], bool]


def onednn(
    x: torch.Tensor, packed: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """`x @ weight.t() + bias` by oneDNN; `packed` may be the weight itself."""
    product: torch.Tensor = onednn_linear(x, packed, bias, "none", [], "")
    return product


def _mkl(
    x: torch.Tensor, packed: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    product: torch.Tensor = mkl_linear(x, packed, weight, bias, x.shape[0])
    return product


def aten(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """`x @ weight.t() + bias` by ATen's own library."""
    return torch.mm(x, weight.t()) if bias is None else torch.addmm(bias, x, weight.t())


LIBRARIES = {
    "oneDNN": Library(pack_for_onednn, onednn, onednn_knows),
    "MKL": Library(pack_for_mkl, _mkl, mkl_knows),
}


@dataclass(frozen=True, eq=False)
class Packed:
    """A parameter as it is now: its copy-on-write twin, and what was packed from it.

    Each form comes with the factors, one for each row, that the weight was multiplied by.  `uses`
    counts calls and packings since the weight was first seen.
    """

    weight: weakref.ref[torch.Tensor]
    state: State
    twin: torch.Tensor
    forms: dict[Form, tuple[torch.Tensor, torch.Tensor | None]]
    uses: Counter[str]

    def is_of(self, weight: torch.Tensor) -> bool:
        return self.weight() is weight and self.state == state_of(weight)

    def form(self, form: Form, pack: Pack, scale: torch.Tensor | None) -> torch.Tensor | None:
        """Its form for a library; None where the factors, or the sizes that it is packed for,
        change all the time."""
        self.uses["calls"] += 1
        forms = self.forms
        made = forms.get(form)
        if made is not None and _equal(made[1], scale):
            if len(forms) > 1:
                forms[form] = forms.pop(form, made)  # the last one was used last
            return made[0]
        if not pays(self.uses) and (made is not None or len(forms) >= MOST_FORMS):
            return None
        self.uses["packings"] += 1
        scale = None if scale is None else scale.clone()
        for oldest in [*forms][: len(forms) + 1 - MOST_FORMS] if made is None else ():
            forms.pop(oldest, None)
        packed = pack(self.twin, scale)
        forms[form] = packed, scale
        return packed


class PackedWeights:
    """Packed weights by the identity of the parameter, shared by all graphs of the process.

    They go when the parameter does, when it is used after it was written to, or with
    `lab.release_memory()`.  No lock: what is found is checked, and never changed but by adding the
    same again.
    """

    def __init__(self) -> None:
        self._packed: dict[int, Packed] = {}

    @property
    def nbytes(self) -> int:
        """How much memory the packed copies take: each has the size of its weight."""
        return sum(packed.twin.nbytes * len(packed.forms) for packed in list(self._packed.values()))

    def get(
        self, weight: torch.Tensor, form: Form, pack: Pack, scale: torch.Tensor | None = None
    ) -> torch.Tensor | None:
        """The weight, each of its rows times a number of `scale`, in a library's form, which `pack`
        makes; None if it may not, or need not, be packed."""
        packed = self._packed.get(id(weight))
        if packed is None or not packed.is_of(weight):
            packed = self._renewed(weight, packed)
        return None if packed is None else packed.form(form, pack, scale)

    def release(self) -> int:
        """Forget all packed weights; returns the bytes."""
        freed = self.nbytes
        self._packed.clear()
        return freed

    def _renewed(self, weight: torch.Tensor, old: Packed | None) -> Packed | None:
        """Make a weight copy-on-write, if that may be done and has paid so far."""
        number, table = id(weight), self._packed
        uses = Counter[str]()
        if old is not None and old.weight() is weight:
            uses = old.uses
            table[number] = replace(old, state=(), twin=NOTHING, forms={})
        if unfit(weight) is not None or not pays(uses):
            return None
        try:
            twin = lazy_clone(weight.detach())
        except RuntimeError:  # memory that torch did not allocate: NumPy's, or a mapped file
            return None
        watch = weakref.ref(weight, lambda _: table.pop(number, None))
        table[number] = packed = Packed(watch, state_of(twin), twin, {}, uses)
        return packed


def pays(uses: Counter[str]) -> bool:
    """Is a weight worth another packing, or is it written to too often?"""
    return uses["packings"] < TRIES or uses["calls"] >= PAYS * uses["packings"]


def _equal(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    return a is b if a is None or b is None else torch.equal(a, b)


def _laid_out(weight: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
    """A copy of a convolution's weight whose channels are last, each row times its factor."""
    copy = torch.empty_like(weight, memory_format=torch.channels_last).copy_(weight)
    return copy if scale is None else copy.mul_(scale.view(-1, 1, 1, 1))


def state_of(weight: torch.Tensor) -> State:
    """The address and the layout of a tensor, for reading only: it stays copy-on-write."""
    where = data_address(weight), weight.storage_offset()
    return (*where, weight.shape, weight.stride(), weight.dtype)


def unfit(weight: torch.Tensor) -> str | None:
    """Why a tensor may not be made copy-on-write; None if it may."""
    if type(weight) is not torch.nn.Parameter or not weight.requires_grad:
        return "it is no parameter that is trained: NumPy may write to it"
    last = weight.dim() == 4 and weight.is_contiguous(memory_format=torch.channels_last)
    if not (weight.is_contiguous() or last) or weight.storage_offset():
        return "it is a part of something"
    storage = weight.untyped_storage()
    if storage.is_shared():
        return "another process may write to it"
    if storage_references(storage._cdata) != 2:
        return "another tensor shares its memory, and may have given it to somebody"
    return None


WEIGHTS = PackedWeights()
"""The packed weights of the process."""


def linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None,
    transposed: bool, library: str, otherwise: str,
) -> torch.Tensor:  # fmt: skip
    """`x @ weight.t() + bias` with the weight packed for a library, or `otherwise` by another.

    A transposed weight is `x @ weight + bias`.
    """
    rows = x.shape[0]

    def pack(weight: torch.Tensor, _: torch.Tensor | None) -> torch.Tensor:
        given = weight.t() if transposed else weight
        copy = torch.empty(given.shape, dtype=given.dtype).copy_(given)
        return LIBRARIES[library].pack(copy, rows)

    packed = WEIGHTS.get(weight, (library, rows, transposed), pack)
    plain = weight.t() if transposed else weight
    if packed is not None:
        return LIBRARIES[library].multiply(x, packed, plain, bias)
    return onednn(x, plain, plain, bias) if otherwise == "oneDNN" else aten(x, plain, bias)


def convolution(
    x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor | None, bias: torch.Tensor | None,
    stride: list[int], padding: list[int], dilation: list[int], groups: int,
) -> torch.Tensor:  # fmt: skip
    """The convolution of images whose channels are last with `weight`, of which each row is
    multiplied by a number of `scale`; packed for oneDNN where that may be."""
    geometry = padding, stride, dilation, groups

    def pack(weight: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
        form: torch.Tensor = pack_for_convolution(_laid_out(weight, scale), *geometry, x.shape)
        return form

    form = ("convolution", x.shape, *map(tuple, geometry[:3]), groups)
    packed = WEIGHTS.get(weight, form, pack, scale)
    if packed is not None:
        images: torch.Tensor = onednn_convolution(x, packed, bias, *geometry, "none", [], "")
        return images
    last = _laid_out(weight, scale)
    return torch.convolution(x, last, bias, stride, padding, dilation, False, [0, 0], groups)


LINEAR = "inductor_lab.linear.default"
OWN.impl("linear", linear, "CPU")
OWN.impl("convolution", convolution, "CPU")
