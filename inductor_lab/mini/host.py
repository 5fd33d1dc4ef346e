"""The host program: a Python function that allocates memory, calls kernels and frees tensors.

In:    a `MemoryPlan`, and the functions of its kernels.
Out:   `HostProgram`: readable Python source, and the function that it defines.

    group 0: x -> buf0              def call(x, w):
    call:    buf0, w -> buf1            buf0 = place_buf0(block)
    group 1: buf1 -> buf2               kernel0(x.data_ptr(), buf0.data_ptr())
                                        buf1, = call1(buf0, w)
                                        ...
                                        return [buf2]
"""

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from inductor_lab.mini.cpp import Kernels, load
from inductor_lab.mini.fuse import Group
from inductor_lab.mini.loops import Call, View
from inductor_lab.mini.memory import MemoryPlan


class HostProgram(NamedTuple):
    source: str
    run: Callable[..., list[Any]]

    def __str__(self) -> str:
        return self.source


class Writer:
    """Writes the source; `values` has what the source uses by name."""

    def __init__(self, plan: MemoryPlan, kernels: Kernels) -> None:
        self.plan, self.kernels, self.program = plan, kernels, plan.schedule.program
        self.library = load(kernels) if kernels.parameters else None
        self.values: dict[str, Any] = {"torch": torch, "blocks": [], **self.program.constants}

    def lines(self) -> Iterator[str]:
        """The lines of the function, without indentation: memory, items in order, results."""
        if self.plan.total:
            new = f"torch.empty({self.plan.total}, dtype=torch.uint8)"
            yield f"block = blocks.pop() if blocks else {new}"
        made = {name for item in self.plan.schedule.items if isinstance(item, Call)
                for name in item.outs} - self.program.returned()  # fmt: skip
        for number, item in enumerate(self.plan.schedule.items):
            if isinstance(item, Group):
                yield from self.kernel(item, number)
            else:
                yield self.aten(item, number)
            dead = sorted(name for name in made if self.plan.last_use[name] == number)
            yield from [f"del {', '.join(dead)}"] if dead else []
        outputs = (self.tensor(o) if isinstance(o, View) else repr(o) for o in self.program.outputs)
        yield f"results = [{', '.join(outputs)}]"
        yield from ["blocks.append(block)"] if self.plan.total else []
        yield "return results"

    def kernel(self, group: Group, number: int) -> Iterator[str]:
        """Memory for what a group writes, a place in the block or a new tensor; and the call."""
        name = f"kernel{number}"
        parameters = self.kernels.parameters[name]
        for out in (nest.out for nest in group.steps if nest.out in parameters):
            if out in self.plan.places:
                self.values[f"place_{out}"] = self.plan.places[out].of
                yield f"{out} = place_{out}(block)"
            else:
                new = self.program.buffers[out]
                yield f"{out} = torch.empty_strided({new.size}, {new.stride}, dtype={new.dtype})"
        self.values[name] = function = getattr(self.library, name)
        function.argtypes, function.restype = [ctypes.c_void_p] * len(parameters), None
        yield f"{name}({', '.join(f'{each}.data_ptr()' for each in parameters)})"

    def aten(self, call: Call, number: int) -> str:
        """A call of ATen with the tensors of its views: `buf1, = call1(buf0, w)`."""
        self.values[f"call{number}"] = lambda *given: call.run(given, self.program.buffers)
        assigned = f"{', '.join(call.outs)}, = " if call.outs else ""
        given = ", ".join(map(self.tensor, call.views()))
        return f"{assigned}call{number}({given})  # {call.target}"

    def tensor(self, view: View) -> str:
        """The tensor of a view; a view of all of a buffer is the buffer's tensor."""
        start = f"{view.buffer}.storage_offset() + {view.offset}"
        part = f"{view.buffer}.as_strided({view.size}, {view.stride}, {start})"
        return view.buffer if view == self.program.buffers[view.buffer] else part


def host_program(plan: MemoryPlan, kernels: Kernels) -> HostProgram:
    """Write and define the function that runs the items of the schedule in order."""
    writer = Writer(plan, kernels)
    inputs = (name or f"number{k}" for k, name in enumerate(plan.schedule.program.inputs))
    lines = "".join(f"    {line}\n" for line in writer.lines())
    source = f"def call({', '.join(inputs)}):\n{lines}"
    exec(compile(source, "<host program of inductor_lab.mini>", "exec"), writer.values)
    return HostProgram(source, writer.values["call"])


# What the full compiler does differently
#
# - compiler/codegen/host/host_program.py: calls kernels through a small C extension, computes
#   sizes, checks arguments, and records GPU programs as graphs.
# - compiler/runtime/executable.py: threads, streams and the block of memory of each call.
# - compiler/accelerate/bare_calls.py: skips the wrapper of AOTAutograd where that is safe.
