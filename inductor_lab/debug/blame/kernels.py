"""Compare each kernel with its loop nests, on inputs that are known to be right.

If a fused kernel is wrong, every nest of its group is compiled as a separate kernel.  If one of
these is wrong too, its operation is the cause; otherwise the fusion is.  Results lie between guard
zones and are filled with a pattern before the call, so that out-of-bounds writes and missing writes
are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from inductor_lab.compiler.base.options import FusionOptions, Options
from inductor_lab.compiler.codegen.generate import generate_kernels
from inductor_lab.compiler.codegen.host.host_program import host_program
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.ir.interpret import Run, concrete, run_step
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    BufferView,
    ExternCall,
    Layout,
    LoopProgram,
    Scatter,
    read_by,
)
from inductor_lab.compiler.records import CompiledPart
from inductor_lab.compiler.runtime.executable import build_executable
from inductor_lab.compiler.schedule.passes import schedule_program
from inductor_lab.compiler.schedule.schedule import Group, Schedule
from inductor_lab.debug.blame.programs import NotWide, Ran, of_group, wide_program
from inductor_lab.debug.blame.run_graphs import SHAKES, rounding_factors
from inductor_lab.debug.compare.precision import Judged, judge
from inductor_lab.debug.compare.values import WIDE

GUARD = 256
"""Size in bytes of the guard zones before and after each result."""
PATTERN = 0xFF
"""The byte of unwritten memory: NaN as a float, -1 or the largest value as an integer."""
REPEATS = 4
"""Number of calls of each kernel: differing results are a race or a varying order."""


@dataclass(frozen=True)
class KernelVerdict:
    """The verdict about one kernel.

    judged    the verdict about each buffer that it stores
    varies    its results differ between calls; `alone`: they are right with one thread
    outside   the buffer that it wrote past the end of
    nest      the buffer of the nest that is also wrong as a separate kernel, if any
    """

    position: int
    kernel: str
    judged: Mapping[str, Judged]
    varies: bool = False
    alone: bool = True
    outside: str = ""
    nest: str = ""

    @property
    def right(self) -> bool:
        good = all(judged.right for judged in self.judged.values())
        return good and not self.varies and not self.outside

    @property
    def worst(self) -> tuple[str, Judged]:
        """The first wrong buffer; if none is wrong, the one with the largest error."""
        wrong = [item for item in self.judged.items() if not item[1].right]
        return (wrong or sorted(self.judged.items(), key=lambda item: -item[1].ulp))[0]


def check_kernels(part: CompiledPart, options: Options, right: Ran, whole: Ran) -> Iterator[Any]:
    """Yield the name of each kernel before its call, and its verdict afterwards.

    `right` has the buffers of the schedule, `whole` those of the loop program (of every nest).
    """
    assert part.executable is not None, "kernels run"
    functions = part.executable.call.__globals__
    position = -1
    for kernel in part.kernels:
        position += 1
        yield kernel.name
        verdict = check(part.schedule, kernel, functions[kernel.name], right)
        if not verdict.right:
            yield "one nest after another"
            nest = culprit(part.schedule, kernel, options, whole)
            verdict = replace(verdict, nest=nest)
        yield replace(verdict, position=position)


def check(schedule: Schedule, kernel: Kernel, function: Any, right: Ran) -> KernelVerdict:
    """Call one kernel several times, and judge the buffers that it stores."""
    calls = [_call(schedule, kernel, function, right) for _ in range(REPEATS)]
    outside = next((where for _, where in calls if where), "")
    first = calls[0][0]
    varies = any(
        not _same(first[name], other[name]) for other, _ in calls[1:] for name in first
    )
    judged = judged_in_group(schedule, kernel.group, first, right)
    alone = True
    if varies:
        for values, _ in calls[1:]:
            again = judged_in_group(schedule, kernel.group, values, right)
            judged = {n: j if judged[n].right else judged[n] for n, j in again.items()}
        alone = _right_alone(schedule, kernel, function, right)
    return KernelVerdict(0, kernel.name, judged, varies, alone, outside)


def _right_alone(schedule: Schedule, kernel: Kernel, function: Any, right: Ran) -> bool:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        values, _ = _call(schedule, kernel, function, right)
    finally:
        torch.set_num_threads(threads)
    judged = judged_in_group(schedule, kernel.group, values, right)
    return all(found.right for found in judged.values())


def _same(first: torch.Tensor, second: torch.Tensor) -> bool:
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    bits = kinds[first.dtype.itemsize]
    return torch.equal(first.contiguous().view(bits), second.contiguous().view(bits))


def _call(
    schedule: Schedule, kernel: Kernel, function: Any, right: Ran
) -> tuple[dict[str, torch.Tensor], str]:
    """The buffers that a kernel stores, and the buffer that it wrote past the end of."""
    buffers, outputs, arguments = schedule.program.buffers, dict[str, Guarded](), list[Any]()
    bases = {n.buffer: n.base for part in kernel.group.parts
             for n in part.nests if isinstance(n, Scatter)}  # fmt: skip
    for parameter in kernel.parameters:
        if parameter.role == "symbol":
            arguments.append(concrete(parameter.symbol, right.symbols))
            continue
        name = str(parameter.buffer)
        if parameter.role == "out":
            start = right.buffers.get(bases.get(name, ""))
            outputs[name] = Guarded.of(buffers[name], right.symbols, start)
            tensor = outputs[name].tensor
        else:
            tensor = right.buffers[name]
        arguments.append(tensor.data_ptr() if kernel.language == "cpp" else tensor)
    function(*arguments)
    overrun = next((name for name, guarded in outputs.items() if not guarded.intact), "")
    return {name: guarded.tensor for name, guarded in outputs.items()}, overrun


@dataclass(frozen=True)
class Guarded:
    """Memory for a buffer, with a guard zone on both sides."""

    memory: torch.Tensor
    tensor: torch.Tensor

    @staticmethod
    def of(buffer: Buffer, symbols: Mapping[Any, Any], start: torch.Tensor | None) -> Guarded:
        layout: Layout = buffer.layout
        room = concrete(layout.storage_size, symbols) * buffer.dtype.itemsize
        room = -(-max(room, 1) // 64) * 64 if buffer.device != "cpu" else max(room, 0)
        device = buffer.device if start is None else start.device
        memory = torch.full((room + 2 * GUARD,), PATTERN, dtype=torch.uint8, device=device)
        usable = memory[GUARD : GUARD + room - room % buffer.dtype.itemsize].view(buffer.dtype)
        size, stride = ([concrete(s, symbols) for s in sizes]
                        for sizes in (layout.size, layout.stride))  # fmt: skip
        offset = concrete(layout.offset, symbols) + usable.storage_offset()
        tensor = usable.as_strided(size, stride, offset)
        if start is not None:
            tensor.copy_(start)
        return Guarded(memory, tensor)

    @property
    def intact(self) -> bool:
        zones = self.memory[:GUARD], self.memory[-GUARD:]
        return all(bool((zone == PATTERN).all()) for zone in zones)


def judged_in_group(
    schedule: Schedule, group: Group, got: Mapping[str, torch.Tensor], right: Ran
) -> dict[str, Judged]:
    """Compare the stores of a group with those of the interpreter (`right`).

    The float64 reference is computed only if bits differ.
    """
    plain = {name: judge(value, right.buffers[name]) for name, value in got.items()}
    if all(judged.kind == "equal" for judged in plain.values()):
        return plain
    program = of_group(schedule, group)
    try:
        exact, spread = reference_of(program, right)
    except (NotWide, RuntimeError, NotImplementedError):
        return plain
    return {
        name: judge(value, right.buffers[name], exact[name], spread[name])
        for name, value in got.items()
    }


Buffers = dict[str, torch.Tensor]


def reference_of(program: LoopProgram, right: Ran) -> tuple[Buffers, Buffers]:
    """The values of a program's nests in float64 on right buffers, and their rounding errors.

    A rounding error is the change of a value when each value is perturbed by half a unit.
    """
    wide = wide_program(program)
    exact = _run(wide, right, None, program)
    shaken = [_run(wide, right, seed, program) for seed in range(1, SHAKES + 1)]
    spread = {
        name: torch.stack([_distance(run[name], value) for run in shaken]).amax(0)
        for name, value in exact.items()
    }
    return exact, spread


def _distance(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    wide = torch.complex128 if first.dtype.is_complex else torch.float64
    return (first.to(wide) - second.to(wide)).abs().nan_to_num(0.0, 0.0, 0.0)


def _run(wide: LoopProgram, right: Ran, seed: int | None, program: LoopProgram) -> Buffers:
    run = Run(replace(wide, inputs=()), ())
    run.symbols.update(right.symbols)
    run.env.update({n: t.to(WIDE.get(t.dtype, t.dtype)) for n, t in right.buffers.items()})
    random = torch.Generator().manual_seed(seed or 0)
    with torch.no_grad():
        for step in wide.steps:
            run_step(run, step)
            assert not isinstance(step, ExternCall), "a group has nests"
            dtype, value = program.buffers[step.buffer].dtype, run.env[step.buffer]
            if seed is not None and dtype.is_floating_point:
                run.env[step.buffer] = value * rounding_factors(value, dtype, random)
    made = {step.buffer for step in wide.steps if not isinstance(step, ExternCall)}
    return {name: value for name, value in run.env.items() if name in made}


def culprit(schedule: Schedule, kernel: Kernel, options: Options, whole: Ran) -> str:
    """The buffer of the first nest of a group that is wrong as a separate kernel; "" if none is."""
    for buffer, verdict in one_by_one(unfused(schedule, kernel, options).loaded(), whole):
        if verdict is not None and not verdict.right:
            return buffer
    return ""


@dataclass(frozen=True)
class Unfused:
    """A group with a separate kernel for every nest; `functions` call them, once `loaded`."""

    schedule: Schedule
    options: Options
    kernels: tuple[Kernel, ...]
    functions: Mapping[str, Any] = field(default_factory=dict)

    def loaded(self) -> Unfused:
        """The same group with its kernels compiled."""
        host = host_program(self.schedule, self.kernels, self.options)
        executable = build_executable(self.schedule, self.kernels, host, self.options)
        return replace(self, functions=executable.call.__globals__)


def unfused(schedule: Schedule, kernel: Kernel, options: Options) -> Unfused:
    """Generate a separate kernel for each nest of a kernel's group."""
    program = by_itself(schedule, kernel.group)
    apart = schedule_program(program, FusionOptions(enabled=False, combos=False))
    alone = replace(options, cache=False)
    return Unfused(apart, alone, generate_kernels(apart, alone))


def one_by_one(group: Unfused, whole: Ran) -> Iterator[tuple[str, KernelVerdict | None]]:
    """Yield the buffer of every nest of a loaded group before its call, and its verdict after."""
    for single in group.kernels:
        buffer = single.group.nests[-1].buffer
        yield buffer, None
        yield buffer, check(group.schedule, single, group.functions[single.name], whole)


def by_itself(schedule: Schedule, group: Group) -> LoopProgram:
    """A group's nests as a whole program: what it reads of others are inputs, all that it makes are
    results."""
    program = of_group(schedule, group)
    made = [step.buffer for step in program.steps if not isinstance(step, ExternCall)]
    read: Sequence[str] = sorted({b for step in program.steps for b in read_by(step)} - set(made))
    given = [b for b in read if program.buffers[b].kind is not BufferKind.CONSTANT]
    buffers = {
        name: replace(b, kind=BufferKind.INPUT) if name in given else b
        for name, b in program.buffers.items()
    }
    inputs = tuple(dict.fromkeys((*program.inputs, *given)))
    outputs = tuple(BufferView(name, buffers[name].layout) for name in made)
    return replace(
        program, inputs=inputs, buffers=buffers, outputs=outputs, writes=(), related_results=False
    )
