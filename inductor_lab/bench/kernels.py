"""Time every kernel and library call of a compilation inside the running program.

A host program finds its kernels and libraries by name.  During the measurement these names refer
to the same callables with a timer, so a kernel runs with its real buffers, values and caches.
Afterwards the names are restored.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple

import torch

from inductor_lab.bench.jobs import Job
from inductor_lab.bench.machine import ceilings, keep
from inductor_lab.bench.roofs import Ceilings
from inductor_lab.bench.timing import clock_of
from inductor_lab.bench.timings import Timings
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.compiler.codegen.host.host_program import QUICKLY
from inductor_lab.compiler.ir.higher_order import KERNELS_OF_OURS, PREFIX, call_higher_order
from inductor_lab.compiler.ir.program import ExternCall
from inductor_lab.compiler.records import AnyRecord, CompiledPart
from inductor_lab.compiler.schedule.cost import extern_cost
from inductor_lab.compiler.schedule.schedule import ScheduleStep
from inductor_lab.compiler.step_time import StepTime
from inductor_lab.debug.explore.what_if import inspect_again

FEWEST_ROUNDS = 5
ONE_AT_A_TIME = threading.Lock()
"""Concurrent measurements would include each other's timer overhead."""
MOST_OF_A_ROOF = 1.05
"""A step that reaches more of a roof shows that the roof was measured too low."""
AGAIN = "call lab.inspect(f, x) again, and measure that compilation"


def measure(compilation: AnyRecord, seconds: float = 1.0) -> AnyRecord:
    """Implements `Compilation.measure`."""
    return timed(compilation, seconds).compilation


class Timed(NamedTuple, Generic[AnyRecord]):
    """A compilation with its times, the limits of each device, and whether a backward was timed.

    There is no backward to time if the call has no gradient, or if it calls backward itself.
    """

    compilation: AnyRecord
    limits: Mapping[str, Ceilings]
    backward: bool


def timed(compilation: AnyRecord, seconds: float, *, backward: bool = True) -> Timed[AnyRecord]:
    """Time every step of a compilation.

    `backward` also computes the gradient of the results, if there is one.
    """
    with ONE_AT_A_TIME, ready(compilation, backward) as (running_one, parts, run):
        clocks = {id(part): Clock.of(part) for part in parts}
        end = time.perf_counter() + seconds
        took: list[float] = []
        with running(parts, clocks):
            while len(took) < FEWEST_ROUNDS or time.perf_counter() < end:
                took.append(seconds_of(run))
    measured, limits = with_times(running_one, clocks, statistics.median(took))
    return Timed(measured, limits, bool(run.backward))


def seconds_of(run: Callable[[], Any]) -> float:
    """Seconds of a call on the host's clock, including the wait for the GPU."""
    start = time.perf_counter()
    run()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


class Ready(NamedTuple, Generic[AnyRecord]):
    """A compilation whose code the inspected call runs, the parts that run in it, and the call."""

    compilation: AnyRecord
    parts: Sequence[CompiledPart]
    run: Job


@contextmanager
def ready(compilation: AnyRecord, backward: bool = True) -> Iterator[Ready[AnyRecord]]:
    """Make the inspected call once before the block; `backward` as in `timed`.

    If the call now runs other code (compiled for other sizes, or none after a reset), it is
    inspected again.  Raises NotRunnable for a compilation that was loaded or compiled for another
    machine.
    """
    call = compilation.call
    if call is None or compilation.compiled is None:
        raise NotRunnable(f"{compilation.name} was loaded from a file: it has no code", todo=AGAIN)
    if compilation.target is not None:
        raise NotRunnable(
            f"{compilation.name} was compiled for {compilation.target}, not for this machine",
            todo="leave `target` out to measure what runs here",
        )
    with torch.set_grad_enabled(call.with_grad):
        found = _first_run(compilation, backward)
        if any(g.forward.schedule.steps and g.forward not in found.parts
               for g in compilation.graphs):  # fmt: skip
            found = _first_run(inspect_again(compilation), backward)
        if not found.parts and any(part.schedule.steps for part in found.compilation.parts):
            raise NotRunnable(
                f"each call of {compilation.name} recompiles: it changes a value that its guards "
                "check, such as a counter",
                todo="lab.recompiles shows the guard; count in a tensor, or outside the function",
            )
        yield found


