"""Operators over lists of tensors, decomposed into one call for each tensor.

    aten._foreach_add([a, b], [c, d])   →   [aten.add(a, c), aten.add(b, d)]

The step of an optimizer consists of them.  The calls for one tensor are then fused into one loop
nest, and the nests of all tensors into one kernel (`schedule/fusion/combo.py`).

Inductor: `lowering.py`, `make_foreach_pointwise`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten

ELEMENTWISE = """abs acos add asin atan ceil clamp_max clamp_min clone copy cos cosh div erf erfc
    exp expm1 floor frac lerp lgamma log log10 log1p log2 max mm mul neg pow reciprocal round rsqrt
    sigmoid sign sin sinh sqrt sub tan tanh trunc""".split()
"""`_foreach_NAME` is `NAME` of each tensor, with the same arguments in the same order."""


def _mapped(function: Callable[..., Any]) -> Callable[..., list[Any]]:
    """`function` of each tensor; lists are indexed, all other arguments are the same for each
    call."""

    def of_lists(*args: Any, **kwargs: Any) -> list[Any]:
        count = next(len(a) for a in args if isinstance(a, list | tuple))

        def at(value: Any, place: int) -> Any:
            return value[place] if isinstance(value, list | tuple) else value

        return [
            function(*(at(a, k) for a in args), **{name: at(v, k) for name, v in kwargs.items()})
            for k in range(count)
        ]

    return of_lists


def _extreme(of_tensors: Any, of_scalar: Any) -> Callable[..., Any]:
    """The maximum or minimum of a tensor and another tensor or a number."""

    def extreme(x: torch.Tensor, other: Any) -> Any:
        return (of_tensors if isinstance(other, torch.Tensor) else of_scalar)(x, other)

    return extreme


def _scaled(function: Any) -> Callable[..., Any]:
    """addcmul and addcdiv take their factor as a keyword argument."""
    return lambda x, one, other, value=1: function(x, one, other, value=value)


def _norm(x: torch.Tensor, order: Any = 2, dtype: torch.dtype | None = None) -> Any:
    return aten.linalg_vector_norm(x, order, dtype=dtype)


SPECIAL: dict[str, Callable[..., Any]] = {
    "addcdiv": _scaled(aten.addcdiv),
    "addcmul": _scaled(aten.addcmul),
    "maximum": _extreme(aten.maximum, aten.clamp_min),
    "minimum": _extreme(aten.minimum, aten.clamp_max),
    "norm": _norm,
    "zero": aten.zeros_like,
}
"""The definitions of `_foreach_NAME` that is not simply `NAME`."""


def foreach_decompositions() -> dict[Any, Callable[..., Any]]:
    """Overload → one call for each tensor, for the operators of this version of torch.

    addcdiv and addcmul with their factors in a tensor are left to ATen.
    """
    functions = {name: getattr(aten, name) for name in ELEMENTWISE if hasattr(aten, name)}
    table = {}
    for name, function in (functions | SPECIAL).items():
        packet = getattr(aten, f"_foreach_{name}", None)
        for overload in packet.overloads() if packet is not None else ():
            op = getattr(packet, overload)
            in_tensor = name.startswith("addc") and overload == "Tensor"
            if not op._schema.is_mutable and not in_tensor:
                table[op] = _mapped(function)
    return table
