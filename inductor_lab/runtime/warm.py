"""A new process starts warm: compiled graphs come from disk, without AOTAutograd and without us.

AOTAutograd keeps them (`torch_aot.Part`): schedule, kernels and host program are data, and become
running code as they do in a compile.  The C++ libraries lie in our own cache.

Inductor: FxGraphCache in `codecache.py`.
"""

from __future__ import annotations

import functools
import hashlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import inductor_lab
from inductor_lab import torch_aot
from inductor_lab.codegen.kernel import HostProgram, Kernel
from inductor_lab.errors import NoCompiler, NothingToChange
from inductor_lab.options import Options
from inductor_lab.runtime.ahead import Ahead
from inductor_lab.runtime.cuda_graphs import recorded
from inductor_lab.runtime.executable import build_executable
from inductor_lab.runtime.toolchain import find_toolchain
from inductor_lab.runtime.trust import distrust
from inductor_lab.schedule.result import Schedule


def running_again(
    schedule: Schedule,
    kernels: Sequence[Kernel],
    host: HostProgram,
    options: Options,
    traces: Mapping[str, str],
) -> Callable[[list[Any]], tuple[Any, ...]]:
    """The call of a graph that was compiled in another process; `traces` as `build_executable`."""
    call = build_executable(schedule, kernels, host, options, traces).call
    return recorded(call, schedule.program, options)


def warm_key(options: Options, parameters: Iterable[int], changed: str = "") -> str:
    """All that a compile depends on and torch's own key does not hold, as one word; "" if nothing
    shall be kept on disk, or the folder is not one to load code from.

    That is the compiler itself, what was `changed` in it at run time (`overrides.py`), its options,
    which inputs are parameters, how many threads there are, and the C++ compiler.
    """
    if not options.cache or options.target is not None:
        return ""
    try:
        compiler = find_toolchain().identity
    except NoCompiler:
        return ""
    folder = torch_aot.cache_folder()
    if not folder or distrust(Path(folder)):
        return ""
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    facts = (compiler_itself(), changed, options, sorted(parameters), threads, precision, compiler)
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def make_ready(mode: str, inputs: Iterable[Any]) -> None:
    """What can begin before a graph is lowered, and what its mode does not change."""
    if any(isinstance(given, torch.Tensor) and given.is_cuda for given in inputs):
        warm_triton()
    elif mode != "default":
        tell_of_mode(mode)


@functools.cache
def tell_of_mode(mode: str) -> None:
    """A mode that was asked for and changes nothing is told, once in a process."""
    warnings.warn(
        f'mode="{mode}" changes nothing on a CPU: products of matrices are always measured there,'
        " and a call costs no launches",
        NothingToChange,
        stacklevel=4,
    )


@functools.cache
def warm_triton() -> Ahead[Any] | None:
    """Begin what Triton does once in a process, in a thread: it finds the assembler, reads itself
    for the key of its cache, and builds the module that it loads kernels with.

    Where Triton is not installed, nothing happens before a kernel needs it.
    """
    try:
        import triton
        from triton.compiler import ASTSource
        from triton.runtime import driver
        from triton.runtime.jit import JITFunction

        from inductor_lab.codegen.triton_module import compiled_device
    except ImportError:
        return None
    device = torch.cuda.current_device()

    def make() -> Any:
        with torch.cuda.device(device):
            compiled_device()
            target = driver.active.get_current_target()
            written, fused = ASTSource(JITFunction(_nothing), {}, {}), {"enable_fp_fusion": True}
            return triton.compile(written, target=target, options=fused)[1, 1, 1]

    return Ahead(make)


def _nothing() -> None:
    """A kernel."""


@functools.cache
def compiler_itself() -> str:
    """A checksum of our own source."""
    digest = hashlib.sha256()
    folder = Path(inductor_lab.__file__).parent
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".h"):
            digest.update(f"{path.relative_to(folder)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
