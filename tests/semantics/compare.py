"""Compare a compiled call with the same call in eager mode: results, arguments, gradients,
aliasing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

import inductor_lab as lab

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def wave(*size: int) -> torch.Tensor:
    """Distinct numbers of both signs."""
    count = torch.Size(size).numel()
    return torch.arange(1.0, 1 + count).reshape(size).sin()


def leaves(result: Any) -> list[Any]:
    if dataclasses.is_dataclass(result):
        result = [getattr(result, field.name) for field in dataclasses.fields(result)]
    return tree_leaves(result)


def assert_same(found: Any, expected: Any, strides: bool = False, **tolerance: float) -> None:
    ours, theirs = leaves(found), leaves(expected)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(b, torch.Tensor):
            assert_close(a, b, equal_nan=True, **(tolerance or TOLERANCE))
            assert not strides or b.numel() < 2 or same_strides(a, b), (a.stride(), b.stride())
        else:
            assert type(a) is type(b) and a == b


def same_strides(a: torch.Tensor, b: torch.Tensor) -> bool:
    pairs = zip(a.shape, a.stride(), b.stride(), strict=True)
    return all(size == 1 or one == other for size, one, other in pairs)


def sharing(*values: Any) -> list[tuple[int, int]]:
    """The pairs of tensors that share storage, by position."""
    places = [
        leaf.untyped_storage().data_ptr()
        for leaf in leaves(list(map(leaves, values)))
        if isinstance(leaf, torch.Tensor)
    ]
    return [(i, j) for j in range(len(places)) for i in range(j) if places[i] == places[j] != 0]


def check_call(function: Callable[..., Any], make: Callable[[], Sequence[Any]], **options: Any):
    """Compares results with their strides, the arguments after the call, and which tensors share
    memory."""
    ours, theirs = make(), make()
    expected = function(*theirs)
    found = lab.compile(function, **options)(*ours)
    assert_same(found, expected, strides=True)
    assert_same(ours, theirs)
    assert sharing(found, ours) == sharing(expected, theirs)


def weighted(result: Any) -> torch.Tensor:
    """A number that depends on every element of every result that has a gradient."""
    parts = [t for t in leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
    return sum((t * torch.arange(t.numel()).view(t.shape).cos()).sum() for t in parts)


def with_gradients(function: Callable[..., Any], given: Sequence[torch.Tensor]) -> list[Any]:
    given = [x.clone().requires_grad_() if x.is_floating_point() else x.clone() for x in given]
    result = function(*given)
    weighted(result).backward()
    return [result, *(x.grad for x in given)]


def check_gradients(function: Callable[..., Any], *given: torch.Tensor, **options: Any) -> None:
    expected = with_gradients(function, given)
    assert_same(with_gradients(lab.compile(function, **options), given), expected)
