"""Calls consecutive kernels from C++, without Python between them.

A host program calls each kernel and product from Python, which takes two to seven microseconds;
MobileBERT has 700 of them.  Here consecutive steps whose sizes are fixed become one call of a
small C++ loop (`lab_steps.h`), which reads functions and addresses from a table:

    buf0 = linear(x, weight, bias)            arena = POOL.empty(...)
    cpp_fused_relu_0(buf0, buf1)        →     run_0(arena, x, packed[0], bias, buf2)
    buf2 = linear(buf1, ...)                  return (buf2,)
    return (buf2,)

Buffers that only these steps use share one block of memory, the arena.  Products and convolutions
belong to a run if our own library computes them (`own_products.py`, `convolution_steps.py`).  If a
weight cannot be packed, or while a tool times or records single steps, the ordinary host program
runs.

Inductor: `cpp_wrapper`, which prints the whole host program in C++ and compiles it.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

import torch

from inductor_lab.compiler.accelerate.native_steps import (
    Argument,
    NativeStep,
    Packed,
    Prepared,
    native_step,
)
from inductor_lab.compiler.accelerate.own_products import NAME
from inductor_lab.compiler.accelerate.packing import WEIGHTS, packed_weight, weights_among
from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.codegen.host.host_program import HostWriter, uses_pool
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.ir.expr import NO_ORIGINS
from inductor_lab.compiler.ir.program import Buffer, BufferKind, Layout
from inductor_lab.compiler.runtime.executable import STEPWISE, Executable
from inductor_lab.compiler.runtime.failing_lines import NOTE, guarded_text, line_adder
from inductor_lab.compiler.runtime.toolchain.shared_library import Library, library_of
from inductor_lab.compiler.schedule.schedule import Group, Schedule, ScheduleStep
from inductor_lab.compiler.torch_door.torch_api import mark_boxed, profiler, profiles

FEWEST = 3
"""The minimum number of steps of a run (chosen)."""
ALIGNED = 64
"""The alignment of buffers in an arena, in bytes: a cache line."""
_TEXT = """
extern "C" LAB_EXPORT int64_t run_steps(
    const int64_t* steps, int64_t count, const int64_t* slots) {
    return lab_run_steps(steps, count, slots);
}
"""

Call = Callable[[list[Any]], Any]


# ---- runs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """Consecutive steps, from position `first` of the schedule.

    offsets   buffer → its place in the arena, for the storages that only these steps use
    nbytes    of the arena
    """

    first: int
    steps: tuple[NativeStep, ...]
    offsets: Mapping[str, int]
    nbytes: int

    @property
    def end(self) -> int:
        return self.first + len(self.steps)

    @cached_property
    def prepared(self) -> tuple[Prepared, ...]:
        """The weights that are packed before it begins."""
        given = (argument for step in self.steps for argument in step.arguments)
        return tuple(dict.fromkeys(each for each in given if isinstance(each, Prepared)))


def runs_of(schedule: Schedule, kernels: Sequence[Kernel]) -> tuple[Run, ...]:
    """The runs of a schedule, in order."""
    remaining = iter(kernels)
    natives: list[NativeStep | None] = []
    for step in schedule.steps:
        kernel = next(remaining) if isinstance(step, Group) else None
        natives.append(native_step(step, kernel, schedule))
    found: list[Run] = []
    together: list[NativeStep] = []
    for position, native in enumerate([*natives, None]):
        if native is None or _waits(native, together):
            if len(together) >= FEWEST:
                found.append(_run(schedule, position - len(together), tuple(together)))
            together = []
        if native is not None:
            together.append(native)
    return tuple(found)


def _waits(native: NativeStep, together: Sequence[NativeStep]) -> bool:
    """Is a weight prepared from a result of these steps, so that they must end before?"""
    made = {name for step in together for name in step.makes}
    scales = (each.scale for each in native.arguments if isinstance(each, Prepared))
    return any(scale is not None and scale.buffer in made for scale in scales)


def _run(schedule: Schedule, first: int, steps: tuple[NativeStep, ...]) -> Run:
    """The run with the places of its storages in the arena."""
    memory, end = schedule.memory, first + len(steps)
    made = {name for step in steps for name in step.makes}
    lives: dict[str, list[int]] = {}
    for life in memory.lifetimes:
        storage = memory.storage(life.buffer)
        lives.setdefault(storage, []).extend((life.first, life.last))
    wanted = {name: (min(times), max(times)) for name, times in lives.items()
              if name in made and max(times) < end}  # fmt: skip
    buffers = schedule.program.buffers
    sizes = {name: buffers[name].layout.storage_size * buffers[name].dtype.itemsize
             for name in wanted}  # fmt: skip
    places, nbytes = arena_places(wanted, {n: int(size) for n, size in sizes.items()})
    offsets = {name: places[memory.storage(name)] for name in made
               if memory.storage(name) in places}  # fmt: skip
    return Run(first, steps, offsets, nbytes)


def arena_places(
    lives: Mapping[str, tuple[int, int]], sizes: Mapping[str, int]
) -> tuple[dict[str, int], int]:
    """Offsets of storages in one block of memory, and its size; the largest are placed first.

    Storages that are alive at the same time do not overlap.  `lives` has the first and last step.
    """
    placed: list[tuple[int, int, str]] = []
    for name in sorted(lives, key=lambda name: -sizes[name]):
        size, (first, last), offset = -(-sizes[name] // ALIGNED) * ALIGNED, lives[name], 0
        for start, end, other in sorted(placed):
            at_once = lives[other][0] <= last and first <= lives[other][1]
            if at_once and start < offset + size and offset < end:
                offset = end
        placed.append((offset, offset + size, name))
    return {name: start for start, _, name in placed}, max((end for _, end, _ in placed), default=0)


# ---- the host program --------------------------------------------------------------------------

Row = tuple[tuple[int, int], ...]
"""The arguments of a step: for each a slot and an offset."""


@dataclass
class _Writer(HostWriter):
    """Prints a host program with runs.

    `tables` has the arguments of the steps of each run that is printed.
    """

    runs: Sequence[Run] = ()
    tables: list[tuple[Row, ...]] = field(default_factory=list)

    @cached_property
    def weights(self) -> tuple[Packed, ...]:
        """The weights that the runs need packed."""
        given = (each for run in self.runs for step in run.steps for each in step.arguments)
        return tuple(dict.fromkeys(each for each in given if isinstance(each, Packed)))

    def before_clearing(self) -> None:
        prepared = dict.fromkeys(each.weight for run in self.runs for each in run.prepared)
        if self.weights or prepared:
            weights = ", ".join(each.weight for each in self.weights)
            self.emit(f"packed = packed_weights([{weights}], [{', '.join(prepared)}])")
            self.emit("if packed is None:")
            self.emit("    return plain(args)")

    def step(self, position: int, step: ScheduleStep, kernel: Kernel | None) -> None:
        inside = next((run for run in self.runs if run.first <= position < run.end), None)
        if inside is None:
            super().step(position, step, kernel)
        elif position == inside.first:
            self.tables.append(self.run(len(self.tables), inside))

    def run(self, number: int, run: Run) -> tuple[Row, ...]:
        """Print a run's call, and allocate what is used after it; return the table of the run."""
        memory, buffers = self.schedule.memory, self.program.buffers
        made = [name for step in run.steps for name in step.makes]
        for storage in dict.fromkeys(memory.storage(name) for name in made):
            if storage not in self.bound and storage not in run.offsets:
                self.bound.add(storage)
                new = self.new_tensor(buffers[storage])
                self.emit(f"{storage} = {new}", buffers[storage].origins)
        if prepared := run.prepared:
            weights = ", ".join(each.weight for each in prepared)
            scales = ", ".join("None" if each.scale is None else self.value(each.scale)
                               for each in prepared)  # fmt: skip
            self.emit(f"prepared = prepare_{number}([{weights}], [{scales}])")
        slots = {"0": 0}
        if run.offsets:
            layout = Layout.contiguous((run.nbytes,))
            arena = Buffer("arena", BufferKind.COMPUTED, torch.uint8, "cpu", layout)
            self.emit(f"arena = {self.new_tensor(arena)}")
        rows = tuple(
            tuple((slots.setdefault(text, len(slots)), offset)
                  for text, offset in (self.slot(run, argument) for argument in step.arguments))
            for step in run.steps
        )  # fmt: skip
        origins = NO_ORIGINS.union(*(buffers[name].origins for name in made))
        kinds = Counter(step.name for step in run.steps)
        listed = ", ".join(f"{count} {name}" for name, count in kinds.most_common())
        self.emit(f"# {listed}")
        self.emit(f"run_{number}({', '.join(slots)})", origins, statement=True)
        if run.offsets:
            self.emit("del arena")
        if prepared:
            self.emit("del prepared")
        for position, step in enumerate(run.steps, run.first):
            for name in step.makes:
                self.rename(run, name)
            self.free(position)
        return rows

    def rename(self, run: Run, name: str) -> None:
        """Bind a buffer to the storage that it reuses, if that is used after the run."""
        if name in self.bound or name in run.offsets:
            return
        source, layout = self.root(name), self.program.buffers[name].layout
        same = self.program.buffers[source].layout == layout
        self.emit(f"{name} = {source if same else self.reinterpreted(source, layout)}")
        self.bound.add(name)
        self.taken_over.append(source)

    def root(self, name: str) -> str:
        """The name of the tensor that has the storage of a buffer."""
        while name not in self.bound and name in self.schedule.memory.reuse:
            name = self.schedule.memory.reuse[name]
        return name

    def slot(self, run: Run, argument: Argument) -> tuple[str, int]:
        """The expression for the slot of an argument, and the offset to it."""
        if isinstance(argument, int):
            return "0", argument
        if isinstance(argument, str):
            return argument, 0
        if isinstance(argument, Packed):
            return f"packed[{self.weights.index(argument)}].data_ptr()", 0
        if isinstance(argument, Prepared):
            return f"prepared[{run.prepared.index(argument)}].data_ptr()", 0
        name, buffers = argument.buffer, self.program.buffers
        offset = int(argument.layout.offset) * buffers[name].dtype.itemsize
        if name in run.offsets:
            return "arena.data_ptr()", run.offsets[name] + offset
        return f"{self.root(name)}.data_ptr()", offset


