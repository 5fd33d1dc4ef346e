"""Run a stage on the user's values; invalid inputs raise an error before anything runs.
    schedule.run(3, y)      BadArguments: run(): primals_1 must be f32[4, 8], got 3
                              expected: f32[4, 5]; all it takes: primals_1: f32[4, 5], ...

Torch runs a graph, so a graph accepts other sizes as far as its ops do.  Loops are specialized for
sizes, and kernels for the memory layout of their inputs: with another layout they would read out of
bounds.
"""

from __future__ import annotations

import copy
import inspect
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import sympy
import torch

from inductor_lab.compiler.base.display import counted
from inductor_lab.compiler.base.errors import BadArguments, LabError, NotRunnable
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.ir.interpret import run_program as interpret_program
from inductor_lab.compiler.ir.program import Buffer, LoopProgram, read_by
from inductor_lab.compiler.ir.text import dtype_text
from inductor_lab.compiler.records import Call
from inductor_lab.compiler.runtime.executable import Executable
from inductor_lab.compiler.schedule.interpret import run_schedule as interpret_schedule
from inductor_lab.compiler.schedule.schedule import Schedule

Admits = Callable[[Any], bool]
SHOWN = 6
"""Maximum number of inputs that an error message lists."""


class Wanted(NamedTuple):
    """One input: its name, its description, and a function that checks a value."""

    name: str
    description: str
    admits: Admits


def run_graph(graph: FxGraph, inputs: Sequence[Any]) -> Any:
    """Implements `FxGraph.run`."""
    if graph.module is None:
        raise NotRunnable(
            f"the graph {graph.name} was loaded from a file and cannot run",
            todo="compile the function again with lab.inspect to get a live one",
        )
    refuse(list(_inputs_of_graph(graph)), inputs)
    return torch.fx.Interpreter(graph.module).run(*inputs, enable_io_processing=False)


