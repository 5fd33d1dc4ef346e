"""Triton kernels are compiled in other processes, for Python runs one thread at a time.

    kernel ──asked_for──> triton_worker.py ──forks──> triton.compile ──> Triton's folder on disk

A kernel's thread waits for the answer, which says where the machine code is.  Where the other
process is not ready yet, or none can be, it is compiled here: no answer is no error.

Inductor: `compile_worker/subproc_pool.py`.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget

from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.triton.kernel_module import (
    compile_options,
    constants_of,
    module_text,
    types_of,
)
from inductor_lab.compiler.runtime.triton import triton_worker

MOST_PROCESSES = 8
SECONDS_TO_END = 1.0
_NUMBERS = itertools.count()


class Processes:
    """A process that forks others, each of which compiles a kernel, at first for this GPU."""

    def __init__(self, at_once: int, target: GPUTarget) -> None:
        self._here = os.getpid()
        self._lock = threading.Lock()
        self._answers: dict[int, Future[str]] = {}
        self._ready = self._ended = False
        command = [sys.executable, "-P", triton_worker.__file__, str(at_once)]
        command.append(json.dumps(_as_list(target)))
        # Control-C in a terminal is for the one who waits there.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            env=dict(os.environ, PYTHONPATH=_with_triton()),
        )  # fmt: skip
        assert self._process.stdin is not None
        self._input = self._process.stdin
        threading.Thread(target=self._listen, name="inductor_lab, compiled", daemon=True).start()

    def compile(self, asked: Mapping[str, Any]) -> str:
        """The file on disk in which Triton describes the kernel; "" if it will not be there."""
        if self.ended or not self._ready:
            return ""
        number, answer = next(_NUMBERS), Future[str]()
        line = json.dumps({**asked, "number": number}) + "\n"
        with self._lock:
            if self._ended:
                return ""
            self._answers[number] = answer
            with contextlib.suppress(OSError):  # it has ended: `_listen` says so
                self._input.write(line.encode())
                self._input.flush()
        return answer.result()

    @property
    def ended(self) -> bool:
        """Also in a process that was forked from the one which started it."""
        return self._ended or os.getpid() != self._here

    @property
    def may_follow(self) -> bool:
        """Is there use for another one?  Where this one has never worked, another will not."""
        return self.ended and self._ready

    def end(self) -> None:
        """Ask for nothing more."""
        with self._lock:
            self._ended = True
            with contextlib.suppress(OSError):
                self._input.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS_TO_END)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        self._ready = self._process.stdout.readline() == triton_worker.READY
        with contextlib.suppress(ValueError):  # half a line of one that was killed
            for line in self._process.stdout:
                number, told = json.loads(line)
                with self._lock:
                    self._answers.pop(number).set_result(told)
        with self._lock:
            self._ended = True
            for answer in self._answers.values():
                answer.set_result("")
        self._process.wait()


def _with_triton() -> str:
    """Python's path, with the folder that this process has Triton from."""
    folders = [os.environ.get("PYTHONPATH", ""), str(Path(triton.__file__).parents[1])]
    return os.pathsep.join(filter(None, folders))


_PROCESSES: list[Processes] = []
_STARTING = threading.Lock()


def processes(target: GPUTarget) -> Processes | None:
    """Those of this process, started at the first call; None where none can be started."""
    with _STARTING:
        if not _PROCESSES or _PROCESSES[-1].may_follow:
            with contextlib.suppress(OSError):
                _PROCESSES[:] = [Processes(min(MOST_PROCESSES, os.cpu_count() or 1), target)]
        return _PROCESSES[-1] if _PROCESSES else None


@atexit.register
def _end_all() -> None:
    for process in _PROCESSES:
        if not process.ended:
            process.end()


def asked_for(kernel: Kernel, target: GPUTarget) -> dict[str, Any]:
    """All that another process must know to compile a kernel."""
    return {
        "text": module_text(kernel), "name": kernel.name, "types": types_of(kernel),
        "constants": constants_of(kernel), "options": compile_options(kernel),
        "target": _as_list(target),
        "environment": {k: v for k, v in os.environ.items() if k.startswith("TRITON_")},
    }  # fmt: skip


def _as_list(target: GPUTarget) -> list[Any]:
    return [target.backend, target.arch, target.warp_size]
