"""Loads a Triton kernel and launches it: compiled on a GPU, interpreted on the CPU.

A kernel with static sizes is compiled as soon as it is printed, by a worker process
(`worker_processes.py`) or in a thread (`runtime/toolchain/background_compile.py`).  Its first
launch waits for it.  torch launches the machine code if it can.  Otherwise Triton does, with a
launcher that a C compiler must build.

Inductor: `CachingAutotuner`, `async_compile.triton` and `runtime/static_triton_launcher.py`.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, reduce
from operator import or_
from pathlib import Path
from typing import Any, TypeAlias

import sympy
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.cache import triton_key

from inductor_lab.compiler.base.errors import CacheRefused
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.triton.blocks import INT32_REACH
from inductor_lab.compiler.codegen.triton.function import metadata_file
from inductor_lab.compiler.codegen.triton.kernel_module import compile_options, jit_function, source
from inductor_lab.compiler.codegen.triton.ladder import mark
from inductor_lab.compiler.ir.interpret import concrete
from inductor_lab.compiler.runtime.cache.kernel_cache import open_cache
from inductor_lab.compiler.runtime.cache.prune import mark_used, prune_sometimes
from inductor_lab.compiler.runtime.toolchain.background_compile import BackgroundValue
from inductor_lab.compiler.runtime.triton.interpreter import Interpreted
from inductor_lab.compiler.runtime.triton.worker_processes import processes, request
from inductor_lab.compiler.torch_door.torch_api import (
    current_device,
    current_stream,
    load_cubin,
    run_cubin,
)

LARGEST_INTERPRETED = 1 << 15
"""The points of an interpreted program.  NumPy has a large overhead per call, so this is large."""


def load_kernel(kernel: Kernel, *, interpret: bool | None = None) -> Callable[..., None]:
    """Return a function of the kernel's arguments, in the order of `kernel.parameters`.

    The arguments are tensors for buffers and ints for symbols.  On a GPU, it launches on the
    current stream of the current device, and returns immediately.  If interpreted (the default for
    CPU kernels), the tensors must be on the CPU, and an index out of range raises IndexOutOfRange.
    """
    if interpret is None:
        interpret = kernel.device.startswith("cpu")
    if interpret:
        return _interpreted(kernel)
    launcher = Launcher(kernel)
    launcher.begin()
    return launcher


def _interpreted(kernel: Kernel) -> Callable[..., None]:
    function = Interpreted(kernel)
    fixed = _launch(kernel, {}, True) if _is_fixed(kernel) else None

    def run(*arguments: Any) -> None:
        grid, constants = fixed or _launch(kernel, _symbols(kernel, arguments), True)
        if 0 not in grid:
            function[grid](*arguments, **constants)

    return run


ALIGNED = 16
"""In bytes: the alignment for which Triton loads four float32 in one instruction."""

MOST_PREPARED = 64
"""The maximum number of launches that a kernel with symbolic sizes caches."""

MOST_ARGUMENTS = 100
"""The limit for kernels that torch launches.  torch supports 120."""

KINDS = {"i32": "i", "i64": "l"}
"""Maps Triton's types to those of torch's launcher, where a pointer is an O."""

_address = torch.Tensor.data_ptr

_READING_TRITON = threading.Lock()
"""The hash of Triton's files is part of the cache key of each kernel.  One thread reads them for
all.  Sixteen threads that read them at the same time took half a second each."""

Launch: TypeAlias = Callable[[int, Sequence[Any]], None]
"""A function of a stream and the tensor arguments; the numbers are fixed."""


class Launcher:
    """Launches a kernel on the current stream of its device (or of the current device).

    For each call, Triton finds the variant of the kernel for the arguments.  This takes longer than
    a small kernel runs.  A variant depends on the device, the numbers, and the alignment of the
    pointers.  Therefore launches with aligned pointers are cached by device and numbers.  Launches
    with unaligned pointers go through Triton.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.device = torch.device(kernel.device).index
        self.fixed = _launch(kernel, {}, False) if _is_fixed(kernel) else None
        _, words = kernel.launch.get("shared", (1, 0))  # such a kernel has static sizes
        self.exchanged = int(words and words * kernel.launch["xnumel"])
        self.pointers = sum(parameter.symbol is None for parameter in kernel.parameters)
        self.pointers += bool(self.exchanged)
        self.prepared: dict[tuple[int, ...], Launch] = {}
        self.kept: set[str] = set()
        self.ahead: dict[tuple[int, ...], BackgroundValue[Launch]] = {}

    def begin(self) -> None:
        """Compile for aligned pointers in a thread, if all sizes are static."""
        if self.fixed is None or self.pointers < len(self.kernel.parameters) or 0 in self.fixed[0]:
            return
        fixed, device = self.fixed, self.device or 0

        def make() -> Launch:
            with torch.cuda.device(device):
                target = this_gpu()
                launch = self._compiled_elsewhere(target, fixed[0])
                return launch or _direct(self._compiled_here(target), *fixed, ())

        self.ahead[(device,)] = BackgroundValue(make)

    @cached_property
    def function(self) -> Any:
        """The kernel as a function for Triton's compiler."""
        return jit_function(self.kernel)

    @cached_property
    def options(self) -> dict[str, Any]:
        return compile_options(self.kernel)

    def _compiled_elsewhere(self, target: GPUTarget, grid: Grid) -> Launch | None:
        """Compile for aligned pointers in a worker process; None if this is not possible."""
        others = processes(target)
        described = others.compile(request(self.kernel, target)) if others is not None else ""
        if not described or run_cubin is None:
            return None
        with contextlib.suppress(OSError):  # another process has deleted it
            _keep(Path(described).parent)
            return _by_torch(Path(described), grid, "*" * self.pointers, ())
        return None

    def _compiled_here(self, target: GPUTarget) -> Any:
        with _READING_TRITON:
            triton_key()
        written = source(self.kernel, self.function)
        compiled = triton.compile(written, target=target, options=self.options)
        _keep(metadata_file(compiled).parent)
        return compiled

    def __call__(self, *arguments: Any) -> None:
        device = current_device()
        if self.device is not None and self.device != device:
            with torch.cuda.device(self.device):
                return self(*arguments)
        if self.exchanged:
            words = torch.zeros(self.exchanged, dtype=torch.int64, device=f"cuda:{device}")
            arguments = (*arguments, words)
        pointers, numbers = arguments[: self.pointers], arguments[self.pointers :]
        key = (device, *numbers)
        aligned = not reduce(or_, map(_address, pointers)) % ALIGNED
        launch = self.prepared.get(key)
        if launch is None and aligned and key in self.ahead:
            launch = self.prepared[key] = self.ahead[key].wait()
        if launch is not None and aligned:
            return launch(current_stream(device), pointers)
        grid, named = self.fixed or _launch(self.kernel, _symbols(self.kernel, arguments), False)
        if 0 in grid:
            return None
        compiled = self.function[grid](*arguments, **named, **self.options)
        if compiled is not None and compiled.hash not in self.kept:
            self.kept.add(compiled.hash)
            _keep(metadata_file(compiled).parent)
        if compiled is not None and aligned and len(self.prepared) < MOST_PREPARED:
            self.prepared[key] = _direct(compiled, grid, named, numbers)
        return None


