"""Load a Triton kernel and call it: compiled on a GPU, interpreted on the CPU.

A kernel of fixed sizes is compiled as soon as it is written, by another process
(`worker_processes.py`) or in a thread (`runtime/toolchain/background_compile.py`), and its first
launch waits for it.  torch launches the machine code; where it cannot, Triton does, with a launcher
that it has a C compiler build.

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
from inductor_lab.compiler.runtime.cache.prune import prune_sometimes, touched
from inductor_lab.compiler.runtime.toolchain.background_compile import Ahead
from inductor_lab.compiler.runtime.triton.interpreter import Interpreted
from inductor_lab.compiler.runtime.triton.worker_processes import asked_for, processes
from inductor_lab.compiler.torch_door.torch_api import (
    current_device,
    current_stream,
    load_cubin,
    run_cubin,
)

LARGEST_INTERPRETED = 1 << 15
"""Points of one interpreted program: NumPy is slow to start and fast to run."""


def load_kernel(kernel: Kernel, *, interpret: bool | None = None) -> Callable[..., None]:
    """A function of the kernel's arguments, in the order of `kernel.parameters`.

    Tensors for buffers and ints for symbols.  On a GPU it launches on the current stream of the
    current device and returns at once.  Interpreted (by default where the kernel is for the CPU),
    the tensors must be on the CPU, and an index that is out of range raises IndexOutOfRange.
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
"""Bytes: what a pointer is divisible by where Triton loads four float32 at once."""

MOST_PREPARED = 64
"""Sizes for which a kernel with symbolic ones keeps its launch."""

MOST_ARGUMENTS = 100
"""Of a kernel that torch launches; it has room for 120."""

KINDS = {"i32": "i", "i64": "l"}
"""Types of Triton's, as torch's launcher calls them; a pointer is an O."""

_address = torch.Tensor.data_ptr

_READING_TRITON = threading.Lock()
"""Triton's own files are part of each kernel's name on disk.  The first thread reads them for all:
sixteen that read them at once took half a second each."""

Launch: TypeAlias = Callable[[int, Sequence[Any]], None]
"""Takes a stream and the tensors that a kernel points to; it knows the numbers."""


class Launcher:
    """Launches a kernel on the current stream of its device (of the current one, if it has none).

    For each call Triton works out anew which variant of a kernel the arguments need, which takes
    longer than a small kernel runs.  A variant depends on the device, the numbers, and whether
    pointers are aligned, so the compiled kernel of a launch is kept, by device and numbers, and
    serves every later one whose pointers are aligned; the others go through Triton.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.device = torch.device(kernel.device).index
        self.fixed = _launch(kernel, {}, False) if _is_fixed(kernel) else None
        _, words = kernel.launch.get("shared", (1, 0))  # such a kernel has fixed sizes
        self.exchanged = int(words and words * kernel.launch["xnumel"])
        self.pointers = sum(parameter.symbol is None for parameter in kernel.parameters)
        self.pointers += bool(self.exchanged)
        self.prepared: dict[tuple[int, ...], Launch] = {}
        self.kept: set[str] = set()
        self.ahead: dict[tuple[int, ...], Ahead[Launch]] = {}

    def begin(self) -> None:
        """Compile for aligned pointers in a thread, if all sizes are known."""
        if self.fixed is None or self.pointers < len(self.kernel.parameters) or 0 in self.fixed[0]:
            return
        fixed, device = self.fixed, self.device or 0

        def make() -> Launch:
            with torch.cuda.device(device):
                target = this_gpu()
                launch = self._compiled_elsewhere(target, fixed[0])
                return launch or _direct(self._compiled_here(target), *fixed, ())

        self.ahead[(device,)] = Ahead(make)

    @cached_property
    def function(self) -> Any:
        """The kernel for Triton's compiler."""
        return jit_function(self.kernel)

    @cached_property
    def options(self) -> dict[str, Any]:
        return compile_options(self.kernel)

    def _compiled_elsewhere(self, target: GPUTarget, grid: Grid) -> Launch | None:
        """The launch for aligned pointers, if torch launches what another process compiles."""
        others = processes(target)
        described = others.compile(asked_for(self.kernel, target)) if others is not None else ""
        if not described or run_cubin is None:
            return None
        with contextlib.suppress(OSError):  # it was deleted meanwhile
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
    """The current GPU, as Triton's compiler knows it.  Triton's driver says so too, once a C
    compiler has built it; torch's launcher does without."""
    if run_cubin is None or torch.version.hip is not None:
        return driver.active.get_current_target()
    major, minor = torch.cuda.get_device_capability()
    return GPUTarget("cuda", 10 * major + minor, 32)


def _keep(entry: Path) -> None:
    """What Triton has compiled, or found in its folder, counts with the cache's limit."""
    mark(entry)
    touched(entry)
    with contextlib.suppress(CacheRefused):
        prune_sometimes(open_cache().root)


def _direct(compiled: Any, grid: Grid, named: Mapping[str, Any], numbers: Sequence[int]) -> Launch:
    """The launch of a compiled kernel, which this loads on the current device.

    Hooks of Triton's own profiler are not called: asking for them takes as long as the launch.
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
    """The launch by torch's own launcher, for which no C compiler has to build anything; None if
    it cannot.

    `types` are Triton's, of all arguments and constants; a number that is 1 is in the machine code.
    Two pointers at the end are to memory for what registers do not hold, which no kernel of ours
    asks for.
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
    """Is every launch of the kernel the same?"""
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
    """The grid and the compile-time constants."""
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
    """XBLOCK for the interpreter: larger, but not so that a mask is missing that was not needed."""
    block = constants["XBLOCK"]
    even = points % block == 0
    row = max((size for name, size in constants.items() if name != "XBLOCK"), default=1)
    while block < points and 2 * block * row <= LARGEST_INTERPRETED:
        if even and points % (2 * block):
            break
        block *= 2
    return block
