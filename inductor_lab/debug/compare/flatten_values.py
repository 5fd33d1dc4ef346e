"""What values are made of: plain tensors and numbers, which can be copied and compared.

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
"""Layouts of sparse matrices → the methods that say where their values are."""
ALONE = (
    *(type, BuiltinFunctionType, ModuleType, NoneType, EllipsisType, Enum),
    *(torch.dtype, torch.layout, torch.memory_format),
)
"""What is what it is: such a thing is equal to itself, and there is no other like it."""
_PLAIN = (torch.Tensor, torch.nn.Parameter)


@dataclass(frozen=True)
class NotCompared:
    """Something that says nothing of what is in it; equal to anything else that says nothing."""

    kind: str = field(compare=False)

    def __str__(self) -> str:
        article = "an" if self.kind[:1] in "aeiouAEIOU" else "a"
        return f"{article} {self.kind} cannot be compared"


def is_plain(value: torch.Tensor) -> bool:
    """Is it one piece of memory, with strides, and nothing besides?"""
    return type(value) in _PLAIN and value.layout is torch.strided and not value.is_quantized


def copied(value: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    """The values of a tensor without history in memory of their own; plain tensors that share a
    storage share that of the copy.  `memo` is what deepcopy remembers.  A wrapper that is a view
    becomes the same view of its copied base, of which TorchDynamo guards the sizes."""
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
    """The plain tensors, and facts, that a tensor is made of, each with its name."""
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
    """What is looked into in place of asking whether it is equal to another: mappings and fields of
    dataclasses, whose tensors cannot be asked, and objects that are equal to themselves alone."""
    if isinstance(leaf, torch.Tensor | type):
        return None
    if isinstance(leaf, Mapping):
        return leaf
    if is_dataclass(leaf):
        known = (each.name for each in fields(leaf))
        return {name: getattr(leaf, name) for name in known if hasattr(leaf, name)}
    return None if _says_what_it_is(leaf) else getattr(leaf, "__dict__", None) or None


def _says_what_it_is(leaf: Any) -> bool:
    """Does it compare by value, or is there one of it alone?"""
    compares: Any = type(leaf).__eq__
    return isinstance(leaf, ALONE) or compares is not object.__eq__


def _as_tensor(value: Any) -> Any:
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError):  # texts, objects
        return value.tolist()
