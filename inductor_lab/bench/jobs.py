"""The work that is timed and compared: a call, with its gradient if requested."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.debug.compare.flatten_values import leaves_in, tensors_in

TOLERANCES = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float64: 1e-9}
"""Largest difference, relative to 1 + |expected|, that still counts as agreement."""

USUAL_TOLERANCE = 1e-4


class Job:
    """What is timed: the call alone, or results and the gradients of all leaves if `backward`.

    The gradient is that of the sum of all results.  The first two runs find the leaves of the
    autograd graph, arguments and parameters alike.  Later runs reuse them, unless each call creates
    a new leaf.

    backward  None: the first run checks whether a result requires grad.  A training step, which
              computes its own gradient, has none.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        backward: bool | None = False,
    ) -> None:
        self.backward = backward
        self._call, self._given = partial(fn, *args, **kwargs), (args, kwargs)
        self._leaves: list[torch.Tensor] = []
        self._first: list[weakref.ref[torch.Tensor]] = []
        self._ones: list[torch.Tensor] = []

    def __call__(self) -> Any:
        results = self._call()
        if self.backward is False:
            return results
        values = list(values_in(results))
        tensors = [v for v in values if isinstance(v, torch.Tensor) and v.requires_grad]
        leaves = self._leaves or self._look(tensors)
        if not self.backward:
            return results
        gradients = torch.autograd.grad(tensors, leaves, self._ones)
        return [*(v.detach() if isinstance(v, torch.Tensor) else v for v in values), *gradients]

    def _look(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The leaves; raises BadArguments if a gradient was requested and there is none."""
        gone = is_gone(tensors)
        if self.backward is None:
            self.backward = bool(tensors) and not gone
        elif gone:
            what = "the function calls backward itself, or overwrites values its gradient needs"
            raise BadArguments(f"no gradient to measure: {what}",
                               todo="leave out backward=True")  # fmt: skip
        elif not tensors:
            what = "no gradient to measure: no argument and no parameter requires one"
            raise BadArguments(what, todo="for example torch.randn(1000, requires_grad=True)")
        leaves = in_order(leaves_of(tensors), self._given)
        self._ones = [torch.ones_like(tensor) for tensor in tensors]
        if self._first and all(leaf() is not None for leaf in self._first):
            self._leaves = leaves
        self._first = self._first or [weakref.ref(leaf) for leaf in leaves]
        return leaves


def is_gone(results: Sequence[torch.Tensor]) -> bool:
    """Has autograd freed the saved tensors of these results?

    A backward frees them; reading them afterwards raises.
    """
    return any(map(_has_lost, nodes_of(results)))


def _has_lost(node: Any) -> bool:
    try:
        for name in dir(node):
            if name == "saved_tensors" or name.startswith("_saved_"):
                getattr(node, name)
    except RuntimeError:
        return True
    return False


def values_in(value: Any) -> Iterator[Any]:
    """Every tensor and plain value in containers, dataclasses and objects."""
    yield from (leaf for _, leaf in leaves_in("", value) if leaf is not None)


def nodes_of(results: Sequence[torch.Tensor]) -> Iterator[Any]:
    """The nodes of the autograd graph that a backward from `results` would visit."""
    waiting = [result.grad_fn for result in results if result.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        yield node
        below = [n for n, _ in node.next_functions if n is not None and n not in seen]
        seen.update(below)
        waiting += below


def leaves_of(results: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors whose gradients a backward from `results` would accumulate."""
    ends = [node.variable for node in nodes_of(results) if hasattr(node, "variable")]
    return [*(result for result in results if result.grad_fn is None), *ends]


def in_order(leaves: Sequence[torch.Tensor], given: Any) -> list[torch.Tensor]:
    """Arguments in call order, then parameters, so that all compilers have the same order.

    A compiled function has a different autograd graph, with its leaves in a different order.
    """
    places = {id(value): n for n, value in enumerate(values_in(given))}
    return sorted(leaves, key=lambda leaf: (places.get(id(leaf), len(places)), id(leaf)))


def difference(expected: Any, found: Any) -> float:
    """The largest |found - expected| / (1 + |expected|) of all values in two results.

    inf if their number, a shape or a dtype differs.
    """
    left, right = ([part for value in values_in(results) for part in _parts(value)]
                   for results in (expected, found))  # fmt: skip
    if len(left) != len(right):
        return float("inf")
    return max((_gap(a, b) for a, b in zip(left, right, strict=True)), default=0.0)


def tolerance(expected: Any) -> float:
    """The largest difference that counts as rounding, by the least precise dtype of the results."""
    values = [value for value in values_in(expected) if isinstance(value, torch.Tensor)]
    found = (TOLERANCES.get(value.dtype, USUAL_TOLERANCE) for value in values)
    return max(found, default=USUAL_TOLERANCE)


def _parts(value: Any) -> list[Any]:
    """The plain tensors that a tensor consists of."""
    return [v for _, v in tensors_in("", value)] if isinstance(value, torch.Tensor) else [value]


def _gap(expected: Any, found: Any) -> float:
    if not all(isinstance(v, torch.Tensor | int | float | complex) for v in (expected, found)):
        return 0.0 if expected == found else float("inf")
    left, right = map(torch.as_tensor, (expected, found))
    if left.dtype != right.dtype or left.shape != right.shape:
        return float("inf")
    wide = torch.complex128 if left.is_complex() else torch.float64
    left, right = left.detach().to(wide), right.detach().to(wide)
    differs = ~((left == right) | (left.isnan() & right.isnan()))
    if not differs.any():
        return 0.0
    gap = ((left - right).abs() / (1 + left.abs()))[differs].max().item()
    return gap if gap == gap else float("inf")
