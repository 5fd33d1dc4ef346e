"""Runs compilers in threads while Python continues with tracing and lowering.

The C++ compiler is a separate program, and most of Triton's compiler releases the GIL.  They can
compile the kernels of a graph while Python traces, lowers and schedules the next graph (for
example, the forward's kernels while the backward is lowered).

Inductor: `async_compile.py`.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from inductor_lab.compiler.runtime.toolchain.find_compiler import end_compilers

T = TypeVar("T")
NAME = "inductor_lab, made ahead"
AT_ONCE = threading.BoundedSemaphore(os.cpu_count() or 1)
"""Limits the number of jobs that run at the same time."""
_ENDED = threading.Event()


class BackgroundValue(Generic[T]):
    """The value of `make()`, which a thread computes as soon as one is free."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make, self._process = make, os.getpid()
        self._made: list[T] = []
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
        self._thread.start()

    def wait(self) -> T:
        """Return the value, or raise the exception that `make` raised.

        After an exception, the next `wait` computes the value in its own thread.  So does a forked
        process, which does not have the thread.
        """
        if os.getpid() == self._process:
            self._thread.join()
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem
        if not self._made:
            self._made.append(self._make())
        return self._made[0]

    def _run(self) -> None:
        try:
            with AT_ONCE:
                if not _ENDED.is_set():
                    self._made.append(self._make())
        except SystemError:  # Python up to 3.12 fails if threads parse concurrently: `wait` retries
            return
        except BaseException as problem:  # `wait` raises it
            self._problem = problem


@atexit.register
def _end_all() -> None:
    """Stop all jobs when Python exits."""
    _ENDED.set()
    end_compilers()
    wait_for_all()


def wait_for_all() -> None:
    """Wait until no job runs, so that jobs do not disturb measurements."""
    for thread in threading.enumerate():
        if thread.name == NAME:
            thread.join()
