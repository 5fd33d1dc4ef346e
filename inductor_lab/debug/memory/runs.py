"""Runs of one step in processes of their own, and what their recorders have seen.

Each run is in a fork, so it starts from the same state and changes nothing of the caller.  Where a
fork is impossible, the step runs here and its state is restored.  Of compiled code, a call after
the first one is measured, with an empty memory pool.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePath
from typing import Any, TypeAlias, cast

from inductor_lab.api.backend import inspect
from inductor_lab.compiler.accelerators import pooled_memory, release_memory
from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.capture.span import outside_torch
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.advice.trial import Refused, portable_leaves, watched
from inductor_lab.debug.compare.state import Kept
from inductor_lab.debug.isolate import Ended, Tell, can_fork, run_isolated
from inductor_lab.debug.memory.allocations import Event, record, start_profiler
from inductor_lab.debug.memory.attribution import base_allocations, holders, peak_mark, replay
from inductor_lab.debug.memory.eager_recorder import recording_eager
from inductor_lab.debug.memory.host_recorder import HostRecorder, recording_hosts
from inductor_lab.debug.memory.marks import OURS, Marks
from inductor_lab.debug.memory.our_parts import our_parts, planned_peak
from inductor_lab.debug.memory.parts import HostPart
from inductor_lab.debug.memory.run_step import State, run_backward, run_step
from inductor_lab.debug.memory.step_memory import MemoryRun, Who
from inductor_lab.debug.memory_report import MemoryReport
from inductor_lab.debug.resident_memory import status_bytes
from inductor_lab.stock.memory_parts import stock_parts
from inductor_lab.stock.stock_compilation import StockCompilation

Document: TypeAlias = Mapping[str, Any] | None
TOO_LITTLE = "this machine has too little memory"
_TRIED_TO_ALLOCATE = re.compile(r"[Tt]ried to allocate ([\d.]+ ?(?:bytes|[KMGT]iB))")


@dataclass(frozen=True)
class Step:
    """The step to measure.

    runs_backward  does the function run a backward itself?
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    runs_backward: bool = False

    def state(self) -> State:
        return State.of(self.fn, self.args, self.kwargs)

    def kept(self) -> Kept:
        return Kept([self.fn, *self.args, *self.kwargs.values()])

    @property
    def name(self) -> str:
        return getattr(self.fn, "__name__", type(self.fn).__name__)


@cache
def start_profiler_once() -> None:
    start_profiler()


# ---- one run ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recorded:
    """One recorded step."""

    marks: Marks
    events: tuple[Event, ...]
    state: State
    result: Any
    runs_backward: bool

    @property
    def peak(self) -> int:
        """The mark before the peak; -1 if the step allocates nothing."""
        return peak_mark(self.events, base_allocations(self.state.owned))

    def run(self, who: Who) -> MemoryRun:
        """Its curve, its peak and the holders."""
        base = base_allocations(self.state.owned)
        found = replay(self.events, self.marks.marks, self.marks.facts, base)
        number = self.peak
        mark = self.marks.marks[number] if number >= 0 else None
        return MemoryRun(
            who=who,
            base_bytes=found.base_bytes,
            peak_bytes=found.peak_bytes,
            peak_phase=mark.phase if mark else "forward",
            peak_what=mark.what if mark else "",
            peak_place=mark.place if mark else None,
            kept_bytes=found.kept_bytes,
            holders=holders(found.alive, self.marks.marks, number),
            points=found.points,
        )

    def results(self) -> tuple[Any, ...]:
        """The result, the gradients, and the tensors that an update may have changed."""
        leaves = [leaf for _, leaf in self.state.leaves]
        gradients = [leaf.grad for leaf in leaves]
        return portable_leaves([pytree.tree_leaves(self.result), gradients, leaves])


def eager_step(step: Step, look_at: int = -1) -> Recorded:
    """Run the step once in eager mode in this process; raises StepFailed for one with effects."""
    state, marks = step.state(), Marks(look_at)
    effects: list[str] = []

    def call() -> Any:
        try:
            with watched(effects):
                return step.fn(*step.args, **step.kwargs)
        except Refused as refused:
            raise StepFailed(f"the step cannot be repeated: it {refused}") from None

    def work() -> Any:
        with recording_eager(marks) as recorder:
            return run_step(marks, call, state, lambda: recorder.backward_seen)

    (result, ran_backward), events = record(work, state.device)
    return Recorded(marks, events, state, result, ran_backward)


def compiled_step(
    step: Step, compiled: Callable[..., Any], parts: Sequence[HostPart], look_at: int = -1
) -> Recorded:
    """Run the compiled step once in this process."""
    state, marks = step.state(), Marks(look_at)
    recorder = HostRecorder(marks, parts, pooled_memory)

    def work() -> Any:
        with recording_hosts(recorder):
            return run_step(marks, lambda: compiled(*step.args, **step.kwargs), state,
                            lambda: step.runs_backward)  # fmt: skip

    (result, _), events = record(work, state.device)
    return Recorded(marks, events, state, result, step.runs_backward)


