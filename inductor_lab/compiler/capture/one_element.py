"""Does eager mode reject a call because of its dtypes?  The test is a call with one-element
tensors.

    hypot(i64[3, 4], i64[4])   →   torch.hypot(ones i64[1], ones i64[1])     "not implemented for"

An elementwise operator accepts or rejects a call depending on the dtypes of its tensors, on whether
they are 0-dim, and on its numbers.  So a call with the same properties and one element per tensor
gives the same answer.  Answers are cached.

Inductor has no counterpart: it compiles calls that eager mode rejects.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from inductor_lab.compiler.torch_door import torch_api

ANSWERS = 4096
"""The number of cached answers."""


class Element(NamedTuple):
    """The description of a tensor; `rank` 0 means 0-dim."""

    dtype: torch.dtype
    rank: int
    device: str


def is_refused_by_eager(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """Does an elementwise function raise for arguments like these?  Tensors may be fake.

    False if that is unknown: for a device that this machine does not have, or for non-strided
    layouts.
    """
    try:
        return _answer(function, _described(list(args)), _described(dict(kwargs)))
    except (TypeError, NotAvailable):  # an argument is not hashable, or no tensor can replace it
        return False


class NotAvailable(Exception):
    """There is no one-element tensor of this kind on this machine."""


def _described(given: Any) -> Any:
    """An argument as a hashable value without sizes; `_made` converts it back."""
    match given:
        case torch.Tensor():
            kind = given.device.type
            here = kind == "cpu" or (kind == "cuda" and torch.cuda.is_available())
            if given.layout is not torch.strided or given.is_quantized or not here:
                raise NotAvailable
            return Element(given.dtype, min(given.ndim, 1), kind)
        case list() | tuple():
            return (list, *map(_described, given))
        case dict():
            return (dict, *((name, _described(item)) for name, item in given.items()))
        case torch.SymInt():
            return int, torch_api.size_hint(given)
        case torch.SymFloat():
            return float, 1.5
        case torch.SymBool():
            return bool, True
        case _:
            return type(given), given


def _made(described: Any) -> Any:
    if isinstance(described, Element):
        dtype, rank, device = described
        return torch.ones((1,) * rank, device=device).to(dtype)
    kind, *rest = described
    if kind is list:
        return [_made(item) for item in rest]
    if kind is dict:
        return {name: _made(item) for name, item in rest}
    return rest[0]


@lru_cache(ANSWERS)
def _answer(function: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    """Cached for each function and description; these contain types, because 1 == 1.0 == True."""
    with (
        torch_api.without_modes(), torch.no_grad(), torch.autocast("cpu", enabled=False),
        warnings.catch_warnings(),
    ):  # fmt: skip
        warnings.simplefilter("ignore")
        given, named = _made(args), _made(kwargs)
        try:
            function(*given, **named)
        except Exception:
            return True
    return False
