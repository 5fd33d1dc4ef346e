"""Down Triton's ladder without a GPU: a kernel compiled for a named target, every rung kept.

    Triton text → ttir → ttgir → llir → ptx → cubin        "cuda:80", "cuda:90"
                                     └→ amdgcn → hsaco      "hip:gfx942"

TTIR is the program on blocks, TTGIR says which thread holds what, LLIR is LLVM's, and the last two
are the assembly of the GPU and its machine code.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_lab.compiler.base.errors import CompileFailed, UnknownTarget
from inductor_lab.compiler.codegen.kernel import MARK, Kernel
from inductor_lab.compiler.codegen.triton.printer import triton_kernel

if TYPE_CHECKING:
    from triton.backends.compiler import GPUTarget

RUNGS = ("ttir", "ttgir", "llir", "ptx", "cubin", "amdgcn", "hsaco")

WARP_SIZES = {"gfx9": 64, "gfx10": 32, "gfx11": 32, "gfx12": 32}
"""Threads that run in step, by the start of an AMD architecture's name."""

POSSIBLE = 'possible: "cuda:80", "cuda:90", "cuda:100" (compute capability), "hip:gfx942", ...'

ERROR_LINES = 12



def ladder(kernel: Kernel, target: str) -> dict[str, str | bytes]:
    """Compile for `target` and return each rung: text, and bytes for the machine code.

    A C++ kernel is rendered as Triton first.  Raises UnknownTarget or CompileFailed.
    """
    try:
        import triton  # not there on every platform
    except ImportError as missing:
        raise UnknownTarget(
            f"the target {target!r} needs Triton, which is not installed",
            todo="pip install 'inductor-lab[triton]' (there are wheels for Linux only)",
        ) from missing
    from inductor_lab.compiler.codegen.triton.function import description_of
    from inductor_lab.compiler.codegen.triton.kernel_module import (
        compile_options,
        jit_function,
        source,
    )

    machine = _machine(target)
    kernel = triton_form(kernel, target)
    try:
        asked, written = compile_options(kernel), source(kernel, jit_function(kernel))
        compiled = triton.compile(written, target=machine, options=asked)
        mark(description_of(compiled).parent)
    except Exception as failure:
        raise CompileFailed(
            f"Triton could not compile {kernel.name} for {target}",
            todo="\n  ".join(["the kernel:", *str(kernel).splitlines(), *_first_lines(failure)]),
        ) from failure
    return {rung: compiled.asm[rung] for rung in RUNGS if rung in compiled.asm}


def mark(entry: Path) -> None:
    """A folder where Triton keeps what it has compiled is for a kernel of ours."""
    with contextlib.suppress(OSError):
        (entry / MARK).touch(mode=0o600)


def triton_form(kernel: Kernel, target: str) -> Kernel:
    """The kernel itself, or a C++ kernel's group as Triton would have it."""
    if kernel.language == "triton":
        return kernel
    name = kernel.name.replace("cpp_", "triton_", 1)
    backend = _machine(target).backend
    return triton_kernel(kernel.group, kernel.buffers, name, device=backend)


def _machine(target: str) -> GPUTarget:
    """`"cuda:90"` → what Triton calls a target."""
    from triton.backends import backends
    from triton.backends.compiler import GPUTarget

    backend, _, architecture = target.partition(":")
    names = {"cuda": "nvidia", "hip": "amd"}
    if backend not in names or not architecture:
        raise UnknownTarget(f"the target {target!r} is not known", todo=POSSIBLE)
    if names[backend] not in backends:
        raise UnknownTarget(f"this Triton cannot compile for {backend}", todo=POSSIBLE)
    if backend == "cuda":
        if not architecture.isdigit() or int(architecture) < 70:
            raise UnknownTarget(f"the target {target!r} is not known", todo=POSSIBLE)
        return GPUTarget("cuda", int(architecture), 32)
    warp = next((w for start, w in WARP_SIZES.items() if architecture.startswith(start)), None)
    if warp is None:
        raise UnknownTarget(f"the target {target!r} is not known", todo=POSSIBLE)
    return GPUTarget("hip", architecture, warp)


def _first_lines(failure: BaseException) -> list[str]:
    """The causes of a failure, innermost first; Triton wraps one error in another."""
    found: list[str] = []
    cause: BaseException | None = failure
    while cause is not None:
        found = [*str(cause).splitlines(), *found]
        cause = cause.__cause__
    return ["the error:", *found[:ERROR_LINES]]
