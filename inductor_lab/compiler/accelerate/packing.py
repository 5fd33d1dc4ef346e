"""Keeps weights packed in the memory layout of a library across calls.

A library first copies a weight into blocks before it multiplies by it.  If this is done only once,
a call takes 10 to 35 % less time.  The same holds for convolutions.  The factors that are folded
into their weights (by `accelerate/convolutions.py`), one for each row, are compared in each call.

The packed copy must always be up to date.  A version counter cannot ensure this, because
`p.data.add_(1)`, NumPy and DLPack do not increment it.  Therefore a packed weight is made
*copy-on-write*: we hold a clone that shares its memory.  When torch is asked for a writable
pointer, it first moves the weight to new memory.  As long as weight and clone have the same
address, the weight has not been written.  So a call only compares the address.

This does not detect writes through a pointer obtained *earlier*.  Therefore a weight is packed only
if it is a parameter that requires a gradient (NumPy refuses these), if nothing else refers to its
storage (such as a detached tensor, which NumPy or DLPack could share), if torch allocated its
memory, and if the graph has no backward.  Two cases remain: somebody keeps an address from
`p.data_ptr()` and writes to it after a later call; and `p.untyped_storage().resize_()`, which torch
refuses for copy-on-write storage.

Inductor: `freezing.py` and `fx_passes/mkldnn_fusion.py` pack if the user has set `freezing`, and do
not detect later changes.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.library_ops import (
    mkl_linear,
    mkl_supports,
    onednn_convolution,
    onednn_linear,
    onednn_supports,
    pack_for_convolution,
    pack_for_mkl,
    pack_for_onednn,
)
from inductor_lab.compiler.ir.slice_ops import OWN
from inductor_lab.compiler.torch_door.torch_api import data_address, lazy_clone, storage_references

TRIES = 3
"""The number of packings of a weight after which packing must have paid off."""
PAYS = 4
"""The number of calls after which a packing has paid off (chosen, like the other limits here)."""
MOST_FORMS = 2
"""The maximum number of forms of a weight, for example for a long prompt and for single tokens."""
LARGE = 1 << 14
"""The elements of a weight from which our libraries are compiled ahead."""
NOTHING = torch.empty(0)

State = tuple[Any, ...]
"""The address and the layout of a weight."""
Form = tuple[Any, ...]
"""What a packed form depends on in addition to the weight: library, sizes of the other operand."""
Pack = Callable[[torch.Tensor, torch.Tensor | None], torch.Tensor]
"""`pack(weight, scale)` returns the form.  It works on a copy, because libraries request writable
pointers."""


@dataclass(frozen=True)
class Library:
    """The functions of a library: `pack(weight, rows)` and `multiply(x, packed, weight, bias)`.

    A weight has one row for each column of the result.  `rows` is the number of rows of `x`.
    """

    pack: Callable[[torch.Tensor, int], torch.Tensor]
    multiply: Callable[..., torch.Tensor]
    knows: Callable[[torch.dtype], bool]


def onednn(
    x: torch.Tensor, packed: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """Return `x @ weight.t() + bias`, by oneDNN; `packed` can be the weight itself."""
    product: torch.Tensor = onednn_linear(x, packed, bias, "none", [], "")
    return product


def _mkl(
    x: torch.Tensor, packed: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    product: torch.Tensor = mkl_linear(x, packed, weight, bias, x.shape[0])
    return product


def aten(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Return `x @ weight.t() + bias`, by ATen's library."""
    return torch.mm(x, weight.t()) if bias is None else torch.addmm(bias, x, weight.t())


LIBRARIES = {
    "oneDNN": Library(pack_for_onednn, onednn, onednn_supports),
    "MKL": Library(pack_for_mkl, _mkl, mkl_supports),
}


