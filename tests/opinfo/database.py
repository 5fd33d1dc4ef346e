"""torch's own list of operators, their sample inputs, and how exact each has to be."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

SEED = 2026
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32,
        torch.uint8, torch.bool, torch.complex64,
    )
}  # fmt: skip
OWN_TOLERANCES = ("TestCommon", "TestInductorOpInfo")
"""The test classes of torch whose tolerances say how far two ways to compute an op may differ."""

# Random ops come wrapped in a function that seeds the generator at every call.  Without it one sees
# that they are random: two calls differ.
common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)

Leaves = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Sample:
    """One call of an op as a function of its tensors: `call(*tensors)` returns what the op does.

    `finish` is what torch's tests apply to the output before they differentiate it.
    """

    op: Any
    tensors: Leaves
    rebuild: Callable[[Leaves], tuple[tuple[Any, ...], dict[str, Any]]]
    finish: Callable[[Any], Any]

    def call(self, *tensors: torch.Tensor) -> Any:
        args, kwargs = self.rebuild(tensors)
        return self.op(*args, **kwargs)

    def fresh(self, gradients: bool = False) -> Leaves:
        """Copies of the tensors, each with the strides, offset and overlaps of the original."""
        copies = tuple(duplicate(tensor) for tensor in self.tensors)
        for copy, original in zip(copies, self.tensors, strict=True):
            copy.requires_grad_(gradients and original.requires_grad)
        return copies


def names() -> list[str]:
    """Every entry of the database, in a fixed order."""
    return sorted({entry.formatted_name for entry in op_db})


def find(name: str) -> Any:
    """The entry of that name."""
    return next(entry for entry in op_db if entry.formatted_name == name)


def supports(entry: Any, dtype: torch.dtype, gradients: bool, device: str = "cpu") -> bool:
    """Does torch say that the op takes this dtype on such a device (and has a gradient)?"""
    if gradients:
        return bool(entry.supports_autograd) and dtype in entry.supported_backward_dtypes(device)
    return dtype in entry.supported_dtypes(device)


def samples(
    entry: Any,
    dtype: torch.dtype,
    *,
    gradients: bool = False,
    in_place: bool = False,
    layout: Callable[[torch.Tensor], torch.Tensor] | None = None,
    device: str = "cpu",
    reference: bool = False,
) -> list[Sample]:
    """All sample inputs of an op, or its reference inputs: more of them, with special values and
    marks.  They are the same in every process."""
    op = entry.get_inplace() if in_place else entry.get_op()
    if op is None:
        return []
    random.seed(SEED)
    numpy.random.seed(SEED)
    torch.manual_seed(SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = entry.reference_inputs if reference else entry.sample_inputs
        given = list(inputs(device, dtype, requires_grad=gradients))
    return [_sample(op, one, in_place, layout) for one in given]


def _sample(op: Any, given: Any, in_place: bool, layout: Any) -> Sample:
    leaves, spec = tree_flatten(((given.input, *given.args), dict(given.kwargs)))
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = tuple(leaves[n] for n in places)
    if layout is not None:
        tensors = tuple(relaid(tensor, layout) for tensor in tensors)

    def rebuild(new: Leaves) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, new, strict=True):
            filled[place] = tensor
        args, kwargs = tree_unflatten(filled, spec)
        if in_place:  # on a copy, as a compiled program would
            args = (args[0].clone(), *args[1:])
        return args, kwargs

    return Sample(op, tensors, rebuild, given.output_process_fn_grad)


def in_float64(sample: Sample) -> Sample:
    """The same call in double precision, dtype arguments included."""
    wide = {
        torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
        torch.complex64: torch.complex128,
    }  # fmt: skip

    def widened(value: Any) -> Any:
        if isinstance(value, torch.dtype):
            return wide.get(value, value)
        return value

    def rebuild(new: Leaves) -> Any:
        return tree_map(widened, sample.rebuild(new))

    tensors = tuple(
        t.detach().to(wide.get(t.dtype, t.dtype)).requires_grad_(t.requires_grad)
        for t in sample.tensors
    )
    return Sample(sample.op, tensors, rebuild, sample.finish)


def tolerance(entry: Any, dtype: torch.dtype, device: str = "cpu") -> dict[str, float]:
    """The op's own tolerances on such a device; {} where torch's defaults hold."""
    found = [
        given[dtype]
        for info in entry.decorators
        if getattr(info, "cls_name", None) in OWN_TOLERANCES and info.device_type in (None, device)
        for one in info.decorators
        if isinstance(one, toleranceOverride)
        for given in (one.d,)
        if dtype in given
    ]
    if not found:
        return {}
    return {"atol": max(t.atol for t in found), "rtol": max(t.rtol for t in found)}


# ---- layouts ---------------------------------------------------------------------------------


def duplicate(tensor: torch.Tensor) -> torch.Tensor:
    """A copy that lies in memory as the original does."""
    tensor = tensor.detach()
    plain = tensor.layout is torch.strided and not tensor.is_conj() and not tensor.is_neg()
    if not plain or type(tensor) is not torch.Tensor or tensor.is_quantized:
        return tensor.clone()
    storage = tensor.untyped_storage().clone()
    where = (tensor.storage_offset(), tensor.shape, tensor.stride())
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage, *where)


def relaid(tensor: torch.Tensor, layout: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """The same values in another layout (sparse and other special tensors as they are)."""
    if tensor.layout is not torch.strided or type(tensor) is not torch.Tensor:
        return tensor
    return layout(tensor.detach()).requires_grad_(tensor.requires_grad)


def _transposed(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dim() < 2:
        return _spread(tensor)
    return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)


def _spread(tensor: torch.Tensor) -> torch.Tensor:
    """Every second element of something larger, from the second on."""
    if tensor.dim() == 0:
        return tensor.new_zeros(3).copy_(tensor)[1]
    larger = tensor.new_zeros([*tensor.shape[:-1], 2 * tensor.shape[-1] + 1])
    view = larger[..., 1 : 1 + 2 * tensor.shape[-1] : 2]
    return view.copy_(tensor)


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if tensor.dim() not in formats:
        return _transposed(tensor)
    return tensor.contiguous(memory_format=formats[tensor.dim()])


def _expanded(tensor: torch.Tensor) -> torch.Tensor:
    """Other values: the first ones along the first dimension again and again."""
    return tensor[:1].expand_as(tensor) if tensor.dim() else tensor


def _empty(tensor: torch.Tensor) -> torch.Tensor:
    """Nothing along the first dimension (most ops refuse some of their samples then)."""
    return tensor[:0] if tensor.dim() else tensor


def _scalar(tensor: torch.Tensor) -> torch.Tensor:
    """The first element alone, without dimensions, somewhere in a storage."""
    return tensor.flatten()[0] if tensor.numel() else tensor


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": _transposed,
    "offset": _spread,
    "channels_last": _channels_last,
    "expanded": _expanded,
    "zero_size": _empty,
    "zero_dim": _scalar,
}


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in a nested result."""
    for leaf in tree_flatten(value)[0]:
        if isinstance(leaf, torch.Tensor):
            yield leaf