def run_program(program: LoopProgram, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Implements `LoopProgram.run`."""
    refuse(list(_inputs_of_program(program, _has_sizes)), inputs)
    return interpret_program(program, inputs)


def run_schedule(schedule: Schedule, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Implements `Schedule.run`."""
    refuse(list(_inputs_of_program(schedule.program, _has_sizes)), inputs)
    return interpret_schedule(schedule, inputs)


def run_executable(executable: Executable, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Implements `Executable.run`."""
    program = executable.program
    refuse(list(_inputs_of_program(program, _has_memory)), inputs)
    given = list(inputs)
    written = [program.inputs.index(write.input) for write in program.writes]
    for position in written:
        given[position] = copy.deepcopy(given[position].detach())  # a clone closes gaps
    new_values = [given[position] for position in written]
    return (*executable.call(given), *new_values)


def refuse(wanted: Sequence[Wanted], inputs: Sequence[Any]) -> None:
    """Raises BadArguments unless there is one valid value for each input."""
    listed = ", ".join(f"{each.name}: {each.description}" for each in wanted[:SHOWN])
    listed += ", ..." if len(wanted) > SHOWN else ""
    if len(inputs) != len(wanted):
        raise BadArguments(
            f"run(): expected {counted(len(wanted), 'value')}, got {len(inputs)}",
            todo=f"inputs: {listed}" if listed else "",
        )
    for each, value in zip(wanted, inputs, strict=True):
        if not each.admits(value):
            raise BadArguments(
                f"run(): {each.name} must be {each.description}, got {_shown(value)}",
                todo=f"inputs: {listed}",
            )


@contextmanager
def calling(
    asked: str, call: Call, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[None]:
    """A block in which the inspected function is called with new arguments.

    Raises BadArguments if they do not match its signature, or if the call fails and an argument is
    a tensor in only one of the two calls.  Other exceptions of the function are passed on.
    """
    given = _bound(asked, call, args, kwargs)
    try:
        yield
    except LabError:
        raise
    except Exception as error:
        for name, before in _bound(asked, call, call.args, call.kwargs).items():
            value = given.get(name, before)
            if _is_tensor(value) != _is_tensor(before):
                why = f"{type(error).__name__}: {error}".splitlines()[0]
                raise BadArguments(
                    f"{asked}(): {name} must be like {_shown(before)} of the inspected call, "
                    f"got {_shown(value)}",
                    todo=why,
                ) from error
        raise


def _bound(
    asked: str, call: Call, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The arguments by parameter name; empty if the function has no signature."""
    try:
        signature = inspect.signature(call.fn)
    except (TypeError, ValueError):
        return {}
    try:
        return signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise BadArguments(
            f"{asked}(): wrong arguments: {error}",
            todo=f"signature of the inspected function: {signature}",
        ) from error


def _shown(value: Any) -> str:
    """`f32[3, 4]`, with strides if the tensor is not contiguous; the `repr` of other values."""
    if not isinstance(value, torch.Tensor):
        return " ".join(reprlib.repr(value).split())
    gaps = value.layout is torch.strided and not value.is_contiguous()
    return _tensor(value.dtype, value.shape, value.stride() if gaps else ())


def _tensor(dtype: torch.dtype, shape: Sequence[Any], stride: Sequence[Any] = ()) -> str:
    strides = f" with strides ({', '.join(map(str, stride))})" if stride else ""
    return f"{dtype_text(dtype)}[{', '.join(map(str, shape))}]{strides}"


def _inputs_of_graph(graph: FxGraph) -> Iterator[Wanted]:
    used = {name for node in graph.nodes for name in node.inputs}
    for node in graph.nodes:
        if node.op == "placeholder":
            empty = node.name not in used or (node.tensor and "0" in node.tensor.shape)
            fits = _is_something if node.tensor is None else _is_tensor
            yield Wanted(node.name, str(node.tensor or "a value"), _or_none(fits, empty))


def _inputs_of_program(
    program: LoopProgram, fits: Callable[[Buffer, Any], bool]
) -> Iterator[Wanted]:
    used = program.output_buffers.union(*map(read_by, program.steps))
    for declared in program.inputs:
        if isinstance(declared, sympy.Symbol):
            yield Wanted(str(declared), "a number", _is_no_tensor)
            continue
        buffer = program.buffers[declared]
        size, stride = buffer.layout.size, buffer.layout.stride
        description = _tensor(buffer.dtype, size, stride if fits is _has_memory else ())
        empty = declared not in used or 0 in size
        yield Wanted(declared, description, _or_none(partial(fits, buffer), empty))


def _or_none(fits: Admits, empty: Any) -> Admits:
    """Accept also None: for an input that is not read or has no elements (an effect token)."""
    return (lambda value: value is None or fits(value)) if empty else fits


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _is_something(value: Any) -> bool:
    """A number, or an object that TorchDynamo passes through, such as a generator."""
    return value is not None and not isinstance(value, str)


def _is_no_tensor(value: Any) -> bool:
    return _is_something(value) and not _is_tensor(value)


def _has_sizes(buffer: Buffer, value: Any) -> bool:
    """A tensor with the buffer's sizes; symbolic sizes may have any value."""
    size = buffer.layout.size
    return isinstance(value, torch.Tensor) and value.dim() == len(size) and all(
        not isinstance(known, int) or length == known
        for length, known in zip(value.shape, size, strict=True)
    )  # fmt: skip


def _has_memory(buffer: Buffer, value: Any) -> bool:
    """... and with its dtype, its strides (of dimensions larger than 1) and its device type."""
    same = _has_sizes(buffer, value) and value.dtype == buffer.dtype
    if not same or value.device.type != torch.device(buffer.device).type:
        return False
    if value.layout is not torch.strided or value.numel() == 0:
        return True
    steps = zip(value.shape, value.stride(), buffer.layout.stride, strict=True)
    return all(n == 1 or step == known or not isinstance(known, int) for n, step, known in steps)
