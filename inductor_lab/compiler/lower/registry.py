"""The registry: operator → the function that lowers it.

A lowering takes the `Builder` and the operator's own arguments (tensors as `TensorValue`, the rest
as in the graph) and returns the value of the node:

    @lowers(aten.view.default)
    def view(build, x, size):
        return reshape(x, size)

Inductor: `lowering.py`, `register_lowering` and its global `lowerings`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

Operator: TypeAlias = Any
"""An overload, such as `torch.ops.aten.sin.default`."""

Lowering: TypeAlias = Callable[..., Any]
"""`lowering(build, *args, **kwargs)`; a TensorValue, or a tuple of them and None."""

Registered = TypeVar("Registered", bound=Lowering)

LOWERINGS: dict[Operator, Lowering] = {}
"""All our lowerings; `@lowers` adds them when the families are imported."""


def lowers(*operators: Operator) -> Callable[[Registered], Registered]:
    """Register a lowering for some overloads.

    Raises ValueError if an overload already has a lowering.  The same function may be registered
    again (a notebook cell that runs twice).
    """

    def register(lowering: Registered) -> Registered:
        for operator in operators:
            known = LOWERINGS.get(operator)
            if known is not None and _name(known) != _name(lowering):
                raise ValueError(f"{operator} has a lowering already")
            LOWERINGS[operator] = lowering
        return lowering

    return register


def _name(lowering: Lowering) -> object:
    name = getattr(lowering, "__qualname__", None)
    return lowering if name is None else (lowering.__module__, name)