def this_gpu() -> GPUTarget:
    """Return the current GPU as a target of Triton.

    Triton's driver also reports it, but a C compiler must build the driver first.
    """
    if run_cubin is None or torch.version.hip is not None:
        return driver.active.get_current_target()
    major, minor = torch.cuda.get_device_capability()
    return GPUTarget("cuda", 10 * major + minor, 32)


def _keep(entry: Path) -> None:
    """Record the use of an entry in Triton's cache, to which the cache limit applies."""
    mark(entry)
    mark_used(entry)
    with contextlib.suppress(CacheRefused):
        prune_sometimes(open_cache().root)


def _direct(compiled: Any, grid: Grid, named: Mapping[str, Any], numbers: Sequence[int]) -> Launch:
    """Load a compiled kernel on the current device, and return its launch function.

    Triton's profiler hooks are not called, because looking them up takes as long as the launch.
    """
    if run_cubin is not None:
        types = compiled.src.signature.values()
        by_torch = _by_torch(metadata_file(compiled), grid, types, numbers)
        if by_torch is not None:
            return by_torch
    whole = _in_three(grid)
    compiled[whole]  # builds Triton's launcher for these arguments, and loads the machine code
    run, function, packed = compiled.run, compiled.function, compiled.packed_metadata
    rest = (*numbers, *named.values())

    def launch(stream: int, pointers: Sequence[Any]) -> None:
        run(*whole, stream, function, packed, None, None, None, *pointers, *rest)

    return launch


