"""How far roundings reach in a function that is no graph: each operator's result is moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from inductor_lab.compiler.torch_door.torch_api import TorchDispatchMode, pytree
from inductor_lab.debug.blame.stages import spread_of
from inductor_lab.debug.compare.compare_results import judge_all
from inductor_lab.debug.compare.precision import Judged
from inductor_lab.debug.compare.values import Outcome

SHAKES = 3


class Shaken(TorchDispatchMode):
    """Multiplies what each operator computes by a number within half a unit of 1."""

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.random = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func._schema.is_mutable:
            return result
        given = {
            leaf.untyped_storage()._cdata
            for leaf in pytree.tree_leaves((args, kwargs))
            if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided
        }
        return pytree.tree_map_only(torch.Tensor, lambda t: self._moved(t, given), result)

    def _moved(self, value: torch.Tensor, given: set[int]) -> torch.Tensor:
        strided = value.layout is torch.strided and value.dtype.is_floating_point
        if not strided or value.untyped_storage()._cdata in given:
            return value
        return self.shake(value)

    def shake(self, value: torch.Tensor) -> torch.Tensor:
        factor = 1 + torch.finfo(value.dtype).eps * (
            torch.rand(value.shape, generator=self.random, dtype=torch.float64) - 0.5
        )
        return (value.double() * factor.to(value.device)).to(value.dtype)


Move: TypeAlias = Callable[[Sequence[Any]], list[Any]]
"""Arguments → those to call with."""


def reference(run: Callable[[Move], Outcome]) -> tuple[Outcome, Mapping[str, torch.Tensor]]:
    """What a call leaves behind, and how far roundings reach in it, of its arguments too."""
    plain = run(list)
    shaken = []
    for seed in range(1, SHAKES + 1):
        mode = Shaken(seed)

        def moved(values: Sequence[Any], mode: Shaken = mode) -> list[Any]:
            return [_shaken(value, mode) for value in values]

        with mode:
            shaken.append(run(moved))
    return plain, spread_of(shaken, plain)


def _shaken(value: Any, mode: Shaken) -> Any:
    if not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point:
        return value
    if value.layout is not torch.strided:
        return value
    with torch.no_grad():
        value.copy_(mode.shake(value.detach()))
    return value


def judged_by_shaking(
    got: Outcome, plain: Outcome, exact: Outcome | None, spread: Mapping[str, torch.Tensor]
) -> dict[str, Judged]:
    """Each result beside that of the plain call, where roundings reach so far; `exact` is the call
    in float64, if the function can be called so."""
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
