"""Does a small model of a library compute the same as in eager mode?

Its outputs in evaluation mode, and its outputs and gradients in training mode, are compared.  Where
they differ more than rounding usually does, float64 decides.  An error is torch's if torch.compile
has it without a compiler (`backend="eager"`) or without ours (`"aot_eager"`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._dynamo.utils import counters

import inductor_lab as lab
from tests.models.compare import loss_of, tensors
from tests.models.sources import Example, as_dtype, module_of

RELATIVE = 1e-3
"""A larger difference, relative to the largest value of a tensor, is judged by float64."""
SMALLEST = 1e-5
"""The values of a tensor whose largest value is smaller cancel: this is its scale."""
WORSE = 4.0
"""Ours may be so many times as far from float64 as eager mode is."""
PERTURBED = 3
"""So many times eager mode is tried with other weights before a result counts as different."""
NO_DIGIT = 1.0
"""A tensor with this error has no correct digit."""


@dataclass(frozen=True)
class Outcome:
    """What came of a model: "agrees", "differs", "raises", "torch differs" and "torch raises"
    (torch.compile does without our compiler), or "not reached", and why; with which versions."""

    model: str
    evaluation: str
    training: str
    why: str = ""
    dtype: str = "float32"
    library: str = "transformers"
    variant: str = ""
    torch: str = ""
    version: str = ""


class Differs(Exception):
    """A compiled model computes something else than eager mode."""


class NotComparable(Exception):
    """Eager mode has no correct digit, as in gradients that only rounding keeps from zero."""


class TorchDiffers(Differs):
    """So does torch.compile without our compiler."""


class TorchRaises(Exception):
    """A compiled model raises, and does without our compiler too."""


def check_model(
    name: str, dtype: torch.dtype = torch.float32, library: str = "transformers"
) -> Outcome:
    *_, found = outcomes(name, dtype, library)
    return found


def outcomes(name: str, dtype: torch.dtype, library: str) -> Iterator[Outcome]:
    """What is known before each phase, if that phase never ends; then the outcome."""
    short = str(dtype).removeprefix("torch.")
    known = Outcome(name, "not reached", "not reached", "", short, library)
    yield known
    try:
        example = module_of(library).small_model(name, dtype)
        model, known = example.model, replace(known, variant=example.variant)
        if difference(*(results(model, example.inputs) for _ in range(2))) > 0:
            raise ValueError("it is random")
    except Exception as error:
        yield replace(known, why=said(error))
        return
    yield replace(known, evaluation="raises")
    evaluation, why = tried(lambda: compare(example, results))
    known = replace(known, evaluation=evaluation, why=why)
    yield known
    model.train()
    try:
        if difference(*(step(copy.deepcopy(model), example.inputs) for _ in range(2))) > 0:
            raise ValueError("it is random in training")
    except Exception as error:
        yield replace(known, why=why or said(error))
        return
    yield replace(known, training="raises")
    training, more = tried(lambda: compare(example, step))
    yield replace(known, training=training, why=(why or more) if training == "agrees" else more)


def said(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:160].replace("|", "/")


def tried(check: Callable[[], str]) -> tuple[str, str]:
    """The outcome of a comparison, and why, or what else it has found."""
    torch.compiler.reset()
    try:
        return "agrees", check()
    except TorchDiffers as found:
        return "torch differs", str(found)
    except TorchRaises as found:
        return "torch raises", str(found)
    except Differs as found:
        return "differs", str(found)
    except NotComparable as found:
        return "not reached", str(found)
    except Exception as error:
        return "raises", said(error)


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


def compare(example: Example, run: Run) -> str:
    """Raise what is wrong; return whether evaluation with other sizes is compiled separately."""
    recompiles = False
    model, dynamic = example.model, None if example.other is None else True
    sizes = [example.inputs]
    if example.other is not None and run is results:
        sizes.append(example.other)
    ours = copy.deepcopy(model)
    called = lab.compile(ours, dynamic=dynamic)
    for inputs in sizes:
        expected = run(copy.deepcopy(model), inputs)
        before = counters["stats"]["unique_graphs"]
        try:
            found = run(ours, inputs, called)
        except Exception as error:
            if None in peers(model, inputs, run, dynamic):
                raise TorchRaises(said(error)) from error
            raise
        recompiles = inputs is not sizes[0] and counters["stats"]["unique_graphs"] > before
        judge(model, inputs, run, dynamic, found, expected)
    if not recompiles:
        return ""
    return "recompiles for another size" + (", as aot_eager does" * torch_recompiles(example))


def torch_recompiles(example: Example) -> bool:
    """Is evaluation with other sizes compiled separately without our compiler too?"""
    torch.compiler.reset()
    model = copy.deepcopy(example.model)
    called = torch.compile(model, backend="aot_eager", dynamic=True)
    results(model, example.inputs, called)
    before = counters["stats"]["unique_graphs"]
    results(model, example.other, called)
    return counters["stats"]["unique_graphs"] > before


def judge(
    model: torch.nn.Module,
    inputs: Mapping[str, Any],
    run: Run,
    dynamic: bool | None,
    found: list[torch.Tensor],
    expected: list[torch.Tensor],
) -> None:
    """Raise Differs or TorchDiffers if results are further from float64 than those of eager mode,
    and NotComparable if these have no correct digit."""
    if difference(found, expected) <= RELATIVE:
        return
    exact, theirs, named = reference(model, inputs, run, expected)
    own = difference(found, exact)
    if own > WORSE * theirs:  # by chance, where a rounding decides on which side of a jump x is
        moved = (run(perturbed(model), inputs) for _ in range(PERTURBED))
        theirs = max(theirs, *(difference(one, exact) for one in moved))
    if own > WORSE * theirs:
        if theirs > NO_DIGIT:
            raise NotComparable(f"no correct digit in eager mode: {theirs:.1e} from float64")
        others = peers(model, inputs, run, dynamic)
        far = any(other is None or is_far(other, exact, own / WORSE) for other in others)
        raise (TorchDiffers if far else Differs)(f"{own:.1e} from {named} {theirs:.1e}")


def peers(
    model: torch.nn.Module, inputs: Mapping[str, Any], run: Run, dynamic: bool | None
) -> Iterator[list[torch.Tensor] | None]:
    """What torch.compile computes with TorchDynamo only, and with AOTAutograd; None: it raises."""
    for backend in ("eager", "aot_eager"):
        torch.compiler.reset()
        other = copy.deepcopy(model)
        compiled = torch.compile(other, backend=backend, dynamic=dynamic)
        try:
            yield run(other, inputs, compiled)
        except Exception:
            yield None


def is_far(found: list[torch.Tensor], exact: list[torch.Tensor], limit: float) -> bool:
    try:
        return difference(found, exact) > limit
    except Differs:
        return True


def reference(
    model: torch.nn.Module, inputs: Mapping[str, Any], run: Run, eager: list[torch.Tensor]
) -> tuple[list[torch.Tensor], float, str]:
    """What results are compared with, the error of eager mode, and both as words.

    If a model does not run in float64, the error of eager mode is its change when weights change.
    """
    wide = as_dtype(dict(inputs), torch.float64)
    try:
        exact = run(copy.deepcopy(model).double(), wide)
        return exact, difference(eager, exact), "float64, eager"
    except RuntimeError:
        change = difference(run(perturbed(model), inputs), eager)
        return eager, change, "eager, with perturbed weights"


def perturbed(model: torch.nn.Module) -> torch.nn.Module:
    """The model with some weights changed by one rounding."""
    moved = copy.deepcopy(model)
    with torch.no_grad():
        for each in moved.parameters():
            each.mul_(1 + torch.randint_like(each, -1, 2) * torch.finfo(each.dtype).eps)
    return moved


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


def work(send: Callable[[Any], None], name: str, dtype: torch.dtype, library: str) -> None:
    for outcome in outcomes(name, dtype, library):
        send(outcome)
