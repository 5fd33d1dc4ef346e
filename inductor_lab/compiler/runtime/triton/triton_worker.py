"""A worker process that compiles Triton kernels: `python -P triton_worker.py 8 TARGET`.

Each input line is a request for a kernel (`request` in `runtime/triton/worker_processes.py`).  A
forked process compiles it.  The first argument is the maximum number of these processes.  When the
kernel is in Triton's cache on disk, the answer is its number and the path of Triton's metadata, or
an empty path if it cannot be compiled.  The worker ends with its input, or if it is idle.  The
second argument is the GPU, as JSON, for which a small kernel is compiled at the start.

The worker imports only Triton, because importing torch takes seconds.  All other output goes to the
standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from types import ModuleType
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.runtime.cache import triton_key

PACKAGE = Path(__file__).resolve().parents[3]
SECONDS_IDLE = 120.0
INPUT, OUTPUT, ERRORS = 0, 1, 2
READY = b"ready\n"
MOST_READ = 1 << 20
SMALL_TEXT = """
import triton
import triton.language as tl

@triton.jit
def small(in0, out0, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    rindex = tl.arange(0, RBLOCK)[None, :]
    t0 = tl.load(in0 + (100 * xindex + rindex), rindex < 100).to(tl.float32)
    acc0 = lab.row_sum(tl.where(rindex < 100, t0, 0.0))
    tl.store(out0 + (100 * xindex + rindex), lab.erf(t0 - acc0).to(tl.float16), rindex < 100)
"""
SMALL: dict[str, Any] = {
    "text": SMALL_TEXT, "name": "small", "types": {"in0": "*fp16", "out0": "*fp16"},
    "constants": {"XBLOCK": 1, "RBLOCK": 128},
    "options": {"num_warps": 4, "enable_fp_fusion": True},
}  # fmt: skip


@dataclass
class Running:
    """A process that compiles a kernel, the number of the kernel, and the output so far."""

    process: int
    number: int
    said: str = ""


def serve(at_once: int, target: GPUTarget) -> None:
    """Answer requests until the input ends or the worker is idle; `target` is the first GPU."""
    import_by_folder("inductor_lab", PACKAGE)
    for part in ("compiler", "compiler.codegen", "compiler.codegen.triton"):
        import_by_folder(f"inductor_lab.{part}", PACKAGE.joinpath(*part.split(".")))
    answers = os.dup(OUTPUT)
    os.dup2(ERRORS, OUTPUT)
    triton_key()  # reads all files of Triton, once for all processes
    compile_small(target)
    os.write(answers, READY)
    waiting: deque[str] = deque()
    running: dict[int, Running] = {}
    unfinished = b""
    with DefaultSelector() as selector:
        selector.register(INPUT, EVENT_READ)
        while events := selector.select(None if running else SECONDS_IDLE):
            for key, _ in events:
                given = os.read(key.fd, MOST_READ)
                if key.fd != INPUT and given:
                    running[key.fd].said += given.decode()
                elif key.fd != INPUT:
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    one = running.pop(key.fd)
                    os.waitpid(one.process, 0)
                    os.write(answers, f"{json.dumps([one.number, one.said])}\n".encode())
                elif given:
                    *lines, unfinished = (unfinished + given).split(b"\n")
                    waiting.extend(line.decode() for line in lines)
                else:
                    return
            while waiting and len(running) < at_once:
                asked = json.loads(waiting.popleft())
                process, pipe = start(asked)
                selector.register(pipe, EVENT_READ)
                running[pipe] = Running(process, asked["number"])


def compile_small(target: GPUTarget) -> None:
    """Compile a small kernel, so that forked processes inherit the modules that this imports."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        with contextlib.suppress(Exception):  # the first request will report the error
            compile_one(SMALL, target)


def import_by_folder(name: str, folder: Path) -> None:
    """Make modules of a package importable without importing the package itself."""
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package


def start(asked: dict[str, Any]) -> tuple[int, int]:
    """Start a process that compiles a kernel; return it and the pipe for the path of the metadata.

    The pipe closes when the process ends.
    """
    from inductor_lab.compiler.codegen.triton.function import compiled_device

    for name in [name for name in os.environ if name.startswith("TRITON_")]:
        del os.environ[name]
    os.environ.update(asked["environment"])
    target = GPUTarget(*asked["target"])
    make_backend(target).hash()  # reads the version of the assembler, once for all processes
    compiled_device()
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        status = 1
        try:
            os.write(writing, compile_one(asked, target).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    return process, reading


def compile_one(asked: dict[str, Any], target: GPUTarget) -> str:
    """Compile a kernel to Triton's cache, and return the path of its metadata."""
    from inductor_lab.compiler.codegen.triton.function import jit_function, metadata_file, source

    function = jit_function(asked["text"], asked["name"])
    written = source(function, asked["types"], asked["constants"])
    compiled = triton.compile(written, target=target, options=asked["options"])
    return str(metadata_file(compiled))


if __name__ == "__main__":
    serve(int(sys.argv[1]), GPUTarget(*json.loads(sys.argv[2])))
