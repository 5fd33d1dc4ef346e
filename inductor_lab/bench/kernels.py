"""Every kernel and library call of a compilation, timed where it runs: in the program itself.

A host program finds its kernels and libraries by name.  While it is measured, those names lead to
the same callables with a clock around them; so a kernel meets the buffers, the values and the
caches that it meets in real use.  Afterwards the names are as they were.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.flop_counter import flop_registry

from inductor_lab.bench.jobs import job
from inductor_lab.bench.machine import ceilings
from inductor_lab.bench.roofline import StepTime
from inductor_lab.bench.timing import Timings, clock_of
from inductor_lab.errors import NotRunnable
from inductor_lab.ir.higher_order import PREFIX, call_higher_order
from inductor_lab.ir.program import ExternCall
from inductor_lab.schedule.cost import extern_cost
from inductor_lab.schedule.result import ScheduleStep

if TYPE_CHECKING:
    from inductor_lab.compilation import Compilation, CompiledGraph, CompiledPart

FEWEST_ROUNDS = 5
AGAIN = "call lab.inspect(f, x) again, and measure that compilation"


def measure(compilation: Compilation, seconds: float = 1.0) -> Compilation:
    """`Compilation.measure`, which says what it does."""
    call, compiled = compilation.call, compilation.compiled
    if call is None or compiled is None:
        raise NotRunnable(f"{compilation.name} was loaded from a file: it has no code", todo=AGAIN)
    if compilation.target is not None:
        raise NotRunnable(
            f"{compilation.name} was compiled for {compilation.target}, not for this machine",
            todo="leave `target` out to measure what runs here",
        )
    trains = any(graph.backward is not None for graph in compilation.graphs)
    with torch.set_grad_enabled(call.with_grad), ExitStack() as stack:
        run = job(compiled, call.args, call.kwargs, backward=trains)
        run()
        clocks = {id(part): stack.enter_context(clocked(part)) for part in compilation.parts}
        end = time.perf_counter() + seconds
        rounds = 0
        while rounds < FEWEST_ROUNDS or time.perf_counter() < end:
            run()
            rounds += 1
    graphs = tuple(_measured_graph(graph, clocks) for graph in compilation.graphs)
    return replace(compilation, graphs=graphs)


@dataclass(frozen=True)
class Tick:
    """One call of one step; the seconds of a GPU are asked for when it is done."""

    name: str
    seconds: Callable[[], float]
    flops: int


@dataclass(frozen=True)
class Clock:
    """Every call of the steps of one part, in order; `gpu` says whose clock counts."""

    gpu: bool
    ticks: list[Tick] = field(default_factory=list)

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with a clock around it, which notes its call under `name`."""
        flops_of = flop_registry.get(getattr(function, "overloadpacket", None))
        start = clock_of(self.gpu)

        def timed(*args: Any, **kwargs: Any) -> Any:
            stop = start()
            result = function(*args, **kwargs)
            seconds = stop()
            flops = flops_of(*args, **kwargs, out_val=result) if flops_of else 0
            self.ticks.append(Tick(name, seconds, flops))
            return result

        return timed


@contextmanager
def clocked(part: CompiledPart) -> Iterator[Clock]:
    """Clocks around everything that the part's host program calls, while the block runs."""
    assert part.executable is not None, f"{part.name} has no running code"
    names: dict[str, Any] = part.executable.call.__globals__
    clock = Clock(gpu=any(b.device.startswith("cuda") for b in part.loops.buffers.values()))
    wrapped: dict[str, Any] = {k.name: clock.around(k.name, names[k.name]) for k in part.kernels}
    for step in part.schedule.steps:
        if isinstance(step, ExternCall):
            space = step.op.split(".")[0]
            if step.op.startswith(PREFIX):
                space = call_higher_order.__name__
                wrapped[space] = clock.around(space, names[space])
            else:
                wrapped[space] = _Space(clock, space, names[space])
    kept = {name: names[name] for name in wrapped}
    names.update(wrapped)
    try:
        yield clock
    finally:
        names.update(kept)


class _Space:
    """Stands for `torch.ops.aten` or one of its operators; calls of overloads are timed."""

    def __init__(self, clock: Clock, name: str, real: Any) -> None:
        self._clock, self._name, self._real = clock, name, real

    def __getattr__(self, name: str) -> Any:
        real, whole = getattr(self._real, name), f"{self._name}.{name}"
        if hasattr(real, "overloadpacket"):
            return self._clock.around(whole, real)
        return _Space(self._clock, whole, real)


def _measured_graph(graph: CompiledGraph, clocks: Mapping[int, Clock]) -> CompiledGraph:
    backward = graph.backward and _measured_part(graph.backward, clocks[id(graph.backward)])
    return replace(
        graph, forward=_measured_part(graph.forward, clocks[id(graph.forward)]), backward=backward
    )


def _measured_part(part: CompiledPart, clock: Clock) -> CompiledPart:
    """The part with a `StepTime` for each step of its schedule."""
    steps, ticks = part.schedule.steps, clock.ticks
    if not steps:
        return part
    if not ticks or len(ticks) % len(steps):
        raise NotRunnable(
            f"the {part.name} of this compilation no longer runs: it was compiled again, or reset",
            todo=AGAIN,
        )
    names = {group.name: kernel.name
             for group, kernel in zip(part.schedule.groups, part.kernels, strict=True)}  # fmt: skip
    times = tuple(
        _step_time(step, names, part, ticks[position :: len(steps)])
        for position, step in enumerate(steps)
    )
    return replace(part, times=times)


def _step_time(
    step: ScheduleStep, names: Mapping[str, str], part: CompiledPart, ticks: Sequence[Tick]
) -> StepTime:
    buffers = part.schedule.program.buffers
    if isinstance(step, ExternCall):
        cost, name, made = extern_cost(step, buffers), step.op, step.outputs
    else:
        cost, name, made = step.cost, names[step.name], tuple(sorted(step.stored))
    expected = call_higher_order.__name__ if name.startswith(PREFIX) else name
    assert {tick.name for tick in ticks} == {expected}, f"{name} was not called in its turn"
    timings = Timings({name: tuple(tick.seconds() for tick in ticks)})
    flops = max(cost.flops, ticks[0].flops)
    outputs = [buffers[buffer] for buffer in made if buffer is not None]
    device = outputs[0].device if outputs else "cpu"
    dtype = str(outputs[0].dtype).removeprefix("torch.") if outputs else "float32"
    limits = ceilings(device)
    by_bytes = limits.seconds(cost.bytes, 0)
    return StepTime(
        name=name,
        generated=not isinstance(step, ExternCall),
        seconds=timings.median_ms(name) / 1e3,
        spread=timings.spread(name),
        nbytes=cost.bytes,
        flops=flops,
        roof=limits.seconds(cost.bytes, flops, dtype),
        memory=by_bytes >= limits.seconds(0, flops, dtype),
    )
