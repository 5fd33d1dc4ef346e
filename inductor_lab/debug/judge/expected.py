"""What the reference computes: as given, in float64, and with perturbed operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.compare.precision import Judged
from inductor_lab.debug.compare.values import Outcome, call, copies, widened
from inductor_lab.debug.judge.applied import Applied, is_differentiable
from inductor_lab.debug.judge.cases import Arguments
from inductor_lab.debug.judge.remote_call import Layout, Results, is_alone, names_of
from inductor_lab.debug.judge.serve_candidate import placed_of
from inductor_lab.debug.perturb import Move, judge_perturbed, reference

SEED = 2026
SHAKES = 6
"""Perturbed calls.  With 3, a few of 100,000 elements had a small effect in each by chance."""


@dataclass(frozen=True)
class Expected:
    """The outcome of the reference for one call.

    spread   the effect of rounding errors on each value
    results  shapes and dtypes of the results
    shares   for each result, the storage of the arguments that it shares; -1 for none
    placed   for each result, whether elements of it share memory, and its device
    alone    whether one tensor is returned, not a container of it
    labels   "result 1" → "the gradient of x", for gradients
    """

    plain: Outcome
    exact: Outcome | None
    spread: Mapping[str, torch.Tensor]
    results: Results
    shares: list[int]
    labels: Mapping[str, str]
    placed: list[tuple[bool, str]]
    alone: bool

    def judge(self, got: Outcome) -> dict[str, Judged]:
        """The verdict about each value of the candidate.

        The sign of a zero does not count.  Where the reference has a NaN, every value that is not
        finite is right, and so it is where a complex number or a gradient is not finite.
        """
        got = {name: _as_nan(value, self.plain.get(name), name in self.labels)
               for name, value in got.items()}  # fmt: skip
        judged = judge_perturbed(got, self.plain, self.exact, self.spread)
        return {name: replace(each, kind="rounding") if each.kind == "sign of zero" else each
                for name, each in judged.items()}  # fmt: skip


def _as_nan(got: Any, plain: Any, is_gradient: bool) -> Any:
    """A tensor with the reference's value where both are not finite, and the reference is a NaN (a
    gradient or a complex number: not finite)."""
    tensors = isinstance(got, torch.Tensor) and isinstance(plain, torch.Tensor)
    if not tensors or got.shape != plain.shape or got.dtype is not plain.dtype:
        return got
    if not (got.dtype.is_floating_point or got.dtype.is_complex):
        return got
    plain = plain.to(got.device)  # the values of a candidate on a GPU come back in main memory
    either = is_gradient or plain.dtype.is_complex
    strange = ~plain.isfinite() if either else plain.isnan()
    return torch.where(~got.isfinite() & strange, plain, got)


def with_leaves(
    function: Applied, args: Arguments
) -> tuple[Callable[..., Any], list[torch.Tensor], list[str]]:
    """A function of the tensors in `args` alone, these tensors, and their names."""
    leaves, tree = pytree.tree_flatten(args)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def of_tensors(*given: torch.Tensor) -> Any:
        rest = iter(given)
        filled = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        return function(*pytree.tree_unflatten(filled, tree))

    return of_tensors, tensors, names_of(function.function, args)


def expected(function: Applied, args: Arguments) -> Expected:
    """Call the reference on copies of the arguments; raises what it raises."""
    of_tensors, tensors, names = with_leaves(function, args)

    def run(move: Move) -> Outcome:
        torch.manual_seed(SEED)
        return call(of_tensors, move(copies(tensors)), names, False)

    with torch.random.fork_rng(devices=[]):
        plain, spread = reference(run, SHAKES)
        try:
            exact = call(of_tensors, widened(tensors), names, False)
        except (RuntimeError, NotImplementedError, TypeError, ValueError):
            exact = None
        inputs = copies(tensors)
        returned = of_tensors(*inputs)
        results, shares, leaves = _layout(returned, inputs)
    labels: dict[str, str] = {}
    if function.gradients is not None:
        sources = [name for name, one in zip(names, tensors, strict=True) if is_differentiable(one)]
        shares = shares[: len(shares) - len(sources)]
        labels = {f"result {leaves - len(sources) + n}": f"the gradient of {name}"
                  for n, name in enumerate(sources)}  # fmt: skip
    # single gradients cancel: an element may be as wrong as the one that rounding changes most
    spread = {name: _largest(one) if name in labels else one for name, one in spread.items()}
    placed = [placed_of(leaf) for leaf in pytree.tree_leaves(returned)]
    alone = is_alone(returned, function.gradients is not None)
    return Expected(plain, exact, spread, results, shares, labels, placed, alone)


def _largest(spread: torch.Tensor) -> torch.Tensor:
    finite = spread[spread.isfinite()]
    largest = finite.max() if finite.numel() else spread.new_zeros(())
    return torch.where(spread.isfinite(), largest, spread)


def _layout(value: Any, inputs: list[Any]) -> tuple[Results, list[int], int]:
    """The results, the storages of arguments that they share, and how many values are returned."""
    owners = {one.untyped_storage()._cdata: number
              for number, one in enumerate(Layout.of(inputs).storages)}  # fmt: skip
    leaves = pytree.tree_leaves(value)
    returned = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    shares = [owners.get(one.untyped_storage()._cdata, -1) for one in returned]
    return [(tuple(one.shape), one.dtype) for one in returned], shares, len(leaves)
