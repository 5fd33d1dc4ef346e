"""One random program in eager mode, in float64, and through every stage of the compiler."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

import inductor_lab as lab
from tests.fuzz.program import Program

ROUNDING = {
    torch.float64: 1e-9,
    torch.float32: 2e-5,
    torch.bfloat16: 4e-2,
    torch.float16: 5e-3,
}


class Wrong(AssertionError):
    """A stage computes something else than eager mode."""


def check(program: Program, *, gradients: bool = False, **options: Any) -> None:
    """Raise Wrong, or what the compiler raised, unless all stages agree with eager mode.

    Stages are left out where the program reshaped its inputs (`x.t_()`): those cannot run again.
    Programs with which torch.compile fails even before our compiler (`aot_eager`) pass, and with
    `gradients` those that eager mode cannot differentiate.
    """
    if gradients:
        program = program.with_copies()
    try:
        expected, ideal = outcome(program, False, gradients), outcome(program, True, gradients)
    except RuntimeError:
        if gradients:
            return
        raise
    if len(expected) != len(ideal) or (gradients and not all(map(is_finite, ideal))):
        return
    try:
        check_against(program, expected, ideal, gradients, options)
    except Exception:
        if torch_can(program, expected, ideal, gradients, options.get("dynamic")):
            raise


def check_against(
    program: Program,
    expected: Sequence[Any],
    ideal: Sequence[Any],
    gradients: bool,
    options: dict[str, Any],
) -> None:
    """Every stage against results that are known."""
    torch.compiler.reset()
    coarse = coarsest(program)
    given = program.make()
    compilations = []

    def compiled(*inputs: torch.Tensor) -> Any:
        compilations.append(lab.inspect(program.function(), *inputs, options=options))
        return compilations[-1].result

    found = [*results(compiled, given, gradients), *given]
    compare("the compiled program", program, found, expected, ideal, coarse)
    pairs = zip(given, program.make(), strict=True)
    if all((x.shape, x.stride()) == (new.shape, new.stride()) for x, new in pairs):
        for graph in compilations[0].graphs:
            check_stages(program, graph, coarse)


def torch_can(
    program: Program,
    expected: Sequence[Any],
    ideal: Sequence[Any],
    gradients: bool,
    dynamic: bool | None,
) -> bool:
    """Is the program right with capture and functionalization alone?"""
    torch.compiler.reset()
    given = program.make()
    compiled = torch.compile(program.function(), backend="aot_eager", dynamic=dynamic)
    try:
        found = [*results(compiled, given, gradients), *given]
        compare("aot_eager", program, found, expected, ideal, coarsest(program))
    except Exception:
        return False
    return True


def outcome(program: Program, precise: bool, gradients: bool = False) -> list[torch.Tensor]:
    """Results, and the inputs as the program left them, in eager mode (or all in float64)."""
    given = program.make()
    if not precise:
        return [*results(program.function(), given, gradients), *given]
    given = [x.double() if x.is_floating_point() else x for x in given]
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # for what becomes of whole numbers
    try:
        return [*results(program.function(precise=True), given, gradients), *given]
    finally:
        torch.set_default_dtype(before)


def results(
    function: Callable[..., Any], given: Sequence[torch.Tensor], gradients: bool
) -> list[torch.Tensor]:
    """What a function returns, and the gradients of that."""
    if not gradients:
        return list(function(*given))
    leaves = [x.requires_grad_() for x in given if x.is_floating_point()]
    found = list(function(*given))
    outputs = [x for x in found if x.requires_grad]
    along = [torch.arange(x.numel()).sin().reshape(x.shape).to(x.dtype) for x in outputs]
    derived = torch.autograd.grad(outputs, leaves, along, allow_unused=True) if outputs else ()
    return [x.detach() for x in (*found, *derived) if x is not None]


def is_finite(tensor: torch.Tensor) -> bool:
    return bool(tensor.detach().isfinite().all())


def check_stages(program: Program, graph: Any, coarse: float) -> None:
    """The loops and the schedule of a graph against its running code."""
    part = graph.forward
    # a deep copy keeps gaps, overlaps, and that inputs share storage
    given = [x.detach() if isinstance(x, torch.Tensor) else x for x in graph.inputs]
    if len(given) != len(part.loops.inputs):
        return
    running = part.executable.run(*copy.deepcopy(given))
    for stage in ("loops", "schedule"):
        found = getattr(part, stage).run(*copy.deepcopy(given))
        compare(stage, program, found, running, running, coarse)


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
    found = dtypes.found.union(x.dtype for x in given)
    return max((ROUNDING[dtype] for dtype in found & ROUNDING.keys()), default=0.0)


def compare(
    stage: str,
    program: Program,
    found: Sequence[Any],
    expected: Sequence[Any],
    ideal: Sequence[Any],
    coarse: float,
) -> None:
    """Equal shapes, dtypes and whole numbers; floats as near the ideal as eager's own, about."""
    for number, (a, b, exact) in enumerate(zip(found, expected, ideal, strict=True)):
        if not isinstance(b, torch.Tensor):
            continue
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise Wrong(f"{stage}: result {number} is {a.dtype}{list(a.shape)}\n{program}")
        if b.numel() and not same(a, b, exact, coarse):
            raise Wrong(f"{stage}: result {number}\n{a}\ninstead of\n{b}\n{program}")


def same(a: torch.Tensor, b: torch.Tensor, exact: torch.Tensor, coarse: float) -> bool:
    if not b.is_floating_point():
        return torch.equal(a, b)
    ours, theirs, ideal = a.double(), b.double(), exact.double()
    scale = 1 + ideal.abs().max()
    room = max(ROUNDING[b.dtype], coarse) * scale + 8 * (theirs - ideal).abs().max()
    return bool(((ours - ideal).abs() <= room).all())
