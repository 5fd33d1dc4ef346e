"""Compilers run in threads of their own, while Python goes on tracing and lowering.

The C++ compiler is a program of its own, and most of Triton's needs no Python: they work on a
graph's kernels while Python traces, lowers and schedules the next graph (a forward's while its
backward is lowered).

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
"""Jobs at a time."""
_ENDED = threading.Event()


class Ahead(Generic[T]):
    """The value of `make()`, which a thread computes, or will when one is free."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make, self._process = make, os.getpid()
        self._made: list[T] = []
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
        self._thread.start()

    def wait(self) -> T:
        """The value; raises what `make` has raised.

        After a problem the next `wait` makes it here and now, and
        so does a forked process, which has no such thread.
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
        except SystemError:  # threads that parse at once confuse Python up to 3.12: `wait` makes it
            return
        except BaseException as problem:  # raised where it is waited for
            self._problem = problem


@atexit.register
def _end_all() -> None:
    """Python exits: values that were not asked for are dropped."""
    _ENDED.set()
    end_compilers()
    wait_for_all()


def wait_for_all() -> None:
    """Wait until no job runs: what is timed next has the processor for itself."""
    for thread in threading.enumerate():
        if thread.name == NAME:
            thread.join()
