"""One random program in eager mode, in float64, and through every stage of the compiler."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import torch
import torch._dynamo.config as dynamo_config
from torch.overrides import TorchFunctionMode

import inductor_lab as lab
from inductor_lab.compiler.base.errors import (
    CompileFailed,
    CompilerDefect,
    DividedByZero,
    OutOfBounds,
)
from inductor_lab.compiler.codegen.cpp import combo_function
from inductor_lab.compiler.codegen.cpu import plan, thread_parts
from tests.fresh import compile_always
from tests.fuzz.program import Program, tensors_of
from tests.fuzz.shrink import said
from tests.fuzz.values import GRID, REFUSALS, is_outside

compile_always()

ROUNDING = {
    torch.float64: 1e-9,
    torch.float32: 2e-5,
    torch.bfloat16: 4e-2,
    torch.float16: 5e-3,
}


LENGTHS = {2: 4, 3: 5, 4: 7, 5: 6, 6: 9, 8: 10, 17: 18, 20: 37, 33: 21, 70: 31, 150: 90}
"""The other length of each dimension."""


SKIPPED = "not compared"
"""Eager mode refuses the program, or has no result that can be compared."""
ROUNDED = "jumps"
"""Results change by much where values differ by a rounding."""
BEFORE, STOCK, KNOWN = "aot_eager", "stock", "known of torch"
"""`aot_eager` fails too; stock Inductor does, in the same words; one of TORCHS_OWN."""
FAILS_TOO = "fails too"
"""What a failure says of `aot_eager` where that is no excuse."""
CRASHES = "eager mode crashes"
"""It ends the process."""
EXCUSES = (SKIPPED, ROUNDED, BEFORE, STOCK, KNOWN, CRASHES)
"""Why a program counts as passed although not all of its results agreed."""

STAGES = ("loops", "schedule")
"""Those that have a `.run` of their own."""


class Wrong(AssertionError):
    """A stage computes something else than eager mode."""


@dataclass(frozen=True)
class Call:
    """One call of a program: what eager mode gives, and what float64 does; or that it raises."""

    program: Program
    expected: list[torch.Tensor]
    ideal: list[torch.Tensor]
    raises: str = ""


def check(
    program: Program,
    *,
    gradients: bool = False,
    sizes: bool = False,
    threads: int = 0,
    device: str = "cpu",
    numbers: bool = False,
    aliases: bool = False,
    target: str = "",
    **options: Any,
) -> str:
    """Raise Wrong, or what the compiler raised, unless all stages agree with eager mode.

    Returns which one of EXCUSES the program passed with, or nothing.

    With `sizes` the compiled program is called again with inputs of other sizes, with `numbers`
    several times with others of these.  Stages are left out then, and where the program reshaped
    its inputs (`x.t_()`): those cannot run again.  With `threads` so many share what little work
    there is.  On another `device` than the CPU only the compiled program is compared.
    With a `target` (`"cuda:90"`) Triton's compiler must take all kernels too.
    Programs that eager mode cannot run on that device pass.  Where it raises for an index that is
    out of range, so must the compiled program.
    Programs with which torch.compile fails even before our compiler (`aot_eager`), or in the same
    words with torch's own compiler, pass, and those whose results (or gradients) jump where values
    differ by a rounding, TORCHS_OWN errors, and with `gradients` those that eager mode cannot
    differentiate.
    """
    placed = torch.device(device) if device != "cpu" else nullcontext()
    with placed, dynamo_config.patch(capture_scalar_outputs=numbers):
        return _check(program, gradients, sizes, threads, numbers, aliases, target, options)


def _check(
    program: Program,
    gradients: bool,
    sizes: bool,
    threads: int,
    numbers: bool,
    aliases: bool,
    target: str,
    options: dict[str, Any],
) -> str:
    if gradients:
        program = program.with_copies()
    try:
        calls = [known(program, gradients)]
    except RuntimeError:
        if gradients or _may_refuse(program):
            return SKIPPED
        raise
    dynamic = sizes or options.get("dynamic")
    if sizes:
        calls += others(program, calls[0])
    if numbers:
        calls += with_other_numbers(program, gradients, options.get("language") == "triton")
    if not all(is_comparable(call, gradients) for call in calls):
        return SKIPPED
    try:
        if sizes or numbers:
            torch.compiler.reset()
            fast = lab.compile(program.function(), dynamic=dynamic, options=options)
            check_calls("the compiled program", fast, calls, gradients)
        else:
            with shared_among(threads) if threads else nullcontext():
                check_against(calls[0], gradients, target, options)
    except Exception as wrong:
        if any(words in str(wrong) for words in TORCHS_OWN):
            return KNOWN
        if isinstance(wrong, Wrong) and any(jumps(call, gradients) for call in calls):
            return ROUNDED
        found = partial(found_with, calls=calls, gradients=gradients, dynamic=dynamic)
        return _excused_by_torch(wrong, calls, found, aliases)
    return ""


def _excused_by_torch(
    wrong: Exception,
    calls: Sequence[Call],
    found: Callable[[str], str | None],
    aliases: bool,
) -> str:
    """Raise what is wrong unless it is torch's, with what `aot_eager` does if that is no excuse."""
    if aliases:
        before = found("aot_eager")
        verdict = "is right" if before is None else f"{FAILS_TOO}, {before[:60]}"
        raise Wrong(f"{said(wrong)[:90]} [aot_eager {verdict}]") from None
    excuse = excuse_of(wrong, calls, found)
    if not excuse:
        raise wrong
    return excuse


