"""Does a small model of the transformers library compute the same as in eager mode?

Its outputs in evaluation mode, and its outputs and gradients in training mode, are compared.  Where
they differ more than rounding usually does, float64 decides.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

import inductor_lab as lab
from tests.models.compare import loss_of, tensors
from tests.models.shrink import small_model

RELATIVE = 1e-3
"""A larger difference, relative to the largest value of a tensor, is judged by float64."""
SMALLEST = 1e-5
"""The values of a tensor whose largest value is smaller cancel: this is its scale."""
WORSE = 4.0
"""Ours may be so many times as far from float64 as eager mode is."""


@dataclass(frozen=True)
class Outcome:
    """What came of a model type: "agrees", "differs", "torch differs" (`aot_eager` is as far from
    float64), "raises" or "not reached", and why."""

    model: str
    evaluation: str
    training: str
    why: str = ""
    dtype: str = "float32"


class Differs(Exception):
    """A compiled model computes something else than eager mode."""


class TorchDiffers(Differs):
    """So does `backend="aot_eager"`: TorchDynamo or AOTAutograd is the cause."""


def check_model(name: str, dtype: torch.dtype = torch.float32) -> Outcome:
    found = _checked(name, dtype)
    return replace(found, dtype=str(dtype).removeprefix("torch."))


def _checked(name: str, dtype: torch.dtype) -> Outcome:
    try:
        model, inputs = small_model(name, dtype)
        if difference(results(model, inputs), results(model, inputs)) > 0:
            return not_reached(name, "it is random")
    except Exception as error:
        return not_reached(name, said(error))
    evaluation, why = tried(lambda: compare(model, inputs, results))
    model.train()
    try:
        repeated = [step(copy.deepcopy(model), inputs) for _ in range(2)]
        if difference(*repeated) > 0:
            return Outcome(name, evaluation, "not reached", why or "it is random in training")
    except Exception as error:
        return Outcome(name, evaluation, "not reached", why or said(error))
    training, more = tried(lambda: compare(model, inputs, step))
    return Outcome(name, evaluation, training, why or more)


def not_reached(name: str, why: str) -> Outcome:
    return Outcome(name, "not reached", "not reached", why)


def said(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:160].replace("|", "/")


def tried(check: Callable[[], None]) -> tuple[str, str]:
    torch.compiler.reset()
    try:
        check()
    except TorchDiffers as found:
        return "torch differs", str(found)
    except Differs as found:
        return "differs", str(found)
    except Exception as error:
        return "raises", said(error)
    return "agrees", ""


def results(
    model: torch.nn.Module, inputs: Mapping[str, Any], called: Any = None
) -> list[torch.Tensor]:
    with torch.no_grad():
        return [each.clone() for each in tensors((model if called is None else called)(**inputs))]


def step(
    model: torch.nn.Module, inputs: Mapping[str, Any], called: Any = None
) -> list[torch.Tensor]:
    """Outputs, and the gradient of each parameter; zeros if it has none, as from AOTAutograd."""
    found = (model if called is None else called)(**inputs)
    loss_of(found).backward()
    gradients = [torch.zeros_like(each) if each.grad is None else each.grad
                 for each in model.parameters()]  # fmt: skip
    return [each.detach().clone() for each in (*tensors(found), *gradients)]


Run = Callable[..., list[torch.Tensor]]


def compare(model: torch.nn.Module, inputs: Mapping[str, Any], run: Run) -> None:
    expected = run(copy.deepcopy(model), inputs)
    ours = copy.deepcopy(model)
    found = run(ours, inputs, lab.compile(ours))
    if difference(found, expected) <= RELATIVE:
        return
    exact, theirs, named = reference(model, inputs, run, expected)
    own = difference(found, exact)
    if own > WORSE * theirs:
        torch.compiler.reset()
        other = copy.deepcopy(model)
        peer = run(other, inputs, torch.compile(other, backend="aot_eager"))
        kind = TorchDiffers if difference(peer, exact) > own / WORSE else Differs
        raise kind(f"{own:.1e} from {named} {theirs:.1e}")


def reference(
    model: torch.nn.Module, inputs: Mapping[str, Any], run: Run, eager: list[torch.Tensor]
) -> tuple[list[torch.Tensor], float, str]:
    """What results are compared with, the error of eager mode, and both as words.

    If a model does not run in float64, the error of eager mode is its change when each weight
    changes by a rounding.
    """
    wide = tree_map_only(torch.Tensor, lambda x: x.double() if x.is_floating_point() else x,
                         dict(inputs))  # fmt: skip
    try:
        exact = run(copy.deepcopy(model).double(), wide)
        return exact, difference(eager, exact), "float64, eager"
    except RuntimeError:
        moved = copy.deepcopy(model)
        with torch.no_grad():
            for each in moved.parameters():
                each.mul_(1 + torch.randint_like(each, -1, 2) * torch.finfo(each.dtype).eps)
        return eager, difference(run(moved, inputs), eager), "eager, with perturbed weights"


def difference(found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    """The largest difference of two lists of tensors, relative to the largest value of each."""
    if [one.shape for one in found] != [one.shape for one in expected]:
        raise Differs("other shapes, or another number of results")
    return max((_difference(*pair) for pair in zip(found, expected, strict=True)), default=0.0)


def _difference(one: torch.Tensor, other: torch.Tensor) -> float:
    one, other = one.double(), other.double()
    same = (one == other) | (one.isnan() & other.isnan())
    if bool(same.all()):
        return 0.0
    finite = other[other.isfinite()]
    scale = float(finite.abs().max()) if finite.numel() else 1.0
    worst = float((one - other)[~same].abs().max())
    return worst / max(scale, SMALLEST) if worst == worst else float("inf")


def work(send: Callable[[Any], None], name: str, dtype: torch.dtype) -> None:
    send(check_model(name, dtype))