class StepFailed(Exception):
    """The step raised, cannot be repeated, or its process ended."""


@dataclass(frozen=True)
class Once:
    """What comes back from the process of one run; `peak` is the mark before the peak."""

    run: MemoryRun
    peak: int
    runs_backward: bool
    results: tuple[Any, ...] = ()


def measured(
    who: Who, step: Step, run: Callable[[int], Recorded], limit: float, look: bool = True
) -> Once:
    """Run once for the peak, and if `look` once more to look at the variables there.

    Each run is in a fork of this process; without forks, the state is restored.  Raises StepFailed.
    """
    forks = can_fork()
    kept = None if forks else step.kept()

    def isolated(look_at: int) -> Once:
        def work(tell: Tell) -> Once:
            if forks:
                limit_memory()
            with step_errors():
                found = run(look_at)
            results = found.results() if look_at < 0 else ()
            return Once(found.run(who), found.peak, found.runs_backward, results)

        ended = run_isolated(work, limit)
        if kept is not None:
            kept.put_back()
        if ended.how != "returned":
            raise StepFailed(said(ended))
        return cast(Once, ended.value)

    if not forks:
        isolated(-1)  # libraries keep what they allocate in the first call of a process
    first = isolated(-1)
    if first.peak < 0 or not look:
        return first
    second = isolated(first.peak)
    if (second.peak, second.run.peak_bytes) != (first.peak, first.run.peak_bytes):
        return first
    return replace(first, run=replace(first.run, holders=second.run.holders))


def limit_memory() -> None:
    """Let this process allocate no more memory than the machine has: it raises, and the system
    ends no process."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        (free,) = (int(line.split()[1]) << 10 for line in lines if "MemAvailable" in line)
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = status_bytes("VmData") + free
        allowed = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, most))


@contextmanager
def step_errors() -> Iterator[None]:
    """Convert exceptions of the step to StepFailed, with the user's line."""
    try:
        yield
    except StepFailed:
        raise
    except Exception as error:
        kind, (message, *_) = type(error).__name__, (str(error) or "no message").splitlines()
        frames = [f for f in traceback.extract_tb(error.__traceback__)
                  if outside_torch(f.filename) and not f.filename.startswith(OURS)]  # fmt: skip
        at = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        raise StepFailed(f"{_sentence(kind, message)}{at}") from error


def _sentence(kind: str, message: str) -> str:
    wanted = _TRIED_TO_ALLOCATE.search(message)
    if wanted is None:
        return f"raises {kind}: {message}"
    size = wanted[1]
    if size.endswith("bytes"):
        size = bytes_text(int(size.split()[0]))
    return f"{TOO_LITTLE}: the step tries to allocate {size}"


def said(ended: Ended) -> str:
    """How a process ended."""
    if ended.how == "raised":
        return str(ended.value) if ended.kind == "StepFailed" else f"raises {ended.kind}: " + (
            str(ended.value).partition("\n")[0])  # fmt: skip
    return f"the process {ended}"


# ---- compiled code ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Compiled:
    """A measured call of compiled code.

    once           None if it failed
    plan           the document of our memory plans
    can_keep_less  can a smaller memory budget keep fewer bytes for the backward?
    """

    run: MemoryRun
    once: Once | None = None
    plan: Document = None
    can_keep_less: bool = False


def compiled_run(
    who: Who, step: Step, options: Options, limit: float, look: bool = True
) -> Compiled:
    """Compile the step in a process of its own, and measure a later call there."""
    forks = can_fork()

    def work(tell: Tell) -> Compiled:
        if forks:
            limit_memory()
        kept = step.kept()
        with step_errors():
            compiled = inspect(step.fn, *step.args, options=options, compiler=who, **step.kwargs)
            if not step.runs_backward:
                run_backward(compiled.result)
        kept.put_back()
        del kept
        release_memory()
        stock = isinstance(compiled, StockCompilation)
        parts = stock_parts(compiled) if stock else our_parts(compiled)

        def run(look_at: int) -> Recorded:
            return compiled_step(step, compiled.compiled, parts, look_at)

        once = measured(who, step, run, limit, look)
        if stock:
            return Compiled(once.run, once)
        planned = once.run.base_bytes + planned_peak(compiled)
        once = replace(once, run=replace(once.run, planned_bytes=planned))
        partitions = [graph.partition for graph in compiled.graphs if graph.partition]
        less = any(each.bytes_if_min < each.cut_bytes for each in partitions)
        return Compiled(once.run, once, MemoryReport(compiled).to_dict(), less)

    ended = run_isolated(work, 3 * limit)
    if ended.how != "returned":
        return Compiled(MemoryRun(who, failure=said(ended)))
    return cast(Compiled, ended.value)