def _by_torch(
    described: Path, grid: Grid, types: Collection[str], numbers: Sequence[int]
) -> Launch | None:
    """Return the launch function by torch's launcher, which needs no C compiler; None if it cannot.

    `types` are Triton's types of all arguments and constants.  A number that equals 1 is a constant
    in the machine code.  The last two arguments are pointers to scratch memory, which our kernels
    do not use.
    """
    taken = [t for t in types if t != "constexpr"]
    kinds = ["O" if t.startswith("*") else KINDS.get(t, "") for t in taken]
    about, cubin = json.loads(described.read_bytes()), described.with_suffix(".cubin")
    memory = about["global_scratch_size"] or about["profile_scratch_size"]
    knows = all(kinds) and len(kinds) < MOST_ARGUMENTS and about["num_ctas"] == 1 and not memory
    if not knows or not cubin.exists():
        return None
    *_, function, _, _ = load_cubin(str(cubin), about["name"], about["shared"], current_device())
    warps, shared = about["num_warps"], about["shared"]
    first = (function, *_in_three(grid), warps, shared, "".join(kinds) + "OO")
    of_numbers = [t for t in types if not t.startswith("*")]
    given = [n for n, t in zip(numbers, of_numbers, strict=False) if t != "constexpr"]
    rest = (*given, None, None)

    def launch(stream: int, pointers: Sequence[Any]) -> None:
        run_cubin(*first, (*pointers, *rest), stream)

    return launch


def _in_three(grid: Grid) -> Grid:
    return (*grid, 1, 1)[:3]


Grid = tuple[int, ...]
Symbols = Mapping[sympy.Expr, int]


def _is_fixed(kernel: Kernel) -> bool:
    """Are the grid and the constants the same in every launch of the kernel?"""
    sizes = [kernel.launch[key] for key in ("xnumel", "ynumel", "times") if key in kernel.launch]
    sizes += [points for points, _ in kernel.launch.get("parts", ())]
    return "reach" not in kernel.launch and all(isinstance(size, int) for size in sizes)


def _symbols(kernel: Kernel, arguments: tuple[Any, ...]) -> Symbols:
    return {
        parameter.symbol: int(argument)
        for parameter, argument in zip(kernel.parameters, arguments, strict=True)
        if parameter.symbol is not None
    }


def _launch(kernel: Kernel, symbols: Symbols, interpret: bool) -> tuple[Grid, dict[str, Any]]:
    """Return the grid and the compile-time constants."""
    constants = dict(kernel.launch["constants"])
    index = {}
    if "reach" in kernel.launch:
        small = all(concrete(size, symbols) < INT32_REACH for size in kernel.launch["reach"])
        index["INDEX"] = tl.int32 if small else tl.int64
    if "parts" in kernel.launch:
        parts = kernel.launch["parts"]
        blocks = sum(-(-concrete(points, symbols) // block) for points, block in parts)
        return (blocks * concrete(kernel.launch.get("times", 1), symbols),), {**constants, **index}
    points = concrete(kernel.launch["xnumel"], symbols)
    if interpret:
        constants["XBLOCK"] = _interpreted_block(points, constants)
    parts, _ = kernel.launch.get("shared", (1, 0))
    grid = [-(-points // constants["XBLOCK"]) * parts]
    if "ynumel" in kernel.launch:
        grid.append(-(-concrete(kernel.launch["ynumel"], symbols) // constants["YBLOCK"]))
    return tuple(grid), {**constants, **index}


def _interpreted_block(points: int, constants: Mapping[str, int]) -> int:
    """Return a larger XBLOCK for the interpreter; an unmasked kernel must still need no mask."""
    block = constants["XBLOCK"]
    even = points % block == 0
    row = max((size for name, size in constants.items() if name != "XBLOCK"), default=1)
    while block < points and 2 * block * row <= LARGEST_INTERPRETED:
        if even and points % (2 * block):
            break
        block *= 2
    return block
