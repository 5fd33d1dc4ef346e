"""Is a compiled result right?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_flatten


def difference(actual: Any, expected: Any, tolerance: dict[str, float]) -> str:
    """What differs between two nested results; "" if nothing does."""
    mine, theirs = tree_flatten(actual)[0], tree_flatten(expected)[0]
    if len(mine) != len(theirs):
        return f"{len(mine)} results instead of {len(theirs)}"
    for a, b in zip(mine, theirs, strict=True):
        said = _difference_of_leaves(a, b, tolerance)
        if said:
            return said
    return ""


def _difference_of_leaves(actual: Any, expected: Any, tolerance: dict[str, float]) -> str:
    if not isinstance(expected, torch.Tensor):
        same = type(actual) is type(expected) and (actual == expected or actual != actual)
        return "" if same else f"{actual!r} instead of {expected!r}"
    said = different_facts(actual, expected)
    if said:
        return said
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True, **tolerance)
    except AssertionError as wrong:
        return " ".join(str(wrong).split())
    return ""


def different_facts(actual: Any, expected: torch.Tensor) -> str:
    """A difference in kind, dtype, sizes or device."""
    if not isinstance(actual, torch.Tensor):
        return f"{type(actual).__name__} instead of a tensor"
    for name in ("dtype", "shape", "device", "layout"):
        mine, theirs = getattr(actual, name), getattr(expected, name)
        if mine != theirs:
            return f"{name} {mine} instead of {theirs}"
    return ""


def same_facts(actual: Any, expected: Any) -> str:
    """For random ops: the difference in dtypes and sizes alone."""
    mine, theirs = tree_flatten(actual)[0], tree_flatten(expected)[0]
    if len(mine) != len(theirs):
        return f"{len(mine)} results instead of {len(theirs)}"
    pairs = zip(mine, theirs, strict=True)
    said = [different_facts(a, b) for a, b in pairs if isinstance(b, torch.Tensor)]
    return next(filter(None, said), "")


def strides(value: Any) -> list[tuple[int, ...]]:
    """The strides of every tensor of a result, where they matter (sizes above 1)."""
    return [
        tuple(s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1 and t.numel())
        for t in tree_flatten(value)[0]
        if isinstance(t, torch.Tensor) and t.layout is torch.strided
    ]


def sharing(value: Any) -> list[int]:
    """For each tensor, the number of the first one that lies in the same memory."""
    first: dict[int, int] = {}
    groups = []
    for n, leaf in enumerate(tree_flatten(value)[0]):
        plain = isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided
        if plain and leaf.numel() and not leaf._is_zerotensor():  # which has no memory at all
            groups.append(first.setdefault(leaf.untyped_storage().data_ptr(), n))
    return groups


def nearer(
    actual: Any, expected: Any, exact: Any, tolerance: dict[str, float], slack: float = 2.0
) -> bool:
    """Is `actual` as near to the result in double precision as eager's is?

    It may be off by the tolerance, and by `slack` times what eager itself is off by.
    """
    leaves: Sequence[Sequence[Any]] = [tree_flatten(v)[0] for v in (actual, expected, exact)]
    if len({len(flat) for flat in leaves}) != 1:
        return False
    return all(
        _nearer(*three, tolerance, slack)
        for three in zip(*leaves, strict=True)
        if isinstance(three[1], torch.Tensor)
    )


def _nearer(
    actual: Any,
    expected: torch.Tensor,
    exact: Any,
    tolerance: dict[str, float],
    slack: float,
) -> bool:
    if different_facts(actual, expected) or not isinstance(exact, torch.Tensor):
        return False
    if exact.shape != expected.shape or expected.layout is not torch.strided:
        return False
    if not (expected.dtype.is_floating_point or expected.dtype.is_complex):
        return bool(torch.equal(actual, expected))
    wide = torch.complex128 if expected.dtype.is_complex else torch.float64
    a, b, x = (t.detach().to(wide) for t in (actual, expected, exact))
    same = (a == x) | (a.isnan() & x.isnan()) | (a.isnan() & b.isnan()) | (a == b)
    off = (b - x).abs()
    off = torch.where(off.isfinite(), off, 0.0)
    rtol, atol = tolerance.get("rtol", _RTOL[expected.dtype]), tolerance.get("atol", 1e-5)
    allowed = atol + rtol * x.abs() + slack * (off.max() if off.numel() else 0.0)
    return bool((same | ((a - x).abs() <= allowed)).all())


_RTOL = {
    torch.float64: 1e-7, torch.float32: 1.3e-6, torch.float16: 1e-3, torch.bfloat16: 1.6e-2,
    torch.complex64: 1.3e-6, torch.complex128: 1e-7,
}  # fmt: skip