# ---- running -----------------------------------------------------------------------------------


@cache
def _runner() -> Any:
    """The C++ loop.  Raises LabError if it cannot be compiled."""
    run = library_of(_TEXT, "steps").handle.run_steps
    run.argtypes = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    run.restype = ctypes.c_int64
    return run


def ahead(inputs: Sequence[Any], options: Options) -> Iterable[tuple[Any, tuple[Any, ...]]]:
    """What the products of a graph need to be in a run."""
    return [(_runner, ())] if weights_among(inputs, options) else []


def _caller(run: Run, table: Sequence[Row], library: Library | None) -> Callable[..., None]:
    """Return the function that a host program calls for a run, with the values of its slots."""
    functions = [step.function(library) for step in run.steps]
    numbers: list[int] = []
    for function, row in zip(functions, table, strict=True):
        numbers += [ctypes.cast(function, ctypes.c_void_p).value or 0, len(row)]
        numbers += [number for pair in row for number in pair]
    steps = (ctypes.c_int64 * len(numbers))(*numbers)
    slots = ctypes.c_int64 * (1 + max(slot for row in table for slot, _ in row))
    start, count = _runner(), len(table)

    def call(*values: int) -> None:
        stopped: int = start(steps, count, slots(*values))
        if stopped:
            number = (stopped >> 32) - 1
            run.steps[number].failed(functions[number], stopped & 0xFFFFFFFF)

    return call


