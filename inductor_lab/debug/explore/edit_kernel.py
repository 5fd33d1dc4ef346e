"""Compile an edited kernel, compare its results with eager mode, and time it.

    c = lab.inspect(f, x)
    kernel = c.graphs[0].forward.kernels[0]
    print(lab.try_kernel(c, kernel.name, str(kernel.code).replace("sin", "cos")))

The inputs of the kernel's part are copied from the inspected call, and the host program runs on
these copies with the edited kernel.  It runs in a separate process where possible, because the
kernel may crash or never return.  The compilation and the caches on disk do not change.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import FunctionType
from typing import Any

import torch

from inductor_lab.api.arguments import Seconds, checked
from inductor_lab.bench.kernels import Clock
from inductor_lab.bench.timings import Timings
from inductor_lab.compiler.base.errors import UnknownName
from inductor_lab.compiler.codegen.cpp.printer import translation_unit
from inductor_lab.compiler.codegen.kernel import Code, Kernel, Line
from inductor_lab.compiler.records import Record
from inductor_lab.compiler.runtime.cache.kernel_cache import scratch
from inductor_lab.compiler.runtime.executable import Executable, cpp_function
from inductor_lab.compiler.runtime.toolchain.find_compiler import find_toolchain
from inductor_lab.compiler.runtime.toolchain.shared_library import LIBRARY, SOURCE, Library
from inductor_lab.compiler.step_time import duration
from inductor_lab.debug.blame.run_graphs import is_random
from inductor_lab.debug.blame.stages import run_graph
from inductor_lab.debug.compare.precision import Judged, judge
from inductor_lab.debug.compare.values import copies, widened
from inductor_lab.debug.explore.steps import Running, steps_of
from inductor_lab.debug.isolate import Started, Tell, can_fork, run_isolated
from inductor_lab.debug.judge.check_part import judge_part
from inductor_lab.debug.judge.correctness import Checked
from inductor_lab.saved.documents import comparison_types, tool_types
from inductor_lab.saved.documents.kinds import document

OLD, NEW = "the original", "edited"
FEWEST_ROUNDS = 9
SEED = 1
"""Seed, so that programs draw the same random numbers before and after the edit."""
_ERROR = re.compile(
    rf"^(?:\S*{re.escape(SOURCE)}[:(](\d+)(?:[:,]\d+)?\)?\s*:\s*)?(?:fatal )?error\b[^:]*:\s*(.*)$"
)


@dataclass(frozen=True)
class EditedKernel:
    """The result of running an edited kernel.

    errors   (line of the edited text, message) if it does not compile; line 0 if there is no line
    failure  how its run ended, if it did not return (`ended by SIGSEGV`)
    against  the reference: what the results were compared with
    judged   the verdict about each result of its part, in order
    checked  the cases of the judge: the same call with other values and guarded memory
    reasons  why the judge rejects it
    timings  seconds of this kernel alone, `"the original"` and `"edited"`, interleaved
    """

    kernel: str
    part: str
    errors: tuple[tuple[int, str], ...] = ()
    failure: str = ""
    against: str = "eager"
    judged: tuple[Judged, ...] = ()
    checked: tuple[Checked, ...] = ()
    reasons: tuple[str, ...] = ()
    timings: Timings = field(default_factory=lambda: Timings({}))

    @property
    def right(self) -> bool:
        """Did it run, are all results of its part correct, and does the judge accept it?"""
        refused = self.errors or self.failure or self.reasons
        return not refused and all(j.right for j in self.judged)

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        timed = self.timings.rounds > 0
        old, new = (self.timings.median_ms(n) / 1e3 if timed else None for n in (OLD, NEW))
        return document(comparison_types.EditedKernel(
            id="edited_kernel",
            summary=str(self).partition("\n")[0],
            kind="edited_kernel",
            name=self.kernel,
            part=self.part,
            right=self.right,
            errors=[
                tool_types.CompilerError(line=line, message=text) for line, text in self.errors
            ],
            failure=self.failure,
            against=self.against,
            results=[judged.as_data() for judged in self.judged],
            cases=[each.as_data() for each in self.checked],
            reasons=list(self.reasons),
            original_seconds=old,
            edited_seconds=new,
            verdict=self.timings.verdict(NEW, OLD) if timed else "",
        ))  # fmt: skip

    def __str__(self) -> str:
        if self.errors:
            said = [f"line {line}: {text}" if line else text for line, text in self.errors]
            return "\n".join([f"{self.kernel} does not compile", *said])
        if self.failure:
            return f"{self.kernel} {self.failure}"
        wrong = [(n, j) for n, j in enumerate(self.judged) if not j.right]
        worst = max(self.judged, key=lambda j: j.ulp, default=Judged("equal"))
        lines = [f"wrong: result {n} of {self.part}: {j}" for n, j in wrong]
        lines += [f"rejected by the judge: {reason}" for reason in self.reasons]
        lines = lines or [f"right: {self.part} agrees with {self.against} ({worst})"]
        if self.timings.rounds:
            times = [duration(self.timings.median_ms(name) / 1e3) for name in (OLD, NEW)]
            verdict = self.timings.verdict(NEW, OLD)
            lines.append(f"{OLD} {times[0]}, {NEW} {times[1]}: {verdict}")
        return "\n".join(lines)


@checked
def try_kernel(
    compilation: Record,
    kernel: str,
    text: str,
    *,
    part: str = "g0.forward",
    seconds: Seconds = 0.5,
    limit: Seconds = 60.0,
) -> EditedKernel:
    """Run the inspected call with an edited kernel: is it correct, and how fast is it?

    `kernel` is its name, `part` the part that contains it (`"g0.backward"`), and `text` the text of
    the complete function, with the same parameters.  It is timed for about `seconds` and stopped
    after `limit` seconds.  Raises UnknownName for an unknown part or kernel, and NotRunnable for a
    compilation that was loaded from a file.
    """
    try:
        attempt = edited_part(compilation, kernel, text, part)
    except Refused as refused:
        return EditedKernel(kernel, part, errors=refused.errors)
    return run_edit(attempt, seconds, limit)


def run_edit(
    attempt: EditedPart, seconds: float = 0.5, limit: float = 60.0, started: Started | None = None
) -> EditedKernel:
    """Run, judge and time an edited kernel; `started` gets the function that stops its process."""
    ended = run_isolated(partial(attempt.run, seconds), limit, started)
    found = EditedKernel(attempt.kernel, attempt.running.where, against=attempt.against)
    if ended.how != "returned":
        return replace(found, failure=str(ended))
    judged, samples = ended.value
    found = replace(found, judged=judged, timings=Timings(samples))
    if not found.right or attempt.random or not can_fork():
        return found
    with judge_part(attempt, limit) as (verdict, _):
        return replace(found, reasons=verdict.reasons, checked=verdict.checked)


def edited_part(compilation: Record, kernel: str, text: str, part: str) -> EditedPart:
    """The part of a compilation with an edited kernel; raises Refused, UnknownName, NotRunnable."""
    parts = {running.where: running for running in steps_of(compilation).parts}
    if part not in parts:
        there = ", ".join(parts)
        raise UnknownName(f"no part {part!r} runs in this call", todo=f"there is {there}")
    running = parts[part]
    twins = [each for each in running.part.kernels if each.name == kernel]
    if not twins:
        names = ", ".join(dict.fromkeys(each.name for each in running.part.kernels))
        raise UnknownName(f"{part} has no kernel {kernel!r}", todo=f"there is {names}")
    edited = [replace(each, code=edited_code(text, each.code)) for each in twins]
    return EditedPart(running, kernel, compiled(edited))


def edited_code(text: str, old: Code) -> Code:
    """The lines of a text; unchanged lines keep their origins."""
    origins = {line.text: line.origins for line in old.lines}
    return Code.of(
        Line(line, *((origins[line],) if line in origins else ()))
        for line in text.rstrip("\n").split("\n")
    )


class Refused(Exception):
    """A text that does not compile: lines and messages."""

    def __init__(self, errors: Sequence[tuple[int, str]]) -> None:
        super().__init__(errors)
        self.errors = tuple(errors)


def compiled(twins: Sequence[Kernel]) -> Callable[..., Any]:
    """Compile the function of a kernel without any cache; raises Refused."""
    if twins[0].language == "triton":
        return _triton(twins[0])
    toolchain, unit = find_toolchain(), translation_unit(twins)
    above = len(unit.lines) - len(twins[0].code.lines)
    with scratch() as folder:
        source = folder / SOURCE
        source.write_text(str(unit), encoding="utf-8")
        attempt = toolchain.compile(source, folder / LIBRARY)
        if attempt.status != 0:
            raise Refused(list(_messages(attempt.output, above)) or [(0, attempt.output[:500])])
        library = Library.load(folder / LIBRARY)
    try:
        return cpp_function(library, twins, {})  # type: ignore[no-any-return]
    except AttributeError:
        raise Refused([(0, f"the text has no function {twins[0].name} any more")]) from None


def _messages(output: str, above: int) -> Iterator[tuple[int, str]]:
    """The errors of a C++ compiler, each with its line in the kernel's text."""
    for line in output.splitlines():
        found = _ERROR.match(line.strip())
        if found:
            yield max(int(found[1] or 0) - above, 0), found[2]


