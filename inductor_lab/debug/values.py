"""Inputs to call something with again and again, and everything that a call leaves behind.

A call is judged by its results, by what it has written to its inputs, and by the gradients of its
results: `Outcome` has them all by name.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import torch

from inductor_lab.torch_api import pytree

T = TypeVar("T")
Outcome: TypeAlias = Mapping[str, Any]
"""`"result 0"`, `"x after the call"`, `"gradient of x"` → a tensor, or a plain value."""

WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
"""A dtype → the one in which the referee computes."""


def copies(values: Sequence[Any]) -> list[Any]:
    """The same values in memory of their own; tensors that share a storage share the copy's."""
    plain = [v.detach() if isinstance(v, torch.Tensor) else v for v in values]
    copied = copy.deepcopy(plain)
    return [_like(old, new) for old, new in zip(values, copied, strict=True)]


def copied_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Arguments of a user's function in memory of their own; modules stay what they are."""
    leaves, tree = pytree.tree_flatten((args, dict(kwargs)))
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    for place, copied in zip(places, copies([leaves[n] for n in places]), strict=True):
        leaves[place] = copied
    found: tuple[Any, Any] = pytree.tree_unflatten(leaves, tree)
    return found


def widened(values: Sequence[Any]) -> list[Any]:
    """Copies in float64, laid out as they were, sharing memory where they shared it."""
    storages: dict[int, torch.Tensor] = {}
    return [_wide(v, storages) if isinstance(v, torch.Tensor) else v for v in values]


def _wide(value: torch.Tensor, storages: dict[int, torch.Tensor]) -> torch.Tensor:
    dtype = WIDE.get(value.dtype, value.dtype)
    if value.layout is not torch.strided or value.is_conj() or value.is_neg():
        return _like(value, value.detach().clone().to(dtype))
    storage = value.untyped_storage()
    if storage._cdata not in storages:
        whole = value.detach().new_empty(0).set_(storage)  
        storages[storage._cdata] = whole.to(dtype, copy=True)
    flat = storages[storage._cdata]
    if flat.dtype is not dtype:
        return _like(value, value.detach().clone().to(dtype))
    return _like(value, flat.as_strided(value.shape, value.stride(), value.storage_offset()))


def _like(old: T, new: T) -> T:
    if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor) and old.requires_grad:
        new.requires_grad_()
    return new


def tangent(value: torch.Tensor, number: int) -> torch.Tensor:
    """The gradient that comes back for a result: 1 for a scalar, numbers near 1 for others."""
    if value.dim() == 0:
        return torch.ones_like(value)
    generator = torch.Generator().manual_seed(number)
    made = torch.rand(value.shape, generator=generator) + 0.5
    return made.to(torch.bfloat16).to(value.device, value.dtype)


def call(
    function: Callable[..., Any], inputs: Sequence[Any], names: Sequence[str], with_grad: bool
) -> dict[str, Any]:
    """Call it once; `inputs` are its to write to."""
    inputs = list(inputs)
    leaves = [v for v in inputs if isinstance(v, torch.Tensor) and v.requires_grad and with_grad]
    before = [v._version if isinstance(v, torch.Tensor) else 0 for v in inputs]
    # what the user's function computed before is no leaf, so it may be written to
    given = [v.view_as(v) if any(v is leaf for leaf in leaves) else v for v in inputs]
    with torch.set_grad_enabled(with_grad):
        try:
            results = function(*given)
        except RuntimeError as error:
            if "leaf" not in str(error):
                raise
            given = [v.clone() if any(v is leaf for leaf in leaves) else v for v in inputs]
            results = function(*given)
    found = {name: value for name, value in named_results(results)}
    for name, value, then in zip(names, given, before, strict=True):
        if isinstance(value, torch.Tensor) and value._version > then:
            found[f"{name} after the call"] = value.detach()
    if leaves:
        found.update(gradients(found, dict(zip(names, inputs, strict=True))))
    return {n: v.detach() if isinstance(v, torch.Tensor) else v for n, v in found.items()}


def named_results(results: Any) -> Iterator[tuple[str, Any]]:
    """`"result 0"`, ... for everything in what a function returned."""
    for number, value in enumerate(pytree.tree_leaves(results)):
        if value is not None:
            yield f"result {number}", value


def gradients(found: Mapping[str, Any], sources: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The gradients of a call's results by the tensors in `sources` that require one."""
    wanted = {
        n: v for n, v in sources.items() if isinstance(v, torch.Tensor) and v.requires_grad
    }  # fmt: skip
    results = [
        v for n, v in found.items()
        if n.startswith("result") and isinstance(v, torch.Tensor) and v.requires_grad
    ]  # fmt: skip
    if not results or not wanted:
        return {}
    given = [tangent(value, number) for number, value in enumerate(results)]
    made = torch.autograd.grad(results, list(wanted.values()), given, allow_unused=True)
    pairs = zip(wanted, made, strict=True)
    return {f"gradient of {name}": gradient for name, gradient in pairs if gradient is not None}
