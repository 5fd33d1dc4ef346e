"""Load a Triton kernel and call it: compiled on a GPU, interpreted on the CPU.

Inductor: `CachingAutotuner` and `async_compile.triton`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sympy
import torch
import triton.language as tl

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
    if interpret:
        function: Any = Interpreted(kernel)
        options: dict[str, Any] = {}
    else:
        function = jit_function(kernel)
        options = compile_options(kernel)
    fixed = _launch(kernel, {}, interpret) if _is_fixed(kernel) else None
    if fixed is not None and 0 in fixed[0]:
        return lambda *arguments: None
    if fixed is not None:
        grid, constants = fixed
        launch = function[grid]

        def run(*arguments: Any) -> None:
            launch(*arguments, **constants, **options)

    else:

        def run(*arguments: Any) -> None:
            grid, constants = _launch(kernel, _symbols(kernel, arguments), interpret)
            if 0 not in grid:
                function[grid](*arguments, **constants, **options)

    return run if interpret else _on_device(kernel, run)


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
