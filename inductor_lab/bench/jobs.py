"""The work that is timed and compared: a call, and its gradient where that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from inductor_lab.errors import BadArguments

TOLERANCES = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float64: 1e-9}
"""Largest difference, relative to 1 + |expected|, that still counts as agreement."""

USUAL_TOLERANCE = 1e-4


def job(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], backward: bool = False
) -> Callable[[], Any]:
    """What is timed: the call alone, or results and the gradients of all leaves if `backward`.

    The gradient is that of the sum of all results.  Leaves are found at the ends of the autograd
    graph, arguments and parameters alike, in the first run; later ones do not look again.
    """
    call = partial(fn, *args, **kwargs)
    if not backward:
        return call
    ends: list[list[torch.Tensor]] = []

    def run() -> list[Any]:
        results = list(values_in(call()))
        tensors = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
        if not ends:
            leaves = in_order(leaves_of(tensors), (args, kwargs))
            if not leaves:
                what = "no gradient to measure: no argument and no parameter requires one"
                raise BadArguments(what, todo="for example torch.randn(1000, requires_grad=True)")
            ends.extend((leaves, [torch.ones_like(tensor) for tensor in tensors]))
        try:
            gradients = torch.autograd.grad(tensors, ends[0], ends[1])
        except RuntimeError as error:
            if "backward through the graph a second time" not in str(error):
                raise
            what = "no gradient to measure: the function calls backward itself"
            raise BadArguments(what, todo="leave out backward=True: its call has it all") from error
        return [*(r.detach() if isinstance(r, torch.Tensor) else r for r in results), *gradients]

    return run


def values_in(value: Any) -> Iterator[Any]:
    """Every tensor, array and number in nested lists, tuples and mappings."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from values_in(item)
    elif value is not None:
        yield value


def leaves_of(results: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors whose gradients a backward from `results` would accumulate."""
    found = [result for result in results if result.grad_fn is None]
    waiting = [result.grad_fn for result in results if result.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if hasattr(node, "variable"):
            found.append(node.variable)
        below = [n for n, _ in node.next_functions if n is not None and n not in seen]
        seen.update(below)
        waiting += below
    return found


def in_order(leaves: Sequence[torch.Tensor], given: Any) -> list[torch.Tensor]:
    """Arguments as they were given, then parameters: the same order for everybody who shares them.

    A compiled function has another autograd graph, with its leaves in another order.
    """
    places = {id(value): n for n, value in enumerate(values_in(given))}
    return sorted(leaves, key=lambda leaf: (places.get(id(leaf), len(places)), id(leaf)))


def difference(expected: Any, found: Any) -> float:
    """The largest |found - expected| / (1 + |expected|) of all values in two results.

    inf where their number, a shape or a dtype differ.
    """
    left, right = list(values_in(expected)), list(values_in(found))
    if len(left) != len(right):
        return float("inf")
    return max((_gap(a, b) for a, b in zip(left, right, strict=True)), default=0.0)


def tolerance(expected: Any) -> float:
    """What difference is rounding, by the coarsest dtype among the results."""
    values = [value for value in values_in(expected) if isinstance(value, torch.Tensor)]
    found = (TOLERANCES.get(value.dtype, USUAL_TOLERANCE) for value in values)
    return max(found, default=USUAL_TOLERANCE)


def _gap(expected: Any, found: Any) -> float:
    left, right = (torch.as_tensor(np.asarray(v) if not isinstance(v, torch.Tensor) else v)
                   for v in (expected, found))  # fmt: skip
    if left.dtype != right.dtype or left.shape != right.shape:
        return float("inf")
    wide = torch.complex128 if left.is_complex() else torch.float64
    left, right = left.detach().to(wide), right.detach().to(wide)
    differs = ~((left == right) | (left.isnan() & right.isnan()))
    if not differs.any():
        return 0.0
    gap = ((left - right).abs() / (1 + left.abs()))[differs].max().item()
    return gap if gap == gap else float("inf")
