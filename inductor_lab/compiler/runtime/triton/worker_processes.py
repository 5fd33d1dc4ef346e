"""Compiles Triton kernels in worker processes, because of Python's global interpreter lock.

    kernel ──request──> triton_worker.py ──forks──> triton.compile ──> Triton's cache on disk

The thread of a kernel waits for the answer, which has the path of the machine code.  If the worker
is not ready yet, or cannot be started, the kernel is compiled in this process.

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
    """A worker process, which forks a process for each kernel; `target` is the first GPU."""

    def __init__(self, at_once: int, target: GPUTarget) -> None:
        self._here = os.getpid()
        self._lock = threading.Lock()
        self._answers: dict[int, Future[str]] = {}
        self._ready = self._ended = False
        command = [sys.executable, "-P", triton_worker.__file__, str(at_once)]
        command.append(json.dumps(_as_list(target)))
        # Ctrl-C in a terminal must not reach the worker.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            env=dict(os.environ, PYTHONPATH=_with_triton()),
        )  # fmt: skip
        assert self._process.stdin is not None
        self._input = self._process.stdin
        threading.Thread(target=self._listen, name="inductor_lab, compiled", daemon=True).start()

    def compile(self, asked: Mapping[str, Any]) -> str:
        """Compile a kernel, and return the path of Triton's metadata, or "" if this failed."""
        if self.ended or not self._ready:
            return ""
        number, answer = next(_NUMBERS), Future[str]()
        line = json.dumps({**asked, "number": number}) + "\n"
        with self._lock:
            if self._ended:
                return ""
            self._answers[number] = answer
            with contextlib.suppress(OSError):  # the worker has ended: `_listen` answers ""
                self._input.write(line.encode())
                self._input.flush()
        return answer.result()

    @property
    def ended(self) -> bool:
        """Has the worker ended, or does it belong to the parent of this forked process?"""
        return self._ended or os.getpid() != self._here

    @property
    def can_restart(self) -> bool:
        """Should a new worker be started?  Not if this one never became ready."""
        return self.ended and self._ready

    def end(self) -> None:
        """Close the input of the worker, and wait for its end."""
        with self._lock:
            self._ended = True
            with contextlib.suppress(OSError):
                self._input.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS_TO_END)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        self._ready = self._process.stdout.readline() == triton_worker.READY
        with contextlib.suppress(ValueError):  # an incomplete line of a killed worker
            for line in self._process.stdout:
                number, path = json.loads(line)
                with self._lock:
                    self._answers.pop(number).set_result(path)
        with self._lock:
            self._ended = True
            for answer in self._answers.values():
                answer.set_result("")
        self._process.wait()


def _with_triton() -> str:
    """Return PYTHONPATH with the folder from which this process has imported Triton."""
    folders = [os.environ.get("PYTHONPATH", ""), str(Path(triton.__file__).parents[1])]
    return os.pathsep.join(filter(None, folders))


_PROCESSES: list[Processes] = []
_STARTING = threading.Lock()


def processes(target: GPUTarget) -> Processes | None:
    """Return the worker of this process, started at the first call; None if it cannot start."""
    with _STARTING:
        if not _PROCESSES or _PROCESSES[-1].can_restart:
            with contextlib.suppress(OSError):
                _PROCESSES[:] = [Processes(min(MOST_PROCESSES, os.cpu_count() or 1), target)]
        return _PROCESSES[-1] if _PROCESSES else None


@atexit.register
def _end_all() -> None:
    for process in _PROCESSES:
        if not process.ended:
            process.end()


def request(kernel: Kernel, target: GPUTarget) -> dict[str, Any]:
    """Return everything that a worker needs to compile a kernel."""
    return {
        "text": module_text(kernel), "name": kernel.name, "types": types_of(kernel),
        "constants": constants_of(kernel), "options": compile_options(kernel),
        "target": _as_list(target),
        "environment": {k: v for k, v in os.environ.items() if k.startswith("TRITON_")},
    }  # fmt: skip


def _as_list(target: GPUTarget) -> list[Any]:
    return [target.backend, target.arch, target.warp_size]