def _triton(kernel: Kernel) -> Callable[..., Any]:
    from inductor_lab.compiler.runtime.triton.launch import load_kernel

    try:
        compile(str(kernel.code), kernel.name, "exec")
        return load_kernel(kernel)
    except SyntaxError as error:
        raise Refused([(error.lineno or 0, error.msg)]) from None
    except KeyError:
        raise Refused([(0, f"the text has no function {kernel.name} any more")]) from None


@dataclass(frozen=True)
class EditedPart:
    """The original part and the part with the edited function, on the inputs of one call."""

    running: Running
    kernel: str
    function: Callable[..., Any]

    @property
    def inputs(self) -> Sequence[Any]:
        return self.running.inputs

    @property
    def graph(self) -> Callable[..., Any]:
        """The graph of the part, in eager mode."""
        module: Callable[..., Any] = self.running.part.graph.module
        return module

    @property
    def edited(self) -> Callable[..., Any]:
        """The part with the edited function; it returns new values of its inputs."""
        return replace(self.executable, call=self.program(self.function)).run

    @property
    def random(self) -> bool:
        nodes = self.running.part.graph.module.graph.nodes
        return any(is_random(node) for node in nodes)

    @property
    def against(self) -> str:
        return "the generated code" if self.random else "eager"

    @property
    def executable(self) -> Executable:
        assert self.running.part.executable is not None, "the part has just run"
        return self.running.part.executable

    def program(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The host program with `function` as the kernel."""
        names: Any = self.executable.call.__globals__
        program = names["_program"]  # `call` looks for a profiler (runtime/profiler_events.py)
        return FunctionType(program.__code__, {**names, self.kernel: function})

    def run(
        self, seconds: float, _: Tell
    ) -> tuple[tuple[Judged, ...], dict[str, tuple[float, ...]]]:
        """The verdict about each result of the inspected call, and times if all are right."""
        judged = tuple(self.judged())
        right = all(each.right for each in judged)
        return judged, self.samples(seconds) if right else {}

    def judged(self) -> Iterator[Judged]:
        """The verdict about each result and each changed input."""
        given = self.running.inputs
        torch.manual_seed(SEED)
        results = self.edited(*copies(given))
        if self.random:
            torch.manual_seed(SEED)
            expected = self.executable.run(*copies(given))
            yield from (judge(got, peer) for got, peer in zip(results, expected, strict=True)
                        if isinstance(peer, torch.Tensor))  # fmt: skip
            return
        wide = [v.detach() if isinstance(v, torch.Tensor) else v for v in widened(given)]
        ran = run_graph(self.running.part.graph, copies(given), wide, ())
        (output,) = (n for n in self.running.part.graph.module.graph.nodes if n.op == "output")
        for got, node in zip(results, output.args[0], strict=True):
            name = str(getattr(node, "name", ""))  # a result may be None
            if isinstance(peer := ran.own.get(name), torch.Tensor):
                truth = None if ran.exact is None else ran.exact.get(name)
                yield judge(got, peer, truth, ran.spread.get(name))

    def samples(self, seconds: float) -> dict[str, tuple[float, ...]]:
        """Seconds of this kernel in calls of the part, original and edited interleaved."""
        names: Any = self.executable.call.__globals__
        functions = {OLD: names[self.kernel], NEW: self.function}
        clocks = {name: Clock.of(self.running.part) for name in functions}
        calls = {name: self.program(clocks[name].around(self.kernel, function))
                 for name, function in functions.items()}  # fmt: skip
        found: dict[str, list[float]] = {name: [] for name in functions}
        given = copies(self.running.inputs)
        end = time.perf_counter() + seconds
        for number in itertools.count(-1):
            if number >= FEWEST_ROUNDS and time.perf_counter() > end:
                break
            for name in (OLD, NEW) if number % 2 else (NEW, OLD):
                calls[name](list(given))
                took = sum(tick.seconds() for tick in clocks[name].ticks)
                clocks[name].ticks.clear()
                if number >= 0:  # the first round warms up
                    found[name].append(took)
        return {name: tuple(samples) for name, samples in found.items()}