def _may_refuse(program: Program) -> bool:
    """May eager mode raise for a program that was drawn?"""
    return program.has_parameters or torch.get_default_device().type != "cpu"


def excuse_of(
    wrong: Exception, calls: Sequence[Call], found: Callable[[str], str | None]
) -> str:
    """Is it wrong before our compiler, or does stock Inductor fail in the same words, or at sizes
    that torch took for equal?  That nothing is raised in the first call is no excuse."""
    if found("aot_eager") is not None:
        return BEFORE
    ours, stock = said(wrong), None if calls[0].raises else found("inductor")
    if stock is None:
        return ""
    same = UNEQUAL in ours or re.sub(ADDRESS, "", ours) == re.sub(ADDRESS, "", stock)
    return STOCK if same else ""


ADDRESS = r"\d{15,}"
"""Where torch takes a symbolic size for a number, its error text has the address of that size."""

REFUSED = ("ZeroDivisionError", "Number of elements of source < number of ones in mask")
"""What eager's operators say of values, not of the program."""

BY_ZERO = "RuntimeError: ZeroDivisionError"
"""What eager raises for a division of integers on a CPU.  On a GPU it gives whatever the machine
does, and so do kernels of Triton."""

UNEQUAL = "is false, but the compiled program requires it"
"""Which of two sizes is 1, and broadcasts, torch cannot know; stock Inductor refuses it too."""

TORCHS_OWN = (
    # Between two graphs a program writes to what the first one saved.  What is saved is the
    # compiler's choice, and autograd reports it.
    "needed for gradient computation has been modified by an inplace operation",
    # The first graph returns two tensors in one memory, the second one writes to one of them:
    # AOTAutograd cannot merge inputs of symbolic sizes that are no views to autograd.
    "Expected !size_bytes_is_heap_allocated_ to be true",
    # The same with fixed sizes, where something else in the graph needs gradients.
    "does not yet handle non-differentiable view input mutations",
)
"""Errors of torch about what no compiler can foresee."""


def found_with(backend: str, calls: Sequence[Call], gradients: bool, dynamic: Any) -> str | None:
    """What goes wrong with another backend, if anything."""
    torch.compiler.reset()
    compiled = torch.compile(calls[0].program.function(), backend=backend, dynamic=dynamic)
    try:
        check_calls(backend, compiled, calls, gradients)
    except Exception as wrong:
        return said(wrong)
    return None


@contextmanager
def shared_among(threads: int) -> Iterator[None]:
    """Kernels are threaded that are far too small for it."""
    before = torch.get_num_threads()
    modules = (plan, thread_parts, combo_function)
    with ExitStack() as stack:
        for module in modules:
            stack.enter_context(mock.patch.object(module, "GRAIN", 16))
        torch.set_num_threads(threads)
        stack.callback(torch.set_num_threads, before)
        yield


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


def others(program: Program, first: Call) -> list[Call]:
    """Calls with other sizes, then the first ones again; none if the program has fixed sizes."""
    resized = program.resized(LENGTHS)
    try:
        return [known(resized, False), first]
    except REFUSALS:
        return []


