"""Estimate the rounding error of any function by perturbing the result of each operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch

from inductor_lab.compiler.torch_door.torch_api import TorchDispatchMode, pytree
from inductor_lab.debug.blame.stages import spread_of
from inductor_lab.debug.compare.compare_results import judge_all
from inductor_lab.debug.compare.precision import BITS, Judged
from inductor_lab.debug.compare.values import Outcome

SHAKES = 3
STEPS = 2
"""Each element moves by 1 to so many ULP.  By at most half a unit, most would be rounded back to
where they were, and in the sum of two that move alike the effect would vanish."""
HALF_A_UNIT = 0.5 / STEPS


class Perturbed(TorchDispatchMode):
    """Moves each element of the result of each operator by a few ULP, up or down.

    An expanded operand is moved too, each element on its own.  The sum of equal numbers with
    changing signs is 0, but an operator that adds them in another order finds a rounding error.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.random = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        schema = func._schema
        if schema.is_mutable or any(one.alias_info for one in schema.returns):
            return func(*args, **(kwargs or {}))
        moved: dict[int, torch.Tensor] = {}
        result = func(*pytree.tree_map_only(torch.Tensor, partial(self._operand, moved), args),
                      **pytree.tree_map_only(torch.Tensor, partial(self._operand, moved),
                                             kwargs or {}))  # fmt: skip
        given = {
            leaf.untyped_storage()._cdata
            for leaf in pytree.tree_leaves((args, kwargs))
            if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided
        }
        return pytree.tree_map_only(torch.Tensor, lambda t: self._result(t, given), result)

    def _operand(self, moved: dict[int, torch.Tensor], value: torch.Tensor) -> torch.Tensor:
        """The operand, or a moved copy if it is expanded; one copy if it is given twice."""
        if not _is_movable(value) or not _overlaps(value):
            return value
        return moved.setdefault(id(value), self.perturb(value))

    def _result(self, value: torch.Tensor, given: set[int]) -> torch.Tensor:
        if not _is_movable(value) or value.untyped_storage()._cdata in given:
            return value
        return self.perturb(value)

    def perturb(self, value: torch.Tensor) -> torch.Tensor:
        """Zeros, denormal numbers, infinities and NaN stay as they are."""
        if value.is_complex():
            parts = self.perturb(torch.view_as_real(value.resolve_conj()))
            return torch.view_as_complex(parts)
        bits = BITS[value.dtype.itemsize]
        steps = torch.randint(1, STEPS + 1, value.shape, generator=self.random)
        steps *= 2 * torch.randint(2, value.shape, generator=self.random) - 1
        moved = (value.view(bits) + steps.to(value.device, bits)).view(value.dtype)
        both_finite = value.double().isfinite() & moved.double().isfinite()
        normal = value.double().abs() > torch.finfo(value.dtype).tiny
        return torch.where(both_finite & normal, moved, value)


Move: TypeAlias = Callable[[Sequence[Any]], list[Any]]
"""Arguments → the arguments to call with."""


def reference(
    run: Callable[[Move], Outcome], shakes: int = SHAKES
) -> tuple[Outcome, Mapping[str, torch.Tensor]]:
    """What a call produces, and how much its values change if each result of an operator and each
    argument moves by half a unit."""
    plain = run(list)
    perturbed = []
    for seed in range(1, shakes + 1):
        mode = Perturbed(seed)

        def moved(values: Sequence[Any], mode: Perturbed = mode) -> list[Any]:
            return [_perturbed(value, mode) for value in values]

        with mode:
            perturbed.append(run(moved))
    spread = spread_of(perturbed, plain)
    return plain, {name: HALF_A_UNIT * change for name, change in spread.items()}


def _perturbed(value: Any, mode: Perturbed) -> Any:
    if not isinstance(value, torch.Tensor) or not _is_movable(value) or _overlaps(value):
        return value
    with torch.no_grad():
        value.copy_(mode.perturb(value.detach()))
    return value


def _is_movable(value: torch.Tensor) -> bool:
    return value.layout is torch.strided and (value.is_floating_point() or value.is_complex())


def _overlaps(value: torch.Tensor) -> bool:
    """Do elements of an expanded tensor share memory?  Then it cannot be written to."""
    return any(s == 0 and n > 1 for n, s in zip(value.shape, value.stride(), strict=True))


def judge_perturbed(
    got: Outcome, plain: Outcome, exact: Outcome | None, spread: Mapping[str, torch.Tensor]
) -> dict[str, Judged]:
    """Compare each result with that of the plain call, allowing for the measured rounding error.

    `exact` is the call in float64, or None if the function does not accept float64.
    """
    known = {
        name: value.double() if isinstance(value, torch.Tensor) and value.is_floating_point()
        else value
        for name, value in plain.items()
    }  # fmt: skip
    for name, value in (exact or {}).items():
        old = known.get(name)
        if isinstance(old, torch.Tensor) and isinstance(value, torch.Tensor):
            known[name] = value if value.shape == old.shape else old
    return judge_all(got, plain, known, spread)