@dataclass(frozen=True)
class Window:
    """How the window of a convolution moves over images: for rows and columns."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


@dataclass(frozen=True)
class ConvolutionLibrary:
    """The functions of a library for float32 images and weights, both channels-last.

    They are `pack(weight, window, shape of x)` and `convolve(x, packed, weight, bias, window)`;
    `knows(window)` says whether it computes such convolutions.  `depends` says whether the packed
    form depends on the window and the images.
    """

    pack: Callable[[torch.Tensor, Window, torch.Size], torch.Tensor]
    convolve: Callable[..., torch.Tensor]
    knows: Callable[[Window], bool]
    depends: bool


def _onednn_pack(weight: torch.Tensor, window: Window, shape: torch.Size) -> torch.Tensor:
    packed: torch.Tensor = pack_for_convolution(
        weight, window.padding, window.stride, window.dilation, window.groups, shape
    )
    return packed


def _onednn_convolve(
    x: torch.Tensor, packed: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None,
    window: Window,
) -> torch.Tensor:  # fmt: skip
    geometry = window.padding, window.stride, window.dilation, window.groups
    images: torch.Tensor = onednn_convolution(x, packed, bias, *geometry, "none", [], "")
    return images


CONVOLUTION_LIBRARIES = {
    "oneDNN": ConvolutionLibrary(
        _onednn_pack, _onednn_convolve, knows=lambda window: True, depends=True
    ),
}


@dataclass(frozen=True, eq=False)
class Packed:
    """The current state of a parameter: its copy-on-write clone, and its packed forms.

    Each form is stored with the factors, one for each row, by which the weight was multiplied.
    `uses` counts calls and packings since the weight was first seen.
    """

    weight: weakref.ref[torch.Tensor]
    state: State
    twin: torch.Tensor
    forms: dict[Form, tuple[torch.Tensor, torch.Tensor | None]]
    uses: Counter[str]

    @property
    def nbytes(self) -> int:
        """The memory of the forms.  A form of oneDNN counts as the size of its weight."""
        made = (form for form, _ in list(self.forms.values()))
        return sum(self.twin.nbytes if form.is_mkldnn else form.nbytes for form in made)

    def is_of(self, weight: torch.Tensor) -> bool:
        return self.weight() is weight and self.state == state_of(weight)

    def form(self, form: Form, pack: Pack, scale: torch.Tensor | None) -> torch.Tensor | None:
        """Return the form for a library, or None if factors or sizes change too often."""
        self.uses["calls"] += 1
        forms = self.forms
        made = forms.get(form)
        if made is not None and _equal(made[1], scale):
            if len(forms) > 1:
                forms[form] = forms.pop(form, made)  # the most recently used form is the last
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

    They are deleted together with the parameter, when it is used after a write, and by
    `lab.release_memory()`.  There is no lock: entries are checked when they are read, and only
    equal entries can replace each other.
    """

    def __init__(self) -> None:
        self._packed: dict[int, Packed] = {}

    @property
    def nbytes(self) -> int:
        """The memory of the packed copies."""
        return sum(packed.nbytes for packed in list(self._packed.values()))

    def get(
        self, weight: torch.Tensor, form: Form, pack: Pack, scale: torch.Tensor | None = None
    ) -> torch.Tensor | None:
        """Return the packed form of the weight, each row times a number of `scale`.

        `pack` computes the form.  Returns None if packing is not allowed or does not pay off.
        """
        packed = self._packed.get(id(weight))
        if packed is None or not packed.is_of(weight):
            packed = self._renewed(weight, packed)
        return None if packed is None else packed.form(form, pack, scale)

    def allows(self, weight: torch.Tensor) -> bool:
        """May the weight be packed?"""
        packed = self._packed.get(id(weight))
        return (packed is not None and packed.is_of(weight)) or packing_problem(weight) is None

    def release(self) -> int:
        """Delete all packed weights; return their size in bytes."""
        freed = self.nbytes
        self._packed.clear()
        return freed

    def _renewed(self, weight: torch.Tensor, old: Packed | None) -> Packed | None:
        """Make a weight copy-on-write if this is allowed and has paid off so far."""
        number, table = id(weight), self._packed
        uses = Counter[str]()
        if old is not None and old.weight() is weight:
            uses = old.uses
            table[number] = replace(old, state=(), twin=NOTHING, forms={})
        if packing_problem(weight) is not None or not pays(uses):
            return None
        try:
            twin = lazy_clone(weight.detach())
        except RuntimeError:  # torch did not allocate the memory: NumPy did, or it is a mapped file
            return None
        watch = weakref.ref(weight, lambda _: table.pop(number, None))
        table[number] = packed = Packed(watch, state_of(twin), twin, {}, uses)
        return packed


def pays(uses: Counter[str]) -> bool:
    """Is another packing of a weight worthwhile, or is it written to too often?"""
    return uses["packings"] < TRIES or uses["calls"] >= PAYS * uses["packings"]


