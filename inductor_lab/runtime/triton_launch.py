"""Load a Triton kernel and call it: compiled on a GPU, interpreted on the CPU.

Inductor: `CachingAutotuner` and `async_compile.triton`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sympy
import torch
import triton.language as tl
from triton.runtime import driver

from inductor_lab.codegen.kernel import Kernel
from inductor_lab.codegen.triton_module import compile_options, jit_function
from inductor_lab.ir.index import Size
from inductor_lab.runtime.triton_interpret import Interpreted

LARGEST_INTERPRETED = 1 << 15
"""Points of one interpreted program: NumPy is slow to start and fast to run."""

INT32_REACH = 1 << 31


def load_kernel(kernel: Kernel, *, interpret: bool | None = None) -> Callable[..., None]:
    """A function of the kernel's arguments, in the order of `kernel.parameters`.

    Tensors for buffers and ints for symbols.  On a GPU it launches on the current stream of the
    current device and returns at once.  Interpreted (by default where the kernel is for the CPU),
    the tensors must be on the CPU, and an index that is out of range raises IndexOutOfRange.
    """
    if interpret is None:
        interpret = kernel.device.startswith("cpu")
    return _interpreted(kernel) if interpret else _on_device(kernel, Launcher(kernel))


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


class Launcher:
    """Launches a kernel on the current stream of the current device.

    For each call Triton works out anew which variant of a kernel the arguments need, which takes
    longer than a small kernel runs.  A variant depends on the device, the numbers, and whether
    pointers are aligned, so the compiled kernel of a launch is kept, by device and numbers, and
    serves every later one whose pointers are aligned; the others go through Triton.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.function: Any = jit_function(kernel)
        self.options = compile_options(kernel)
        self.fixed = _launch(kernel, {}, False) if _is_fixed(kernel) else None
        places = range(len(kernel.parameters))
        self.numbers = [n for n in places if kernel.parameters[n].symbol is not None]
        self.pointers = [n for n in places if kernel.parameters[n].symbol is None]
        self.prepared: dict[tuple[Any, ...], tuple[Callable[..., Any], tuple[Any, ...]]] = {}

    def __call__(self, *arguments: Any) -> None:
        device = driver.active.get_current_device()
        key = (device, *[arguments[n] for n in self.numbers])
        found = self.prepared.get(key)
        aligned = not any(arguments[n].data_ptr() % ALIGNED for n in self.pointers)
        if found is not None and aligned:
            launch, constants = found
            launch(*arguments, *constants, stream=driver.active.get_current_stream(device))
            return
        grid, named = self.fixed or _launch(self.kernel, _symbols(self.kernel, arguments), False)
        if 0 in grid:
            return
        compiled = self.function[grid](*arguments, **named, **self.options)
        if compiled is not None and aligned and len(self.prepared) < MOST_PREPARED:
            whole = (*grid, 1, 1)[:3]
            self.prepared[key] = compiled[whole], tuple(named.values())


def _on_device(kernel: Kernel, run: Callable[..., None]) -> Callable[..., None]:
    """Triton launches on the current device: make that the kernel's where it is another."""
    device = torch.device(kernel.device)
    if device.index is None:
        return run

    def elsewhere(*arguments: Any) -> None:
        if torch.cuda.current_device() == device.index:
            run(*arguments)
        else:
            with torch.cuda.device(device):
                run(*arguments)

    return elsewhere


Grid = tuple[int, ...]
Symbols = Mapping[sympy.Expr, int]


def _is_fixed(kernel: Kernel) -> bool:
    """Is every launch of the kernel the same?"""
    sizes = [kernel.launch[key] for key in ("xnumel", "ynumel") if key in kernel.launch]
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
        return (sum(-(-concrete(points, symbols) // block) for points, block in parts),), index
    points = concrete(kernel.launch["xnumel"], symbols)
    if interpret:
        constants["XBLOCK"] = _interpreted_block(points, constants)
    grid = [-(-points // constants["XBLOCK"])]
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


def concrete(size: Size, symbols: Symbols) -> int:
    """The number that a size is in this launch."""
    return size if isinstance(size, int) else int(size.subs(symbols))
