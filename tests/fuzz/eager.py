"""A random program in eager mode: its results, the same in float64, and how others are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tests.fuzz.program import Program, tensors_of
from tests.fuzz.shrink import said
from tests.fuzz.values import REFUSALS, is_outside

ROUNDING = {
    torch.float64: 1e-9,
    torch.float32: 2e-5,
    torch.bfloat16: 4e-2,
    torch.float16: 5e-3,
}


class Wrong(AssertionError):
    """A stage computes something else than eager mode."""


@dataclass(frozen=True)
class Call:
    """One call of a program: what eager mode gives, and what float64 does; or that it raises."""

    program: Program
    expected: list[torch.Tensor]
    ideal: list[torch.Tensor]
    raises: str = ""


def known(program: Program, gradients: bool) -> Call:
    """What eager mode gives, or that it raises for an index that is out of range."""
    try:
        with torch.device("cpu"):  # where that does not end the process
            outcome(program, False)
    except REFUSALS as refused:
        if not is_outside(refused):
            raise
        return Call(program, [], [], raises=said(refused))
    return Call(program, outcome(program, False, gradients), outcome(program, True, gradients))


def is_comparable(call: Call, gradients: bool) -> bool:
    if call.raises:  # on a GPU an index that is out of range ends the process
        return torch.get_default_device().type == "cpu"
    same = len(call.expected) == len(call.ideal)
    return same and (not gradients or all(map(is_finite, call.ideal)))


def outcome(program: Program, precise: bool, gradients: bool = False) -> list[torch.Tensor]:
    """Results, and the inputs as the program left them, in eager mode (or all in float64)."""
    given = program.make(precise)
    if not precise:
        return [*results(program.function(), given, gradients), *tensors_of(given)]
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # for what becomes of whole numbers
    try:
        return [*results(program.function(precise=True), given, gradients), *tensors_of(given)]
    finally:
        torch.set_default_dtype(before)


def results(
    function: Callable[..., Any], given: Sequence[torch.Tensor], gradients: bool
) -> list[torch.Tensor]:
    """What a function returns, and the gradients of that."""
    if not gradients:
        return list(function(*given))
    tensors = [x for x in tensors_of(given) if isinstance(x, torch.Tensor)]
    leaves = [x.requires_grad_() for x in tensors if x.is_floating_point()]
    found = list(function(*given))
    outputs = [x for x in found if x.requires_grad]
    along = [torch.arange(x.numel()).sin().reshape(x.shape).to(x.dtype) for x in outputs]
    derived = torch.autograd.grad(outputs, leaves, along, materialize_grads=True) if outputs else ()
    return [x.detach() for x in (*found, *derived) if x is not None]


def is_finite(tensor: Any) -> bool:
    return not isinstance(tensor, torch.Tensor) or bool(tensor.detach().isfinite().all())


class Dtypes(TorchFunctionMode):
    """Collects the dtypes of all results: `atan2` of integers is float32 without saying so."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[torch.dtype] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        several = result if isinstance(result, tuple | list) else (result,)
        self.found.update(x.dtype for x in several if isinstance(x, torch.Tensor))
        return result


def coarsest(program: Program) -> float:
    """The rounding error of the least precise dtype in the program."""
    given = program.make()
    with Dtypes() as dtypes:
        program.function()(*given)
    tensors = (x for x in tensors_of(given) if isinstance(x, torch.Tensor))
    found = dtypes.found.union(x.dtype for x in tensors)
    return max((ROUNDING[dtype] for dtype in found & ROUNDING.keys()), default=0.0)


def compare(stage: str, call: Call, found: Sequence[Any]) -> None:
    """Equal shapes, dtypes and whole numbers; floats as near the ideal as eager's own, about."""
    coarse = coarsest(call.program)
    several = zip(found, call.expected, call.ideal, strict=True)
    for number, (a, b, exact) in enumerate(several):
        if not isinstance(b, torch.Tensor):
            continue
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            where = f"{stage}: result {number} is {a.dtype}{list(a.shape)}"
            raise Wrong(f"{where} instead of {b.dtype}{list(b.shape)}\n{call.program}")
        if b.numel() and not same(a, b, exact, coarse):
            raise Wrong(f"{stage}: result {number}\n{a}\ninstead of\n{b}\n{call.program}")


def same(a: torch.Tensor, b: torch.Tensor, exact: torch.Tensor, coarse: float) -> bool:
    if not b.is_floating_point():
        return torch.equal(a, b) or not torch.equal(b, exact)
    ours, theirs, ideal = a.detach().double(), b.detach().double(), exact.detach().double()
    if not is_finite(ideal):
        return True
    scale = 1 + ideal.abs().max()
    room = max(ROUNDING[b.dtype], coarse) * scale + 8 * (theirs - ideal).abs().max()
    return bool(((ours - ideal).abs() <= room).all())