def _first_run(compilation: AnyRecord, backward: bool) -> Ready[AnyRecord]:
    call, compiled = compilation.call, compilation.compiled
    assert call is not None and compiled is not None, "the call was compiled in this process"
    has_one = any(graph.backward is not None for graph in compilation.graphs)
    run = Job(compiled, call.args, call.kwargs, None if backward and has_one else False)
    clocks = {id(part): Clock.of(part) for part in compilation.parts}
    with running(compilation.parts, clocks):
        run()
    ran = [part for part in compilation.parts if clocks[id(part)].ticks]
    return Ready(compilation, ran, run)


@contextmanager
def running(parts: Sequence[CompiledPart], clocks: Mapping[int, Clock]) -> Iterator[None]:
    """Time the parts (by `id`) with their clocks while the block runs."""
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(clocked(part, clocks[id(part)]))
        yield


def with_times(
    compilation: AnyRecord, clocks: Mapping[int, Clock], call_seconds: float
) -> tuple[AnyRecord, Mapping[str, Ceilings]]:
    """The compilation with the times of its parts' clocks, and the limits of each device."""
    parts = [part for part in compilation.parts if id(part) in clocks]
    steps = {id(part): _steps(part, clocks[id(part)]) for part in parts}
    roofs = _roofs([step for found in steps.values() for step in found])
    graphs = tuple(
        replace(graph, forward=_timed(graph.forward, steps, roofs),
                backward=graph.backward and _timed(graph.backward, steps, roofs))
        for graph in compilation.graphs
    )  # fmt: skip
    return replace(compilation, graphs=graphs, call_seconds=call_seconds), roofs


@dataclass(frozen=True)
class Measured:
    """One step before it is compared with a roof, and the device and dtype of that roof."""

    time: StepTime
    device: str
    dtype: str

    def under(self, limits: Ceilings) -> StepTime:
        """The step with the roof of these limits, or without a roof if they are unreliable."""
        by_bytes = limits.seconds(self.time.nbytes, 0)
        by_flops = limits.seconds(0, self.time.flops, self.dtype)
        roof = None if limits.doubt else max(by_bytes, by_flops)
        return replace(self.time, roof=roof, memory=by_bytes >= by_flops)

    def outdoes(self, limits: Ceilings) -> bool:
        """Was it faster than these limits allow, by more than the measurement error?"""
        share = self.under(limits).share
        return share is not None and share > MOST_OF_A_ROOF


def _roofs(steps: Sequence[Measured]) -> Mapping[str, Ceilings]:
    """Limits for each device that no measured step exceeds.

    If a step exceeds a limit, the machine was busy when the limit was measured, so it is measured
    again.  If the step is still faster than a copy, the limit is raised to the rate of the step.
    """
    found: dict[str, Ceilings] = {}
    for device in dict.fromkeys(step.device for step in steps):
        limits = ceilings(device)
        here = [step for step in steps if step.device == device]
        if any(step.outdoes(limits) for step in here):
            limits = ceilings(device, fresh=True)
            for step in here:
                if step.outdoes(limits):
                    time = step.time
                    limits = limits.raised(
                        time.nbytes, time.bandwidth, time.flop_rate, step.dtype
                    )
            if not limits.doubt:
                keep(limits)
        found[device] = limits
    return found


@dataclass(frozen=True)
class Tick:
    """One call of one step; it `began` at this host time.  GPU times are read at the end."""

    name: str
    began: float
    seconds: Callable[[], float]


