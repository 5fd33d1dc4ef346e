"""Compiles a Triton kernel for a named target without a GPU, and keeps the result of every stage.

    Triton text → ttir → ttgir → llir → ptx → cubin        "cuda:80", "cuda:90"
                                     └→ amdgcn → hsaco      "hip:gfx942"

TTIR is the program on blocks.  TTGIR assigns elements to threads.  LLIR is LLVM IR.  The last two
are the assembly and the machine code of the GPU.
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
"""The number of threads of a wavefront, by the start of the name of an AMD architecture."""

VALID_TARGETS = (
    'valid targets: "cuda:80", "cuda:90", "cuda:100" (compute capability), "hip:gfx942", ...'
)

ERROR_LINES = 12



def ladder(kernel: Kernel, target: str) -> dict[str, str | bytes]:
    """Compile for `target` and return the result of each stage: text, or bytes for machine code.

    The group of a C++ kernel is printed as Triton first.  Raises UnknownTarget or CompileFailed.
    """
    try:
        import triton  # not available on every platform
    except ImportError as missing:
        raise UnknownTarget(
            f"the target {target!r} needs Triton, which is not installed",
            todo="pip install 'inductor-lab[triton]' (on Windows it is triton-windows)",
        ) from missing
    from inductor_lab.compiler.codegen.triton.function import metadata_file
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
        mark(metadata_file(compiled).parent)
    except Exception as failure:
        raise CompileFailed(
            f"Triton could not compile {kernel.name} for {target}",
            todo="\n  ".join(["the kernel:", *str(kernel).splitlines(), *_first_lines(failure)]),
        ) from failure
    return {rung: compiled.asm[rung] for rung in RUNGS if rung in compiled.asm}


def mark(entry: Path) -> None:
    """Mark a folder in Triton's cache as the entry of a kernel of inductor_lab."""
    with contextlib.suppress(OSError):
        (entry / MARK).touch(mode=0o600)


def triton_form(kernel: Kernel, target: str) -> Kernel:
    """Return a Triton kernel unchanged; print the group of a C++ kernel as Triton."""
    if kernel.language == "triton":
        return kernel
    name = kernel.name.replace("cpp_", "triton_", 1)
    backend = _machine(target).backend
    return triton_kernel(kernel.group, kernel.buffers, name, device=backend)


def _machine(target: str) -> GPUTarget:
    """Convert `"cuda:90"` to a target of Triton."""
    from triton.backends import backends
    from triton.backends.compiler import GPUTarget

    backend, _, architecture = target.partition(":")
    names = {"cuda": "nvidia", "hip": "amd"}
    if backend not in names or not architecture:
        raise UnknownTarget(f"unknown target {target!r}", todo=VALID_TARGETS)
    if names[backend] not in backends:
        raise UnknownTarget(f"this Triton cannot compile for {backend}", todo=VALID_TARGETS)
    if backend == "cuda":
        if not architecture.isdigit() or int(architecture) < 70:
            raise UnknownTarget(f"unknown target {target!r}", todo=VALID_TARGETS)
        return GPUTarget("cuda", int(architecture), 32)
    warp = next((w for start, w in WARP_SIZES.items() if architecture.startswith(start)), None)
    if warp is None:
        raise UnknownTarget(f"unknown target {target!r}", todo=VALID_TARGETS)
    return GPUTarget("hip", architecture, warp)


def _first_lines(failure: BaseException) -> list[str]:
    """Return the causes of a failure, innermost first, because Triton nests its errors."""
    found: list[str] = []
    cause: BaseException | None = failure
    while cause is not None:
        found = [*str(cause).splitlines(), *found]
        cause = cause.__cause__
    return ["the error:", *found[:ERROR_LINES]]
