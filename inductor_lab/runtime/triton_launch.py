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
from inductor_lab.codegen.triton_module import jit_function
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
        options = {"num_warps": kernel.launch["num_warps"], "enable_fp_fusion": True}
    constants = dict(kernel.launch["constants"])
    static = _static_launch(kernel, constants, interpret)
    if static is not None:
        grid, constants = static
        launch = function[grid]

        def run(*arguments: Any) -> None:
            if grid[0]:
                launch(*arguments, **constants, **options)

    else:

        def run(*arguments: Any) -> None:
            grid, sized = _sized_launch(kernel, constants, arguments, interpret)
            if grid[0]:
                function[grid](*arguments, **sized, **options)

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


Launch = tuple[tuple[int], dict[str, Any]]


def _static_launch(kernel: Kernel, constants: dict[str, Any], interpret: bool) -> Launch | None:
    points = kernel.launch["xnumel"]
    if not isinstance(points, int) or "reach" in kernel.launch:
        return None
    return _launch(points, constants, interpret)


def _sized_launch(
    kernel: Kernel, constants: dict[str, Any], arguments: tuple[Any, ...], interpret: bool
) -> Launch:
    symbols = {
        parameter.symbol: int(argument)
        for parameter, argument in zip(kernel.parameters, arguments, strict=True)
        if parameter.symbol is not None
    }
    points = concrete(kernel.launch["xnumel"], symbols)
    sized = dict(constants)
    if "reach" in kernel.launch:
        small = all(concrete(size, symbols) < INT32_REACH for size in kernel.launch["reach"])
        sized["INDEX"] = tl.int32 if small else tl.int64
    return _launch(points, sized, interpret)


def _launch(points: int, constants: dict[str, Any], interpret: bool) -> Launch:
    """The grid, and the constants; an interpreted program does more at a time.

    A larger block must not need a mask that the kernel was written without.
    """
    block = constants["XBLOCK"]
    if interpret:
        rows = max(
            (v for k, v in constants.items() if k.endswith("BLOCK") and k != "XBLOCK"), default=1
        )
        even = points % block == 0
        while block < points and 2 * block * rows <= LARGEST_INTERPRETED:
            if even and points % (2 * block):
                break
            block *= 2
    return (-(-points // block),), {**constants, "XBLOCK": block}


def concrete(size: Size, symbols: Mapping[sympy.Symbol, int]) -> int:
    """The number that a size is in this launch."""
    return size if isinstance(size, int) else int(size.subs(symbols))