@dataclass(frozen=True)
class Clock:
    """Every call of the steps of one part, in order; `gpu`: measure with CUDA events.

    Calls from other threads do not count.  (On a GPU autograd runs backwards in its own thread, so
    there all calls count.)
    """

    gpu: bool
    ticks: list[Tick] = field(default_factory=list)
    thread: int = field(default_factory=threading.get_ident)

    @staticmethod
    def of(part: CompiledPart) -> Clock:
        """A clock for the device that a part runs on."""
        gpu = any(b.device.startswith("cuda") for b in part.loops.buffers.values())
        return Clock(gpu)

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with a timer that records its calls under `name`."""
        start = clock_of(self.gpu)

        def clocked_call(*args: Any, **kwargs: Any) -> Any:
            if not self.gpu and threading.get_ident() != self.thread:
                return function(*args, **kwargs)
            began = time.perf_counter()
            stop = start()
            result = function(*args, **kwargs)
            seconds = stop()
            self.ticks.append(Tick(name, began, seconds))
            return result

        return clocked_call

    def around_caller(self, caller: Callable[..., Any]) -> Callable[..., Any]:
        """Like `around` for a function that calls its first argument; that one gives the name."""

        def clocked_call(operator: Any, *given: Any) -> Any:
            return self.around(f"{PREFIX}{operator}", caller)(operator, *given)

        return clocked_call


@contextmanager
def clocked(part: CompiledPart, clock: Clock) -> Iterator[None]:
    """Time everything that the part's host program calls while the block runs."""
    assert part.executable is not None, f"{part.name} has no running code"
    names: dict[str, Any] = part.executable.call.__globals__
    wrapped: dict[str, Any] = {k.name: clock.around(k.name, names[k.name]) for k in part.kernels}
    for step in part.schedule.steps:
        if isinstance(step, ExternCall):
            space = step.op.split(".")[0]
            if step.op in QUICKLY:
                wrapped[QUICKLY[step.op]] = clock.around(step.op, names[QUICKLY[step.op]])
            elif step.op.startswith(PREFIX):
                caller = call_higher_order.__name__
                wrapped[caller] = clock.around_caller(names[caller])
            else:
                wrapped[space] = _Space(clock, space, names[space])
    kept = {name: names[name] for name in wrapped}
    names.update(wrapped)
    try:
        with part.executable.stepwise():
            yield
    finally:
        names.update(kept)


class _Space:
    """Stands for `torch.ops.aten` or one of its operators; calls of overloads are timed."""

    def __init__(self, clock: Clock, name: str, real: Any) -> None:
        self._clock, self._name, self._real = clock, name, real

    def __getattr__(self, name: str) -> Any:
        real, whole = getattr(self._real, name), f"{self._name}.{name}"
        is_overload = hasattr(real, "overloadpacket")
        found = self._clock.around(whole, real) if is_overload else _Space(self._clock, whole, real)
        self.__dict__[name] = found  # later lookups find the attribute
        return found


def _timed(
    part: CompiledPart,
    steps: Mapping[int, Sequence[Measured]],
    roofs: Mapping[str, Ceilings],
) -> CompiledPart:
    """The part with a `StepTime` for each step of its schedule."""
    found = steps.get(id(part), ())
    times = tuple(step.under(roofs[step.device]) for step in found)
    return replace(part, times=times)


def _steps(part: CompiledPart, clock: Clock) -> Sequence[Measured]:
    """The measured time of each step of the part's schedule."""
    steps, ticks = part.schedule.steps, clock.ticks
    if not steps:
        return ()
    if not ticks or len(ticks) % len(steps):
        raise NotRunnable(
            f"the {part.name} of this compilation no longer runs: it has been recompiled",
            todo=AGAIN,
        )
    names = {group.name: kernel.name
             for group, kernel in zip(part.schedule.groups, part.kernels, strict=True)}  # fmt: skip
    return tuple(
        _measured(step, names, part, ticks[position :: len(steps)])
        for position, step in enumerate(steps)
    )


def _measured(
    step: ScheduleStep, names: Mapping[str, str], part: CompiledPart, ticks: Sequence[Tick]
) -> Measured:
    buffers = part.schedule.program.buffers
    if isinstance(step, ExternCall):
        cost, name, made = extern_cost(step, buffers), step.op, step.outputs
    else:
        cost, name, made = step.cost, names[step.name], tuple(sorted(step.stored))
    assert {tick.name for tick in ticks} == {name}, f"{name} was not called in order"
    timings = Timings({name: tuple(tick.seconds() for tick in ticks)})
    outputs = [buffers[buffer] for buffer in made if buffer is not None]
    time = StepTime(
        name=name,
        generated=not isinstance(step, ExternCall) or step.reason == KERNELS_OF_OURS,
        seconds=timings.median_ms(name) / 1e3,
        spread=timings.spread(name),
        nbytes=cost.bytes,
        flops=cost.flops,
        interval=timings.median_interval(name),
    )
    device = outputs[0].device if outputs else "cpu"
    dtype = str(outputs[0].dtype).removeprefix("torch.") if outputs else "float32"
    return Measured(time, device, dtype)
