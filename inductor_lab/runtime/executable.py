"""Running code: the host program with its kernels loaded.

Inductor: `output_code.py`, CompiledFxGraph.
"""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from inductor_lab.codegen.cpp import by_name, translation_unit
from inductor_lab.codegen.cpp_statements import BY_ZERO
from inductor_lab.codegen.kernel import HostProgram, Kernel
from inductor_lab.errors import DividedByZero, IndexOutOfRange
from inductor_lab.ir.expr import NO_ORIGINS, Load, Origins, integer_divisors
from inductor_lab.ir.index import Gathered, Index, Quotient, Remainder
from inductor_lab.ir.program import Scatter
from inductor_lab.options import Options
from inductor_lab.runtime.ahead import Ahead
from inductor_lab.runtime.library import Library, library_builder, place_of
from inductor_lab.runtime.pool import POOL
from inductor_lab.schedule.result import Group, Schedule
from inductor_lab.torch_api import mark_boxed


@dataclass(frozen=True, eq=False)
class Executable:
    """A compiled graph that can be called with a list of its inputs, which it empties.

    call      the host program's `call`
    library   the C++ kernels' library; None if there are none, or it is made ahead
    written   positions of the inputs that a call writes to
    """

    host: HostProgram
    library: Library | None
    call: Callable[[list[Any]], tuple[Any, ...]]
    written: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        # How torch knows that this takes one list.  It must be in the instance's own dict, which is
        # what torch copies when it wraps a backward.
        object.__setattr__(self, "_boxed_call", True)

    def __call__(self, args: list[Any]) -> tuple[Any, ...]:
        return self.call(args)

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Call it with inputs that stay as they are; what it would have written to them comes after
        the results, as it does from the other stages."""
        given = list(inputs)
        for position in self.written:
            given[position] = copy.deepcopy(given[position].detach())  # a clone closes gaps
        new_values = [given[position] for position in self.written]
        return (*self.call(given), *new_values)

    def __repr__(self) -> str:
        return f"Executable({self.host!r})"


def build_executable(
    schedule: Schedule,
    kernels: Sequence[Kernel],
    host: HostProgram,
    options: Options,
    traces: Mapping[str, str] | None = None,
    ahead: bool = False,
) -> Executable:
    """Compile and load the kernels, and make the host program callable.

    With `ahead` the C++ compiler works in a thread, and the first call waits for it.  `traces` maps
    FX nodes to the stack traces of the person's code, for errors.  Raises NoCompiler, CacheRefused
    and CompileFailed (ahead: at the first call); the result raises IndexOutOfRange where eager
    raises IndexError.
    """
    traces = traces or {}
    program = schedule.program
    POOL.allow(int(options.memory_pool * schedule.memory.peak_after))
    namespace: dict[str, Any] = {**program.constants, **program.callees}
    for kernel in {kernel.name: kernel for kernel in kernels}.values():
        if kernel.language == "triton":
            namespace[kernel.name] = _triton_function(kernel)
    library = None
    cpp = [kernel for kernel in kernels if kernel.language == "cpp"]
    if cpp:
        unit = translation_unit(cpp)
        build = library_builder(unit, program.name, cache=options.cache, traces=traces)
        if ahead:
            namespace.update(_waiting(Ahead(build), cpp, traces, namespace))
        else:
            library = build()
            namespace.update(_cpp_functions(library, cpp, traces))
    exec(compile(str(host), f"<host program {program.name}>", "exec"), namespace)
    written = tuple(program.inputs.index(write.input) for write in program.writes)
    return Executable(host, library, mark_boxed(namespace["call"]), written)


Functions = dict[str, Callable[..., Any]]


def _cpp_functions(
    library: Library, kernels: Sequence[Kernel], traces: Mapping[str, str]
) -> Functions:
    twins_by_name = by_name(kernels).items()
    return {name: cpp_function(library, twins, traces) for name, twins in twins_by_name}


def _waiting(
    library: Ahead[Library],
    kernels: Sequence[Kernel],
    traces: Mapping[str, str],
    namespace: Functions,
) -> Functions:
    """In place of the kernels in a namespace: whichever is called first waits for the library, puts
    all kernels in their places, and goes on as the one that it stands for."""

    def first(name: str, *args: Any) -> Any:
        namespace.update(_cpp_functions(library.wait(), kernels, traces))
        return namespace[name](*args)

    return {kernel.name: partial(first, kernel.name) for kernel in kernels}


def cpp_function(library: Library, twins: Sequence[Kernel], traces: Mapping[str, str]) -> Any:
    """The function that some equal kernels share, as a ctypes function of addresses and sizes."""
    kernel = twins[0]
    function = getattr(library.handle, kernel.name)
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    function.argtypes = [size if p.role == "symbol" else pointer for p in kernel.parameters]
    function.restype = ctypes.c_int
    gathers = [load for twin in twins for load in gathering(twin.group)]
    divisions = [origins for twin in twins for origins in dividing(twin.group)]
    if gathers or divisions:
        # only kernels that can fail pay for the check
        origins = NO_ORIGINS.union(*(origins for _, origins in gathers))
        buffers = ", ".join(dict.fromkeys(buffer for buffer, _ in gathers))

        def check(status: int, function: Any, arguments: Any) -> int:
            if status & BY_ZERO:
                said = f"ZeroDivisionError: integers are divided by zero in {kernel.name}"
                raise DividedByZero(said, place_of(NO_ORIGINS.union(*divisions), traces))
            if status != 0:
                said = f"an index into {buffers} is out of range in {kernel.name}"
                raise IndexOutOfRange(said, place_of(origins, traces))
            return status

        function.errcheck = check
    return function


def dividing(group: Group) -> Iterator[Origins]:
    """The nodes that divide integers by something that may be zero."""
    for nest in (*group.nests, *group.inlined.values()):
        for root in nest.roots:
            yield from (origins or nest.origins for _, origins in integer_divisors(root))


def gathering(group: Group) -> Iterator[tuple[str, Origins]]:
    """The buffers that a group reads or writes at a place that depends on a loaded value.

    A loaded position that is used as a number counts for the buffer that is computed from it.
    """
    for nest in (*group.nests, *group.inlined.values()):
        nodes = [node for root in nest.roots for node in root.walk()]
        if isinstance(nest, Scatter):
            nodes.append(Load(nest.buffer, nest.index, nest.body.dtype, nest.origins))
        for node in nodes:
            if any(_has_gather(index) for index in node.indices()):
                if isinstance(node, Load):
                    yield node.buffer, node.origins
                else:
                    yield nest.buffer, nest.origins


def _has_gather(index: Index) -> bool:
    for atom, _ in index.terms:
        if isinstance(atom, Gathered):
            return True
        if isinstance(atom, Quotient | Remainder) and _has_gather(atom.dividend):
            return True
    return False


def _triton_function(kernel: Kernel) -> Callable[..., None]:
    from inductor_lab.runtime.triton_launch import load_kernel

    return load_kernel(kernel)
