"""Builds the executable of a graph: the host program with its kernels loaded.

Inductor: `output_code.py`, CompiledFxGraph.
"""

from __future__ import annotations

import ctypes
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from inductor_lab.compiler.base.errors import (
    DividedByZero,
    IndexOutOfRange,
    LabError,
    RunsUncompiled,
)
from inductor_lab.compiler.base.operations import perform
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.codegen.cpp.printer import by_name, translation_unit
from inductor_lab.compiler.codegen.cpp.statements import BY_ZERO
from inductor_lab.compiler.codegen.kernel import HostProgram, Kernel
from inductor_lab.compiler.ir.collective import NAMESPACES
from inductor_lab.compiler.ir.expr import NO_ORIGINS
from inductor_lab.compiler.ir.higher_order import Written
from inductor_lab.compiler.ir.program import LoopProgram
from inductor_lab.compiler.runtime import memory as _helpers_of_host_programs  # noqa: F401
from inductor_lab.compiler.runtime.check_bounds import checked_function, is_checked
from inductor_lab.compiler.runtime.failing_lines import (
    NOTE,
    guarded_text,
    indirect_accesses,
    integer_divisions,
    line_adder,
)
from inductor_lab.compiler.runtime.host_file import host_file
from inductor_lab.compiler.runtime.library_warmup import warm_up_libraries
from inductor_lab.compiler.runtime.profiler_events import record_in_profiler
from inductor_lab.compiler.runtime.rank_failures import Collectives, report_failure
from inductor_lab.compiler.runtime.toolchain.background_compile import BackgroundValue
from inductor_lab.compiler.runtime.toolchain.shared_library import (
    Library,
    library_builder,
    place_of,
)
from inductor_lab.compiler.schedule.schedule import Schedule
from inductor_lab.compiler.torch_door.torch_api import mark_boxed

Call = Callable[[list[Any]], Any]
"""A function that takes one list of arguments, and empties it."""
STEPWISE = "_stepwise"
"""Among the globals of a host program: how many tools need calls of this program (`stepwise`)."""
_COUNTING = threading.Lock()


