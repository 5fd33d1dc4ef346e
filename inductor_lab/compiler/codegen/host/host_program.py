"""Prints the host program: a Python function that allocates, calls the kernels and frees, in order.

```
def call(args):
    x, = args
    args.clear()
    buf0 = empty_strided_cpu((1000,), (1,), torch.float32)
    cpp_fused_sin_0(x.data_ptr(), buf0.data_ptr())
    return (buf0,)
```

This text is executed.  `runtime/executable.py` supplies the kernels and the constants.

Inductor: `codegen/wrapper.py`, PythonWrapperCodegen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest

import sympy
import torch

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.codegen.host.host_sizes import MATH, size_text
from inductor_lab.compiler.codegen.host.wrap_lines import WIDTH, wrapped
from inductor_lab.compiler.codegen.kernel import Code, HostProgram, Kernel, Line
from inductor_lab.compiler.ir.expr import NO_ORIGINS, Origins
from inductor_lab.compiler.ir.higher_order import PREFIX, call_higher_order
from inductor_lab.compiler.ir.index import Size, may_overflow, mul_sizes
from inductor_lab.compiler.ir.interpret import find_operator
from inductor_lab.compiler.ir.matmul_ops import COMMON, name_of
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferView,
    Callee,
    ExternArg,
    ExternCall,
    Layout,
    LoopProgram,
    Write,
    read_by,
    views_in,
)
from inductor_lab.compiler.schedule.schedule import Group, Schedule, ScheduleStep

DEFAULTS = Options()
POOLED_FROM = 128 * 1024
"""The smallest CPU tensor that the pool allocates, in bytes.  glibc keeps smaller blocks mapped
(128 KiB is its M_MMAP_THRESHOLD)."""
QUICK = {"cpu": "empty_strided_cpu", "cuda": "empty_strided_cuda"}
"""The fastest function that allocates on a device."""
QUICKLY = {op: f"torch_{name_of(op)}" for op in (*COMMON, "aten.convolution.default")}
"""Operators that are called through `torch`, as in `torch_mm = torch.mm`.  These calls parse their
arguments faster."""
HELPERS: dict[str, str] = {"call_higher_order": call_higher_order.__module__}
"""The functions that a host program can call in addition to kernels and ATen, with the module that
defines each.  `runtime/memory.py` and accelerators (`accelerators.py`) add entries."""


def host_program(
    schedule: Schedule, kernels: Sequence[Kernel], options: Options = DEFAULTS
) -> HostProgram:
    """Print the program that runs a schedule; `kernels` has one kernel per group, in order."""
    return HostWriter(schedule, uses_pool(options)).written(kernels)


def uses_pool(options: Options) -> bool:
    """Does the host program allocate large CPU tensors from the pool?"""
    return options.memory_pool > 0 and "POOL" in HELPERS


@dataclass
class HostWriter:
    """Collects lines, the names that they have bound, and the helpers that they call."""

    schedule: Schedule
    pooled: bool
    lines: list[Line] = field(default_factory=list)
    bound: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    taken_over: list[str] = field(default_factory=list)
    indent: str = "    "

    def written(self, kernels: Sequence[Kernel]) -> HostProgram:
        """Print all steps; `kernels` has one kernel per group, in order."""
        parameters = tuple(str(entry) for entry in self.program.inputs)
        self.unpack(parameters)
        remaining = iter(kernels)
        for position, step in enumerate(self.schedule.steps):
            self.step(position, step, next(remaining) if isinstance(step, Group) else None)
        self.finish()
        return HostProgram(Code.of([*self.preface(), *self.lines]), parameters)

    @cached_property
    def read_by_kernels(self) -> frozenset[str]:
        groups = [step for step in self.schedule.steps if isinstance(step, Group)]
        nests = [nest for group in groups for nest in (*group.nests, *group.inlined.values())]
        return frozenset(name for nest in nests for name in read_by(nest))

    @cached_property
    def read(self) -> frozenset[str]:
        """The buffers that a step reads or the graph returns.  Other buffers can be None."""
        calls = [step for step in self.schedule.steps if isinstance(step, ExternCall)]
        found = {name for call in calls for name in read_by(call)}
        return self.read_by_kernels | found | {v.buffer for v in views_in(self.program.outputs)}

    @cached_property
    def copied_to(self) -> frozenset[str]:
        """The inputs that get their new values in a copy at the end."""
        return frozenset(write.input for write, _ in self.left_to_write())

    def left_to_write(self) -> Iterator[tuple[Write, BufferView]]:
        """The new values of inputs that are not computed in the storage of the input."""
        for write, value in self.program.written_inputs:
            assert isinstance(value, BufferView), "the new value of an input is a tensor"
            if self.schedule.memory.storage(value.buffer) != write.input:
                yield write, value

    @property
    def program(self) -> LoopProgram:
        return self.schedule.program

    def emit(self, text: str, origins: Origins = NO_ORIGINS, *, statement: bool = False) -> None:
        for part in wrapped(self.indent + text):
            self.lines.append(Line(part, origins, statement))

    def preface(self) -> list[Line]:
        """Return the imports that the lines so far need, and the head of the function."""
        calls = [step for step in self.schedule.steps if isinstance(step, ExternCall)]
        spaces = sorted({call.op.split(".")[0] for call in calls})
        quick = sorted({QUICKLY[call.op] for call in calls if call.op in QUICKLY})
        imports: dict[str, list[str]] = {}
        for name in sorted(self.used - {MATH}):
            imports.setdefault(HELPERS[name], []).append(name)
        text = [
            *([f"import {MATH}"] if MATH in self.used else []),
            "import torch",
            *(f"from {module} import {', '.join(names)}" for module, names in imports.items()),
            *(f"{space} = torch.ops.{space}" for space in spaces),
            *(f"{name} = {name.replace('_', '.', 1)}" for name in quick),
            "",
            "",
            "def call(args):",
        ]
        return [Line(line, statement=False) for line in text]

    def helper(self, name: str) -> str:
        """Return the name of a function of the runtime, and import it."""
        self.used.add(name)
        return name

    def unpack(self, parameters: tuple[str, ...]) -> None:
        if parameters:
            self.emit(f"{_targets(parameters)} = args")
        self.before_clearing()
        self.emit("args.clear()")
        self.bound.update(parameters)
        for entry in self.program.inputs:
            if isinstance(entry, str):
                self.bind_symbols(self.program.buffers[entry])
        devices = sorted({buffer.device for buffer in self.program.buffers.values()} - {"cpu"})
        if devices and devices[0].startswith("cuda:"):
            # kernels are launched, and memory is allocated, on the current device
            self.emit(f"with torch.cuda.device({devices[0].removeprefix('cuda:')}):")
            self.indent += "    "

    def before_clearing(self) -> None:
        """For subclasses: lines that need the list of arguments."""

    def bind_symbols(self, buffer: Buffer) -> None:
        """Bind symbols that are still unbound, from the sizes and strides of a tensor."""
        for method, values in (("size", buffer.layout.size), ("stride", buffer.layout.stride)):
            for position, value in enumerate(values):
                if isinstance(value, sympy.Symbol) and str(value) not in self.bound:
                    self.emit(f"{value} = {buffer.name}.{method}({position})")
                    self.bound.add(str(value))

    # ---- steps --------------------------------------------------------------------------------

    def step(self, position: int, step: ScheduleStep, kernel: Kernel | None) -> None:
        """Print one step of the schedule; `kernel` is that of a group."""
        if isinstance(step, Group):
            assert kernel is not None, "each group has a kernel"
            self.group(step, kernel)
        else:
            self.extern(step)
        self.free(position)

    def group(self, group: Group, kernel: Kernel) -> None:
        for parameter in kernel.parameters:
            if parameter.role == "out":
                assert parameter.buffer is not None, f"{kernel.name}: an output without a buffer"
                self.allocate(self.program.buffers[parameter.buffer])
        call = f"{kernel.name}({', '.join(self.kernel_arguments(kernel))})"
        self.emit(call, group.origins, statement=True)

    def allocate(self, buffer: Buffer) -> None:
        """Bind a buffer to memory: a new tensor, or the storage of a dead buffer."""
        if buffer.name in self.bound:
            return
        self.bound.add(buffer.name)
        source = self.schedule.memory.reuse.get(buffer.name)
        if source is None:
            self.emit(f"{buffer.name} = {self.new_tensor(buffer)}", buffer.origins)
            return
        old = self.program.buffers[source]
        same = old.layout == buffer.layout
        value = source if same else self.reinterpreted(source, buffer.layout)
        how = "in place" if buffer.name in self.schedule.memory.in_place else "reuse"
        self.emit(f"{buffer.name} = {value}  # {how}", buffer.origins)
        self.taken_over.append(source)

    def new_tensor(self, buffer: Buffer) -> str:
        layout, geometry = buffer.layout, self.sizes(buffer.layout)
        if self.pooled and buffer.device == "cpu":
            nbytes = mul_sizes(layout.storage_size, buffer.dtype.itemsize)
            if not isinstance(nbytes, int) or nbytes >= POOLED_FROM:
                pool, length = self.helper("POOL"), self.size(nbytes)
                empty = "empty" if isinstance(nbytes, int) else "empty_rounded"
                return f"{pool}.{empty}({geometry}, {buffer.dtype}, {length})"
        if quick := QUICK.get(buffer.device.split(":")[0]):
            return f"{self.helper(quick)}({geometry}, {buffer.dtype})"
        where = f'device="{buffer.device}"'
        return f"torch.empty_strided({geometry}, dtype={buffer.dtype}, {where})"

    def extern(self, call: ExternCall) -> None:
        returned = call.outputs[: len(call.outputs) - len(call.bases)]
        buffers = [self.program.buffers[name] if name else None for name in returned]
        made = [buffer for buffer in buffers if buffer is not None]
        text = self.call_text(call)
        if not made and not any(call.numbers):
            self.emit(text, call.origins, statement=True)
        elif made and returns_one(call.op) and not self.unknown(made[0]):
            text = f"{made[0].name} = {self.laid_out(text, made[0], call)}"
            self.emit(text, call.origins, statement=True)
        else:
            results = zip_longest(returned, call.numbers)
            names = [str(name or number or "_") for name, number in results]
            targets = names[0] if returns_one(call.op) else _targets(names)
            self.emit(f"{targets} = {text}", call.origins, statement=True)
            self.bound.update(map(str, filter(None, call.numbers)))
            for buffer in made:
                self.bind_symbols(buffer)
                if buffer.name in self.read:
                    self.emit(f"{buffer.name} = {self.laid_out(buffer.name, buffer, call)}")
        for buffer in made:
            self.bound.add(buffer.name)
            self.bind_symbols(buffer)
        for new, old in call.bases:
            self.bound.add(new)
            self.emit(f"{new} = {old}  # in place", call.origins)
            self.taken_over.append(old)

    def laid_out(self, result: str, buffer: Buffer, call: ExternCall) -> str:
        """Return the result with the layout that the program assumes.

        An unused result can have any layout.  The result of an ATen operator that no kernel reads
        only needs the right strides.
        """
        if buffer.name not in self.read:
            return result
        if call.op.startswith("aten.") and buffer.name not in self.read_by_kernels:
            return f"{self.helper('restrided')}({result}, {self.shape(buffer.layout.stride)})"
        nodes = "".join(f", {node!r}" for node in sorted(call.origins))
        where = "" if buffer.device == "cpu" else f', device=torch.device("{buffer.device}")'
        promised = f"{self.sizes(buffer.layout)}, {buffer.dtype}, {call.op}{nodes}{where}"
        return f"{self.helper('laid_out')}({result}, {promised})"

    def unknown(self, buffer: Buffer) -> bool:
        """Does the size contain symbols that are bound only after the call?"""
        sizes = (size for size in buffer.layout.size if isinstance(size, sympy.Symbol))
        return any(str(size) not in self.bound for size in sizes)

    def call_text(self, call: ExternCall) -> str:
        args = [self.value(argument) for argument in call.args]
        kwargs = [(name, self.value(argument)) for name, argument in call.kwargs]
        if call.op.startswith(PREFIX):
            named = ", ".join(f"{name!r}: {value}" for name, value in kwargs)
            name = self.helper("call_higher_order")
            return f"{name}({call.op}, ({', '.join(args)},), {{{named}}})"
        called = QUICKLY.get(call.op, call.op)
        return f"{called}({', '.join([*args, *(f'{name}={value}' for name, value in kwargs)])})"

    def free(self, position: int) -> None:
        """Delete buffers that are dead after a step, and the old names of reused storage."""
        dead = [*self.schedule.memory.freed.get(position, ()), *self.taken_over]
        names = [n for n in dict.fromkeys(dead) if n in self.bound and n not in self.copied_to]
        self.taken_over.clear()
        if names:
            self.emit(f"del {_targets(names).removesuffix(',')}")
            self.bound.difference_update(names)

    def finish(self) -> None:
        """Copy new values to inputs that were not updated in place, and return the results."""
        program = self.program
        for write, value in self.left_to_write():
            text = f"{write.input}.{write.method}({self.value(value)})"
            self.emit(text, program.buffers[value.buffer].origins, statement=True)
        values = list(self.results())
        origins = [program.buffers[view.buffer].origins for view in views_in(program.returned)]
        comma = "," if len(values) == 1 else ""
        self.emit(f"return ({', '.join(values)}{comma})", NO_ORIGINS.union(*origins))

    def results(self) -> Iterator[str]:
        """Yield the results of the graph as Python expressions."""
        returned = self.program.returned
        made = [v.buffer for v in views_in(returned) if v.buffer not in self.program.inputs]
        related = self.program.related_results
        whole: set[str] = set()
        for output in returned:
            if not (related and isinstance(output, BufferView) and made.count(output.buffer) > 1):
                yield self.value(output)
                continue
            name, layout = output.buffer, output.layout
            if name in whole or layout != self.program.buffers[name].layout:
                yield self.reinterpreted(name, layout, "view_of")
            else:
                whole.add(name)
                yield name

    # ---- values -------------------------------------------------------------------------------

    def value(self, value: ExternArg) -> str:
        """Return an argument of an extern call or a result of the graph as a Python expression."""
        match value:
            case BufferView(name, layout):
                same = layout == self.program.buffers[name].layout
                return name if same else self.reinterpreted(name, layout)
            case tuple() | list():
                return f"[{', '.join(self.value(item) for item in value)}]"
            case sympy.Basic():
                return self.number(value)
            case Callee(called):
                return called
            case float():
                return repr(value) if abs(value) < float("inf") else f'float("{value}")'
            case complex():
                return f"complex({self.value(value.real)}, {self.value(value.imag)})"
            case torch.device():
                return f'torch.device("{value}")'
            case _:
                return repr(value)

    def reinterpreted(self, name: str, layout: Layout, how: str = "reinterpret") -> str:
        offset = "" if layout.offset == 0 else f", {self.size(layout.offset)}"
        return f"{self.helper(how)}({name}, {self.sizes(layout)}{offset})"

    def sizes(self, layout: Layout) -> str:
        """Return sizes and strides: `(4, 8), (8, 1)`."""
        return f"{self.shape(layout.size)}, {self.shape(layout.stride)}"

    def shape(self, sizes: tuple[Size, ...]) -> str:
        comma = "," if len(sizes) == 1 else ""
        return f"({', '.join(map(self.size, sizes))}{comma})"

    def size(self, size: Size) -> str:
        return str(size) if isinstance(size, int) else size_text(size, self.used)

    def number(self, size: Size) -> str:
        """Return a size for a kernel or an operator, which accept 64-bit integers only."""
        text = self.size(size)
        return f"{self.helper('int64')}({text})" if may_overflow(size) else text

    def kernel_arguments(self, kernel: Kernel) -> Iterator[str]:
        """Yield the arguments of a call: addresses for C++, tensors for Triton or checked calls."""
        for parameter in kernel.parameters:
            if parameter.symbol is not None:
                yield self.number(parameter.symbol)
            elif kernel.language == "cpp" and not parameter.checked:
                yield f"{parameter.buffer}.data_ptr()"
            else:
                yield str(parameter.buffer)


def returns_one(op: str) -> bool:
    """Does an op return a single tensor or number, and not a tuple or list?"""
    schema = getattr(find_operator(op), "_schema", None)
    types = [str(result.type) for result in schema.returns] if schema is not None else []
    return len(types) == 1 and not types[0].startswith("List")


def _targets(names: Sequence[str]) -> str:
    """Return `a, b`, or `(a, b)` if the line may need a break; a single name gets a comma."""
    text = ", ".join(names) + ("," if len(names) == 1 else "")
    return text if len(text) < WIDTH // 2 else f"({text})"
