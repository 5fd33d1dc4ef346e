"""Copies of the inputs of a call, and everything that a call produces.

Calls are compared by their results, the values that they write to inputs, and the gradients of
their results.  An `Outcome` has all of these by name.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import torch

from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.compare.flatten_values import copied, is_plain, leaves_in, tensors_in
from inductor_lab.debug.compare.vector_math import settle_vector_math

T = TypeVar("T")
Outcome: TypeAlias = Mapping[str, Any]
"""`"result 0"`, `"x after the call"`, `"gradient of x"` → a tensor, or a plain value."""

AFTER = " after the call"
"""Suffix of the name of an argument, or of state, to which a call has written."""

WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
"""A dtype → the dtype in which the reference is computed."""


def copies(values: Sequence[Any]) -> list[Any]:
    """Copies of values in new memory; tensors that share a storage share the copied storage.

    Copies are made before calls are compared, so the vector functions of MKL are initialized here:
    the first call must be as exact as later ones (`vector_math.py`).
    """
    settle_vector_math()
    memo: dict[int, Any] = {}
    return [
        _like(v, copied(v, memo) if isinstance(v, torch.Tensor) else copy.deepcopy(v, memo))
        for v in values
    ]


def copied_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Copies of the arguments of a user's function in new memory.

    Modules are not copied.  A tensor that is passed twice stays one tensor, because TorchDynamo
    guards on that.
    """
    leaves, tree = pytree.tree_flatten((args, dict(kwargs)))
    given = {id(leaf): leaf for leaf in leaves if isinstance(leaf, torch.Tensor)}
    made = dict(zip(given, copies(list(given.values())), strict=True))
    found: tuple[Any, Any] = pytree.tree_unflatten([made.get(id(v), v) for v in leaves], tree)
    return found


def widened(values: Sequence[Any]) -> list[Any]:
    """Copies in float64 with the same strides and the same sharing of memory."""
    storages: dict[int, torch.Tensor] = {}
    return [_wide(v, storages) if isinstance(v, torch.Tensor) else v for v in values]


def _wide(value: torch.Tensor, storages: dict[int, torch.Tensor]) -> torch.Tensor:
    dtype = WIDE.get(value.dtype, value.dtype)
    if not is_plain(value) or value.is_conj() or value.is_neg():
        return _like(value, copied(value, {}).to(dtype))
    storage = value.untyped_storage()
    if storage._cdata not in storages:
        storages[storage._cdata] = whole_storage(value).to(dtype, copy=True)
    flat = storages[storage._cdata]
    if flat.dtype is not dtype:
        return _like(value, value.detach().clone().to(dtype))
    return _like(value, flat.as_strided(value.shape, value.stride(), value.storage_offset()))


def whole_storage(value: torch.Tensor) -> torch.Tensor:
    """All elements of a tensor's storage as a tensor of shape (n,)."""
    return value.detach().new_empty(0).set_(value.untyped_storage())


def _like(old: T, new: T) -> T:
    if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor) and old.requires_grad:
        new.requires_grad_()
    return new


def tangent(value: torch.Tensor, number: int) -> torch.Tensor:
    """The gradient of the loss by a result: 1 for a scalar, numbers near 1 for other shapes."""
    if value.dim() == 0 or not is_plain(value):
        return torch.ones_like(value)
    generator = torch.Generator().manual_seed(number)
    made = torch.rand(value.shape, generator=generator) + 0.5
    return made.to(torch.bfloat16).to(value.device, value.dtype)


class Before:
    """Copies of values before a call, to find those that the call wrote to.

    Version counters are not enough: `x.data.fill_(1)` does not change the version of `x`.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self._kept = [_kept(value) for value in values]

    def written(self, values: Sequence[Any]) -> Iterator[tuple[int, torch.Tensor]]:
        """The index and the new value of each value that changed."""
        for number, (value, kept) in enumerate(zip(values, self._kept, strict=True)):
            if isinstance(value, torch.Tensor) and _differs(value, kept):
                yield number, value


def _kept(value: Any) -> Any:
    comparable = isinstance(value, torch.Tensor) and is_plain(value) and not value.is_meta
    if comparable:
        return value.detach().clone()
    return value._version if isinstance(value, torch.Tensor) else None


def _differs(value: torch.Tensor, kept: Any) -> bool:
    if not isinstance(kept, torch.Tensor):
        return bool(value._version > kept)
    return value.shape != kept.shape or not bool(
        ((value.detach() == kept) | (value.isnan() & kept.isnan())).all()
    )


def call(
    function: Callable[..., Any], inputs: Sequence[Any], names: Sequence[str], with_grad: bool
) -> dict[str, Any]:
    """Call `fn` once; it may write to `inputs`."""
    inputs = list(inputs)
    leaves = [v for v in inputs if isinstance(v, torch.Tensor) and v.requires_grad and with_grad]
    before = Before(inputs)
    # values that the user's function computed before are not leaves, so in-place writes are allowed
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
    found |= {f"{names[n]}{AFTER}": value.detach() for n, value in before.written(given)}
    if leaves:
        found.update(gradients(found, dict(zip(names, inputs, strict=True))))
    return plain_tensors(found)


def named_results(results: Any) -> Iterator[tuple[str, Any]]:
    """`"result 0"`, ... for every value that a function returned."""
    for number, value in enumerate(pytree.tree_leaves(results)):
        yield from ((n, leaf) for n, leaf in leaves_in(f"result {number}", value)
                    if leaf is not None)  # fmt: skip


def plain_tensors(found: Mapping[str, Any], kept: bool = False) -> dict[str, Any]:
    """Flatten values into plain tensors without autograd history.

    With `kept`, the tensors are copies that later writes do not change.
    """
    parts: list[tuple[str, Any]] = []
    for name, value in found.items():
        whole = not isinstance(value, torch.Tensor)
        parts += [(name, value)] if whole else tensors_in(name, value)
    plain = ((n, v.detach() if isinstance(v, torch.Tensor) else v) for n, v in parts)
    return {n: v.clone() if kept and isinstance(v, torch.Tensor) else v for n, v in plain}


def gradients(found: Mapping[str, Any], sources: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The gradients of a call's results by the tensors in `sources` that require a gradient."""
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
