"""Programs whose results change by much where a value changes by a rounding."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tests.fuzz.eager import ROUNDING, Call, Wrong, coarsest, compare, outcome
from tests.fuzz.values import GRID


class Noise(TorchFunctionMode):
    """Changes what is not exact by about a rounding (of float32), as other orders of sums would."""

    def __init__(self, rounding: float = 1e-7, room: float = ROUNDING[torch.float32]) -> None:
        super().__init__()
        self.rounding, self.room = rounding, room

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        fresh = isinstance(result, torch.Tensor) and not result._is_view()
        if not fresh or not result.is_floating_point() or any(result is x for x in args):
            return result
        return self.changed(result)

    def changed(self, result: torch.Tensor) -> torch.Tensor:
        signs = torch.arange(1, result.numel() + 1).mul(17).sin().reshape(result.shape)
        exact = result * GRID == (result * GRID).round()
        return torch.where(exact, result, result * (1 + self.rounding * signs))


class Shift(Noise):
    """All values move in the same direction, so that sums which cancel change most."""

    def changed(self, result: torch.Tensor) -> torch.Tensor:
        return result + self.rounding * result.abs()


class Nothing(Noise):
    """What would be zero without roundings is zero."""

    def changed(self, result: torch.Tensor) -> torch.Tensor:
        return result - torch.where(result.abs() < 1e-6, result, 0).detach()


class Something(Noise):
    """What is zero because it is its own mean is not quite zero: a mean is rounded."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "norm" in func.__name__:
            return super().__torch_function__(func, types, args, kwargs)
        return func(*args, **(kwargs or {}))

    def changed(self, result: torch.Tensor) -> torch.Tensor:
        return result + torch.where(result == 0, 1e-9, 0.0)


class Signs(Noise):
    """A minimum or maximum of the two zeros is the other one: eager's vectors and single elements
    do not agree on it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ in ("minimum", "maximum", "fmin", "fmax"):
            return super().__torch_function__(func, types, args, kwargs)
        return func(*args, **(kwargs or {}))

    def changed(self, result: torch.Tensor) -> torch.Tensor:
        other = result.clone()  # with the same gradient
        other.data = torch.where(result == 0, -result, result).detach()
        return other


def jumps(call: Call, gradients: bool) -> bool:
    """Are results others if values change by a rounding?  So is the gradient of a maximum of what
    is equal but for that, and the number of elements that are not zero."""
    if call.raises:
        return False
    coarse = coarsest(call.program)
    noises = [Noise(), Shift(), Shift(-1e-7), Nothing(), Something(), Signs()]
    if coarse > ROUNDING[torch.float32]:
        noises += Noise(coarse / 5, coarse), Noise(-coarse / 5, coarse)
    return any(changes(call, gradients, noise) for noise in noises)


def changes(call: Call, gradients: bool, noise: Noise) -> bool:
    with noise:
        found = outcome(call.program, True, gradients)
    pairs = zip(found, call.ideal, strict=True)
    return any(differ(a, b, noise.room) for a, b in pairs if isinstance(b, torch.Tensor))


def differ(a: torch.Tensor, b: torch.Tensor, room: float) -> bool:
    """By more than half of the room that `same` leaves to a result of that rounding?"""
    if a.shape != b.shape or not (b.is_floating_point() and b.numel()):
        return not torch.equal(a, b)
    allowed = float(1 + b.nan_to_num().abs().max()) * room / 2
    return not torch.allclose(a, b, 0, allowed, equal_nan=True)


def jumps_alone(part: Any, given: Sequence[Any], call: Call, noise: Noise) -> bool:
    """Does the running code give other results if its inputs change by a rounding?  A graph can
    return what the program does not, such as the mask that its backward needs."""
    changed = copy.deepcopy(given)
    for one in changed:
        if isinstance(one, torch.Tensor) and one.is_floating_point():
            with suppress(RuntimeError):  # several of its elements are one in memory
                one.copy_(noise.changed(one))
    try:
        compare("running", call, part.executable.run(*changed))
    except Wrong:
        return True
    return False