def with_other_numbers(program: Program, gradients: bool, triton: bool = False) -> list[Call]:
    """The other calls of a program, without those that raise in float64 alone, or for `triton`
    because they divide by zero."""
    calls = []
    for other in program.calls()[1:]:
        try:
            expected = outcome(other, False, gradients)
        except REFUSALS as refused:
            if not (triton and said(refused).startswith(BY_ZERO)):
                calls.append(Call(other, [], [], raises=said(refused)))
            continue
        with suppress(*REFUSALS):
            calls.append(Call(other, expected, outcome(other, True, gradients)))
    return calls


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


def jumps(call: Call, gradients: bool) -> bool:
    """Are results others if values change by a rounding?  So is the gradient of a maximum of what
    is equal but for that, and the number of elements that are not zero."""
    if call.raises:
        return False
    coarse = coarsest(call.program)
    noises = [Noise(), Nothing(), Something()]
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


def is_comparable(call: Call, gradients: bool) -> bool:
    if call.raises:  # on a GPU an index that is out of range ends the process
        return torch.get_default_device().type == "cpu"
    same = len(call.expected) == len(call.ideal)
    return same and (not gradients or all(map(is_finite, call.ideal)))


def check_calls(
    stage: str, compiled: Callable[..., Any], calls: Sequence[Call], gradients: bool
) -> None:
    """A compiled function, called once or more."""
    for call in calls:
        given = call.program.make()
        if call.raises:
            check_raises(stage, compiled, call, gradients)
            continue
        found = [*results(compiled, given, gradients), *tensors_of(given)]
        compare(stage, call, found)


def check_raises(stage: str, compiled: Callable[..., Any], call: Call, gradients: bool) -> None:
    """It raises, and that because of what it was given."""
    try:
        results(compiled, call.program.make(), gradients)
    except Exception as raised:
        wrong: BaseException | None = raised
        while wrong is not None:
            if isinstance(wrong, CompilerDefect | CompileFailed | OutOfBounds):
                raise
            wrong = wrong.__cause__ or getattr(wrong, "inner_exception", None)
        return
    raise Wrong(f"nothing is raised by {call.program}\n(in {stage})")


def check_against(call: Call, gradients: bool, target: str, options: dict[str, Any]) -> None:
    """Every stage against results that are known."""
    torch.compiler.reset()
    program, given = call.program, call.program.make()
    if call.raises:
        fast = lab.compile(program.function(), options=options)
        return check_raises("the compiled program", fast, call, gradients)
    compilations = []

    def compiled(*inputs: torch.Tensor) -> Any:
        compilations.append(lab.inspect(program.function(), *inputs, options=options))
        return compilations[-1].result

    found = results(compiled, given, gradients)
    compare("the compiled program", call, [*found, *tensors_of(given)])
    for kernel in (k for c in compilations if target for p in c.parts for k in p.kernels):
        kernel.ladder(target)
    pairs = zip(tensors_of(given), tensors_of(program.make()), strict=True)
    on_cpu = torch.get_default_device().type == "cpu"
    if on_cpu and all((x.shape, x.stride()) == (new.shape, new.stride()) for x, new in pairs):
        for graph in compilations[0].graphs:
            check_stages(program, graph)


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
    derived = torch.autograd.grad(outputs, leaves, along, allow_unused=True) if outputs else ()
    return [x.detach() for x in (*found, *derived) if x is not None]


def is_finite(tensor: Any) -> bool:
    return not isinstance(tensor, torch.Tensor) or bool(tensor.detach().isfinite().all())


def check_stages(program: Program, graph: Any) -> None:
    """The loops and the schedule of a graph against its running code."""
    part = graph.forward
    # a deep copy keeps gaps, overlaps, and that inputs share storage
    given = [x.detach() if isinstance(x, torch.Tensor) else x for x in graph.inputs]
    if len(given) != len(part.loops.inputs):
        return
    try:
        running = part.executable.run(*copy.deepcopy(given))
        found = [getattr(part, stage).run(*copy.deepcopy(given)) for stage in STAGES]
    except RuntimeError as wrong:
        # the call wrote to its inputs, and this is another one
        if isinstance(wrong, DividedByZero) or str(wrong) in REFUSED:
            return
        raise
    call = Call(program, running, running)
    try:
        for stage, results_of_it in zip(STAGES, found, strict=True):
            compare(stage, call, results_of_it)
    except Wrong:
        if any(jumps_alone(part, given, call, Shift(one)) for one in (1e-7, -1e-7)):
            return
        raise


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
