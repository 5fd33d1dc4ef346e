"""Steps of a schedule as calls of compiled functions with fixed sizes (for `step_runs.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from inductor_lab.compiler.accelerate.own_products import NAME, functions_for
from inductor_lab.compiler.accelerate.packing import LINEAR
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.ir.higher_order import Written
from inductor_lab.compiler.ir.program import BufferView, Callee, ExternCall, Layout
from inductor_lab.compiler.runtime.toolchain.shared_library import Library
from inductor_lab.compiler.schedule.schedule import Group, Schedule, ScheduleStep

MOST_ARGUMENTS = 64
"""The maximum number of arguments of a function; the limit of `lab_steps.h`."""


@dataclass(frozen=True)
class Packed:
    """The packed form of a weight, as an argument."""

    weight: str
    rows: int
    transposed: bool


@dataclass(frozen=True)
class Prepared:
    """A packed weight that also depends on a tensor of the call, as an argument.

    `prepare(weight, scale)` returns it, before the run begins.
    """

    weight: str
    scale: BufferView | None
    prepare: Callable[[torch.Tensor, torch.Tensor | None], torch.Tensor]


THREADS = "torch.get_num_threads()"
Argument = BufferView | Packed | Prepared | int | str
"""A buffer's address, a packed weight's, a number, or a Python expression of a number."""


@dataclass(frozen=True)
class NativeStep:
    """One call of a compiled function.

    name       of the kernel or operator
    function   returns the ctypes function, given the library of the graph's kernels
    arguments  in order
    makes      the buffers that it computes
    failed     raises the error for a result that is not 0
    """

    name: str
    function: Callable[[Library | None], Any]
    arguments: tuple[Argument, ...]
    makes: tuple[str, ...]
    failed: Callable[[Any, int], None]


def native_step(step: ScheduleStep, kernel: Kernel | None, schedule: Schedule) -> NativeStep | None:
    """The step as a call of a compiled function with fixed sizes; None if it is not one."""
    if isinstance(step, Group):
        return None if kernel is None else _of_kernel(kernel, schedule)
    if step.bases or any(step.numbers) or step.kwargs:
        return None
    return NATIVE.get(step.op, _of_written)(step, schedule)


def _of_kernel(kernel: Kernel, schedule: Schedule) -> NativeStep | None:
    buffers, given = schedule.program.buffers, kernel.parameters
    if kernel.language != "cpp" or len(given) > MOST_ARGUMENTS:
        return None
    if any(p.buffer is None or p.checked for p in given):
        return None
    names = [p.buffer for p in given if p.buffer is not None]
    if not all(is_fixed(buffers[name].layout) for name in names):
        return None
    views = tuple(BufferView(name, replace(buffers[name].layout, offset=0)) for name in names)
    makes = tuple(p.buffer for p in given if p.buffer is not None and p.role == "out")

    def function(library: Library | None) -> Any:
        assert library is not None, "it has this kernel"
        return getattr(library.handle, kernel.name)

    return NativeStep(kernel.name, function, views, makes, raise_failure)


def _of_product(call: ExternCall, schedule: Schedule) -> NativeStep | None:
    x, weight, bias, transposed, library, _ = call.args
    (out,) = call.outputs
    assert isinstance(x, BufferView) and isinstance(weight, BufferView), "`library_call` made it"
    functions = functions_for(schedule.program.buffers[x.buffer].dtype)
    if library != NAME or functions is None or out is None or not is_fixed(x.layout):
        return None
    made = schedule.program.buffers[out].layout
    rows, depth, columns = x.layout.size[0], x.layout.size[1], made.size[1]
    if made != Layout.contiguous((rows, columns)) or x.layout.stride[1] != 1:
        return None
    start = 0 if bias is None else bias
    sizes = (rows, columns, depth, THREADS)
    arguments = (x, x.layout.stride[0], Packed(weight.buffer, rows, bool(transposed)), start,
                 BufferView(out, made), *sizes)  # fmt: skip
    return NativeStep(LINEAR, lambda _: functions.product, arguments, (out,), raise_failure)


def _of_written(call: ExternCall, schedule: Schedule) -> NativeStep | None:
    callees, buffers = schedule.program.callees, schedule.program.buffers
    first = call.args[0] if call.args else None
    called = callees.get(first.name) if isinstance(first, Callee) else None
    one = called.one_kernel() if isinstance(called, Written) else None
    made = call.outputs[0]
    views = [arg for arg in call.args[1:] if isinstance(arg, BufferView)]
    if one is None or made is None or len(views) != len(call.args) - 1:
        return None
    layout = buffers[made].layout
    fixed = all(is_fixed(view.layout) for view in views)
    if not fixed or one.layout != (layout.size, layout.stride):
        return None
    given = {**dict(zip(one.given, views, strict=True)), one.makes: BufferView(made, layout)}
    arguments = tuple(given[name] for name in one.arguments)
    return NativeStep(call.op, lambda _: one.function(), arguments, (made,), one.failed)


NATIVE: dict[str, Callable[[ExternCall, Schedule], NativeStep | None]] = {LINEAR: _of_product}
"""For each operator of ours, what makes its calls native."""


def is_fixed(layout: Layout) -> bool:
    return all(isinstance(n, int) for n in (*layout.size, *layout.stride, layout.offset))


def raise_failure(function: Any, status: int) -> None:
    function.errcheck(status, function, ())
