"""One random program in eager mode, in float64, and through every stage of the compiler."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any
from unittest import mock

import torch
import torch._dynamo.config as dynamo_config

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
from tests.fuzz.eager import Call, Wrong, compare, is_comparable, known, outcome, results
from tests.fuzz.jumps import Shift, jumps, jumps_alone
from tests.fuzz.program import Program, tensors_of
from tests.fuzz.shrink import said
from tests.fuzz.values import REFUSALS

compile_always()

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
    """Does `aot_eager` raise too, or stock Inductor in the same words, or at sizes that torch took
    for equal?  That nothing is raised in the first call is no excuse, nor are wrong results."""
    if isinstance(wrong, Wrong):
        return ""
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