@dataclass(frozen=True, eq=False)
class Executable:
    """A compiled graph that can be called with a list of its inputs, which it empties.

    call      the function `call` of the host program
    library   the library of the C++ kernels; None if there are none, or if a thread compiles it
    program   the loop program that it computes
    wait      loads the functions that a thread compiles, and returns the library; raises LabError
    """

    host: HostProgram
    library: Library | None
    call: Callable[[list[Any]], tuple[Any, ...]]
    program: LoopProgram
    wait: Callable[[], Library | None] = lambda: None

    @property
    def choices(self) -> tuple[Any, ...]:
        """The block sizes that were measured in the first call of kernels (`BlockChoice`).

        Empty without `mode="max-autotune"`, or on a CPU.
        """
        known = self.call.__globals__.values()
        return tuple(k.choice for k in known if getattr(k, "choice", None) is not None)

    def __post_init__(self) -> None:
        # With this attribute, torch passes one list.  It must be in the dict of the instance,
        # because torch copies this dict when it wraps a backward.
        object.__setattr__(self, "_boxed_call", True)

    def __call__(self, args: list[Any]) -> tuple[Any, ...]:
        return self.call(args)

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Call it without modifying the inputs.

        The new values of inputs that it would write to come after the results, as in other stages.
        """
        return tuple(perform("run_executable", self, inputs))

    @contextmanager
    def stepwise(self) -> Iterator[None]:
        """While the block runs, `call` itself runs, with the functions that a tool put into it."""
        names = self.call.__globals__
        with _COUNTING:
            names[STEPWISE] = names.get(STEPWISE, 0) + 1
        try:
            yield
        finally:
            with _COUNTING:
                names[STEPWISE] -= 1
                if not names[STEPWISE]:
                    del names[STEPWISE]

    @property
    def file(self) -> str:
        """The file with the text of the host program, in which breakpoints can be set."""
        return self.call.__code__.co_filename

    def __repr__(self) -> str:
        return f"Executable({self.host!r})"


def build_executable(
    schedule: Schedule,
    kernels: Sequence[Kernel],
    host: HostProgram,
    options: Options,
    traces: Mapping[str, str] | None = None,
    ahead: bool = False,
    eager: Call | None = None,
) -> Executable:
    """Compile and load the kernels, and make the host program callable.

    With `ahead`, the C++ compiler runs in a thread, and the first call waits for it.  `eager` runs
    the graph in eager mode; it is given if a failed compile must not raise an error.  `traces` maps
    FX nodes to the stack traces of the user's code, for errors.  Raises NoCompiler, CacheRefused
    and CompileFailed (with `ahead`: at the first call).  The result raises IndexOutOfRange where
    eager mode raises IndexError.
    """
    traces = traces or {}
    program = schedule.program
    namespace: dict[str, Any] = {**program.constants, **program.callees}
    for kernel in {kernel.name: kernel for kernel in kernels}.values():
        if kernel.language == "triton":
            namespace[kernel.name] = _triton_function(kernel, options)
    cpp = [kernel for kernel in kernels if kernel.language == "cpp"]
    builder = partial(library_builder, name=program.name, cache=options.cache, traces=traces)
    build = builder(translation_unit(cpp)) if cpp else None
    awaited = [x.ready for x in program.callees.values() if isinstance(x, Written)]
    awaited += warm_up_libraries(program) if ahead else []
    loaded = partial(_loaded, cpp, traces, awaited)
    library = build() if build and not ahead else None
    namespace.update({} if ahead else loaded(library))
    text, file = str(host), f"<host program {program.name}>"
    if not ahead:
        file = host_file(text, program.name, cache=options.cache)
    namespace[NOTE] = line_adder(host.code.lines, traces)
    exec(compile(guarded_text(host.code.lines), file, "exec"), namespace)
    if "laid_out" in namespace:
        namespace["laid_out"] = partial(namespace["laid_out"], traces=traces)
    record_in_profiler(namespace, kernels, traces)
    for space in NAMESPACES:
        if space in namespace:
            namespace[space] = Collectives(namespace[space])
    if not (ahead and (build or awaited)):
        call = mark_boxed(namespace["call"])
        return Executable(host, library, call, program, lambda: library)
    built = BackgroundValue(build).wait if build else lambda: None

    def wait() -> Library | None:
        namespace.update(loaded(built()))
        return built()

    _until_loaded(namespace["call"], wait, traces, eager)
    return Executable(host, library, mark_boxed(namespace["call"]), program, wait)


def _loaded(
    kernels: Sequence[Kernel], traces: Mapping[str, str], awaited: Sequence[Any], library: Any
) -> dict[str, Callable[..., Any]]:
    """Call the functions in `awaited`, then return the functions of the library."""
    for wait in awaited:
        wait()
    twins_by_name = by_name(kernels).items()
    return {name: cpp_function(library, twins, traces) for name, twins in twins_by_name}


def _waits(args: list[Any]) -> Any:
    return _first(args)  # type: ignore[name-defined]  # noqa: F821


def _until_loaded(
    call: Any, wait: Callable[[], object], traces: Mapping[str, str], eager: Call | None
) -> None:
    """Make the first call of a host program wait for its functions, which `wait` loads.

    After the first call, `call` is the host program itself, without an additional step.
    Its code is exchanged because another object costs time in every call: x + 1 of 16 floats takes
    3.5 µs, through an object with two states 3.9 µs (12 % more), through a closure 1 % more (thread
    time, medians of 25 rounds of 8,000 calls, interleaved; AVX-512, Python 3.11, 2026-11).

    If the
    functions cannot be compiled and `eager` is given, the graph runs in eager mode from then on,
    with a warning.
    """
    program, namespace = call.__code__, call.__globals__

    def first(args: list[Any]) -> Any:
        try:
            wait()
        except LabError as problem:
            report_failure(problem)
            if eager is None:
                raise
            name = next(filter(None, map(function_in, traces.values())), "a function")
            warnings.warn(f"{name} runs uncompiled: {problem}", RunsUncompiled, stacklevel=3)
            namespace["_first"] = eager
            return eager(args)
        call.__code__ = program
        namespace["_first"] = call  # for threads that are inside `_waits`; frees the graph
        return call(args)

    namespace["_first"] = first
    call.__code__ = _waits.__code__


def function_in(trace: str) -> str:
    """Return the name of the outermost function of a stack trace."""
    found = re.search(r'File ".*", line \d+, in (.+)', trace)
    return found[1] if found else ""


def cpp_function(library: Library, twins: Sequence[Kernel], traces: Mapping[str, str]) -> Any:
    """Return the function that equal kernels share, as a ctypes function of addresses and sizes."""
    kernel = twins[0]
    function = getattr(library.handle, kernel.name)
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    function.argtypes = [size if p.role == "symbol" else pointer for p in kernel.parameters]
    function.restype = ctypes.c_int
    gathers = [load for twin in twins for load in indirect_accesses(twin.group)]
    divisions = [origins for twin in twins for origins in integer_divisions(twin.group)]
    if gathers or divisions:
        # kernels that cannot fail have no check
        origins = NO_ORIGINS.union(*(origins for _, origins in gathers))
        buffers = ", ".join(dict.fromkeys(buffer for buffer, _ in gathers))

        def check(status: int, function: Any, arguments: Any) -> int:
            if status & BY_ZERO:
                said = f"ZeroDivisionError: integer division by zero in {kernel.name}"
                raise DividedByZero(said, place_of(NO_ORIGINS.union(*divisions), traces))
            if status != 0:
                said = f"an index into {buffers} is out of range in {kernel.name}"
                raise IndexOutOfRange(said, place_of(origins, traces))
            return status

        function.errcheck = check
    return checked_function(function, twins, traces) if is_checked(kernel) else function


def _triton_function(kernel: Kernel, options: Options) -> Callable[..., None]:
    from inductor_lab.compiler.runtime.triton.tune_blocks import tuned_kernel

    return tuned_kernel(kernel, options)