def _packed_weights(
    asked: Sequence[Packed], weights: Sequence[torch.Tensor], prepared: Sequence[torch.Tensor]
) -> list[torch.Tensor] | None:
    """The packed form of each weight; None if one of all weights cannot be packed."""
    if not all(map(WEIGHTS.allows, prepared)):
        return None
    found: list[torch.Tensor] = []
    for each, weight in zip(asked, weights, strict=True):
        packed = packed_weight(weight, each.rows, each.transposed, NAME)
        if packed is None:
            return None
        found.append(packed)
    return found


def _prepared(
    asked: Sequence[Prepared], weights: Sequence[torch.Tensor],
    scales: Sequence[torch.Tensor | None],
) -> list[torch.Tensor]:  # fmt: skip
    given = zip(asked, weights, scales, strict=True)
    return [each.prepare(weight, scale) for each, weight, scale in given]


class InRuns:
    """A compiled graph whose runs of steps are single calls.

    host_in_runs   the host program that calls them
    runs           what each `run_N` calls
    """

    def __init__(
        self, plain: Executable, schedule: Schedule, kernels: Sequence[Kernel],
        runs: Sequence[Run], options: Options, traces: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.plain, self.runs, self.traces = plain, runs, traces
        writer = _Writer(schedule, uses_pool(options), runs=runs)
        self.host_in_runs = writer.written(kernels)
        self.tables, self.weights = writer.tables, writer.weights
        self.names = plain.call.__globals__
        self.fast: Call | None = None
        self._boxed_call = True

    def __call__(self, args: list[Any]) -> Any:
        if self.names.get(STEPWISE) or (profiles and profiler._is_profiler_enabled):
            return self.plain.call(args)
        fast = self.fast
        return self.load()(args) if fast is None else fast(args)

    def load(self) -> Call:
        """Return the host program with runs; the plain one if something does not compile."""
        try:
            library = self.plain.wait()
            callers = [_caller(*run, library) for run in zip(self.runs, self.tables, strict=True)]
        except LabError:  # the plain program says it
            self.fast = self.plain.call
            return self.fast
        names, lines = dict(self.names), self.host_in_runs.code.lines
        own = {
            "plain": self.plain.call, "packed_weights": partial(_packed_weights, self.weights),
            NOTE: line_adder(lines, self.traces),
            **{f"run_{n}": caller for n, caller in enumerate(callers)},
            **{f"prepare_{n}": partial(_prepared, run.prepared) for n, run in enumerate(self.runs)},
        }  # fmt: skip
        exec(compile(guarded_text(lines), "<host program with runs>", "exec"), names)
        call = names["call"]
        names.update(self.names)
        names.update(own)
        self.fast = mark_boxed(call)
        return call  # type: ignore[no-any-return]


def in_runs(
    executable: Executable, schedule: Schedule, kernels: Sequence[Kernel], options: Options,
    traces: Mapping[str, str],
) -> Call:  # fmt: skip
    """Return a call with runs of steps, or that of the executable if there are none."""
    devices = {buffer.device for buffer in schedule.program.buffers.values()}
    runs = runs_of(schedule, kernels) if devices == {"cpu"} else ()
    if not runs:
        return executable.call
    return InRuns(executable, schedule, kernels, runs, options, traces)