def _equal(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    return a is b if a is None or b is None else torch.equal(a, b)


def laid_out(weight: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
    """Return a channels-last copy of the weight of a convolution, each row times its factor."""
    copy = torch.empty_like(weight, memory_format=torch.channels_last).copy_(weight)
    return copy if scale is None else copy.mul_(scale.view(-1, 1, 1, 1))


def state_of(weight: torch.Tensor) -> State:
    """Return the address and the layout of a tensor; the tensor stays copy-on-write."""
    where = data_address(weight), weight.storage_offset()
    return (*where, weight.shape, weight.stride(), weight.dtype)


def weights_among(inputs: Sequence[Any], options: Options) -> list[torch.Tensor]:
    """Return the large inputs of a graph without gradients that a library may pack."""
    if torch.is_grad_enabled() or not options.pack_weights or options.matmul != "measured":
        return []
    weights = (x for x in inputs if type(x) is torch.nn.Parameter and x.requires_grad)
    of_cpu = (weight for weight in weights if weight.dim() > 1 and weight.device.type == "cpu")
    return [weight for weight in of_cpu if weight.numel() >= LARGE]


def packing_problem(weight: torch.Tensor) -> str | None:
    """Return why a tensor must not be made copy-on-write, or None."""
    if type(weight) is not torch.nn.Parameter or not weight.requires_grad:
        return "it is not a parameter that requires a gradient: NumPy could write to it"
    last = weight.dim() == 4 and weight.is_contiguous(memory_format=torch.channels_last)
    if not (weight.is_contiguous() or last) or weight.storage_offset():
        return "it is a view of part of a storage"
    storage = weight.untyped_storage()
    if storage.is_shared():
        return "another process could write to it"
    if storage_references(storage._cdata) != 2:
        return "another tensor shares its memory, through which it could be written to"
    return None


WEIGHTS = PackedWeights()
"""The packed weights of the process."""


def packed_weight(
    weight: torch.Tensor, rows: int, transposed: bool, library: str
) -> torch.Tensor | None:
    """Return the weight as a library packs it for products with `rows` rows; None as in `get`."""

    def pack(weight: torch.Tensor, _: torch.Tensor | None) -> torch.Tensor:
        given = weight.t() if transposed else weight
        copy = torch.empty(given.shape, dtype=given.dtype).copy_(given)
        return LIBRARIES[library].pack(copy, rows)

    return WEIGHTS.get(weight, (library, rows, transposed), pack)


def linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None,
    transposed: bool, library: str, otherwise: str,
) -> torch.Tensor:  # fmt: skip
    """Return `x @ weight.t() + bias`, with the weight packed for a library.

    If the weight cannot be packed, use the library `otherwise`.  With `transposed`, return
    `x @ weight + bias`.
    """
    packed = packed_weight(weight, x.shape[0], transposed, library)
    plain = weight.t() if transposed else weight
    if packed is not None:
        return LIBRARIES[library].multiply(x, packed, plain, bias)
    return onednn(x, plain, plain, bias) if otherwise == "oneDNN" else aten(x, plain, bias)


def convolution(
    x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor | None, bias: torch.Tensor | None,
    stride: list[int], padding: list[int], dilation: list[int], groups: int,
    library: str = "oneDNN",
) -> torch.Tensor:  # fmt: skip
    """Return the convolution of channels-last images with `weight`, packed if possible.

    Each row of the weight is multiplied by a number of `scale`.
    """
    window = Window(tuple(stride), tuple(padding), tuple(dilation), groups)
    packed = packed_for_convolution(weight, scale, window, x.shape, library)
    if packed is not None:
        return CONVOLUTION_LIBRARIES[library].convolve(x, packed, weight, bias, window)
    last = laid_out(weight, scale)
    return torch.convolution(x, last, bias, stride, padding, dilation, False, [0, 0], groups)


def packed_for_convolution(
    weight: torch.Tensor, scale: torch.Tensor | None, window: Window, shape: torch.Size,
    library: str,
) -> torch.Tensor | None:  # fmt: skip
    """Return the weight as a library packs it for images of this shape; None as in `get`.

    Each row of the weight is multiplied by a number of `scale`.
    """
    chosen = CONVOLUTION_LIBRARIES[library]

    def pack(weight: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
        return chosen.pack(laid_out(weight, scale), window, shape)

    form = ("convolution", library, *((shape, window) if chosen.depends else ()))
    return WEIGHTS.get(weight, form, pack, scale)


LINEAR = "inductor_lab.linear.default"
OWN.impl("linear", linear, "CPU")
OWN.impl("convolution", convolution, "CPU")
