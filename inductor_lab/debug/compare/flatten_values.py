"""Flatten values into plain tensors and numbers, which can be copied and compared.

    Found(scores, count=3)         result 0.scores, result 0.count
    a nested tensor (torch.jagged)  result 0.values, result 0.offsets
    a sparse matrix (CSR)           result 0.crow_indices, result 0.col_indices, result 0.values
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from types import BuiltinFunctionType, EllipsisType, ModuleType, NoneType
from typing import Any

import numpy as np
import torch

from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.compiler.torch_door.torch_names import optional

view_func = optional("torch._C.TensorBase._view_func")

COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}
"""Sparse layout → the methods that return the positions of its values."""
ALONE = (
    *(type, BuiltinFunctionType, ModuleType, NoneType, EllipsisType, Enum),
    *(torch.dtype, torch.layout, torch.memory_format),
)
"""Types whose values are equal only to themselves."""
_PLAIN = (torch.Tensor, torch.nn.Parameter)


@dataclass(frozen=True)
class NotCompared:
    """Stands for a value whose content cannot be read; equal to any other of this class."""

    kind: str = field(compare=False)

    def __str__(self) -> str:
        article = "an" if self.kind[:1] in "aeiouAEIOU" else "a"
        return f"{article} {self.kind} cannot be compared"


def is_plain(value: torch.Tensor) -> bool:
    """Does the tensor consist of one storage with strides, and nothing else?"""
    return type(value) in _PLAIN and value.layout is torch.strided and not value.is_quantized


def copied(value: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    """A copy of a tensor in new memory, without autograd history.

    Plain tensors that share a storage also share the storage of the copy.  `memo` is the memo of
    `deepcopy`.  A wrapper that is a view becomes the same view of its copied base, because
    TorchDynamo guards on the sizes of the base.
    """
    if view_func is not None and _is_wrapper(value) and value._base is not None:
        base = copied(value._base, memo).requires_grad_(value._base.requires_grad)
        with torch.enable_grad():
            view: torch.Tensor = view_func(value, base)
        return view
    made = value.detach()
    if is_plain(made):
        return copy.deepcopy(made, memo)
    made = made.clone()
    if not _is_wrapper(value):
        for name, told in vars(value).items():
            vars(made).setdefault(name, told)
    return made


def _is_wrapper(value: Any) -> bool:
    return hasattr(value, "__tensor_flatten__")


def tensors_in(name: str, value: torch.Tensor) -> Iterator[tuple[str, Any]]:
    """The plain tensors and properties that a tensor consists of, with their names."""
    if is_plain(value):
        yield name, value
    elif _is_wrapper(value):
        wrapper: Any = value
        for part in wrapper.__tensor_flatten__()[0]:
            yield from tensors_in(f"{name}.{part.lstrip('_')}", getattr(value, part))
    elif value.layout is torch.sparse_coo:
        value = value.detach().coalesce()
        yield f"{name}.indices", value.indices()
        yield f"{name}.values", value.values()
    elif value.layout in COMPRESSED:
        for part in (*COMPRESSED[value.layout], "values"):
            yield f"{name}.{part}", getattr(value.detach(), part)()
    elif value.layout is not torch.strided:
        yield name, value.detach().to_dense()
    elif value.is_quantized:
        yield f"{name}.int_repr", value.int_repr()
        yield from ((f"{name}.{part}", fact) for part, fact in _scales(value))
    elif type(value).__torch_dispatch__ is torch.Tensor.__torch_dispatch__:
        yield name, value.as_subclass(torch.Tensor)
    else:
        yield name, NotCompared(type(value).__name__)


def _scales(value: torch.Tensor) -> Iterator[tuple[str, Any]]:
    if value.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        yield "q_scale", value.q_scale()
        yield "q_zero_point", value.q_zero_point()
    else:
        yield "q_per_channel_scales", value.q_per_channel_scales()
        yield "q_per_channel_zero_points", value.q_per_channel_zero_points()


def leaves_in(name: str, value: Any, within: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """The tensors and plain values in containers, dataclasses and other objects."""
    for path, leaf in pytree.tree_flatten_with_path(value)[0]:
        found = f"{name}{pytree.keystr(path)}"
        inner = _attributes(leaf)
        if isinstance(leaf, np.ndarray | np.generic):
            yield found, _as_tensor(leaf)
        elif inner is None:
            yield found, leaf if _says_what_it_is(leaf) else NotCompared(type(leaf).__name__)
        elif id(leaf) not in within:
            for attribute, item in inner.items():
                yield from leaves_in(f"{found}.{attribute}", item, (*within, id(leaf)))


def _attributes(leaf: Any) -> Mapping[str, Any] | None:
    """The items of a mapping, the fields of a dataclass, or the attributes of an object.

    These are compared one by one, because `==` of a container of tensors fails, and because an
    object without `__eq__` is equal only to itself.
    """
    if isinstance(leaf, torch.Tensor | type):
        return None
    if isinstance(leaf, Mapping):
        return leaf
    if is_dataclass(leaf):
        known = (each.name for each in fields(leaf))
        return {name: getattr(leaf, name) for name in known if hasattr(leaf, name)}
    return None if _says_what_it_is(leaf) else getattr(leaf, "__dict__", None) or None


def _says_what_it_is(leaf: Any) -> bool:
    """Is `leaf` compared by value, or is it a singleton?"""
    compares: Any = type(leaf).__eq__
    return isinstance(leaf, ALONE) or compares is not object.__eq__


def _as_tensor(value: Any) -> Any:
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError):  # strings and other objects
        return value.tolist()
