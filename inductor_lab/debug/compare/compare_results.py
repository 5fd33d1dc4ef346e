"""Compare everything that a call produced with the expected values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from inductor_lab.debug.compare.precision import Judged, judge
from inductor_lab.debug.compare.values import AFTER, Outcome


def judge_all(
    got: Outcome, peer: Outcome, exact: Outcome | None, spread: Mapping[str, torch.Tensor]
) -> dict[str, Judged]:
    """Judge each value of `peer` by name, and each value that only `got` wrote."""
    found = {name: Judged("written") for name in got if name not in peer and name.endswith(AFTER)}
    for name, expected in peer.items():
        if name not in got:
            found[name] = Judged("not written", expected=name)
        elif isinstance(expected, torch.Tensor):
            truth = None if exact is None else exact.get(name)
            found[name] = judge(got[name], expected, truth, spread.get(name))
        else:
            kind = "equal" if _same(got[name], expected) else "wrong"
            found[name] = Judged(kind, got=str(got[name]), expected=str(expected))  # type: ignore[arg-type]
    return found


def _same(first: Any, second: Any) -> bool:
    """Are two values equal that are not tensors?  Some types cannot be compared."""
    try:
        return bool(first == second) or bool(first != first and second != second)
    except (RuntimeError, TypeError, ValueError):
        return type(first) is type(second)


def roundings(outcome: Outcome) -> dict[str, torch.Tensor]:
    """The rounding error of the largest element of each floating-point tensor."""
    tensors = {
        name: value for name, value in outcome.items()
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel()
    }  # fmt: skip
    return {
        name: (value.abs().nan_to_num(0.0, 0.0, 0.0).max() * torch.finfo(value.dtype).eps)
        .double().expand(value.shape)
        for name, value in tensors.items()
    }  # fmt: skip


def first_wrong(judged: Mapping[str, Judged]) -> tuple[str, Judged] | None:
    """The first value that differs by more than rounding, with its name."""
    return next(((name, j) for name, j in judged.items() if not j.right), None)


def worst_ulp(judged: Mapping[str, Judged]) -> float | None:
    """The largest distance from float64 in ULP; None if nothing was compared."""
    found = (j.in_ulp for j in judged.values())
    return max((ulp for ulp in found if ulp is not None), default=None)


def as_numbers(value: Any) -> Any:
    """A detached copy of a tensor, which can be sent to another process."""
    return value.detach().clone() if isinstance(value, torch.Tensor) else value
