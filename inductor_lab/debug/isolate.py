"""Run work isolated, in a fork of this process, with a time limit.

A wrong kernel may crash its process or never return, so such work runs in a fork.  A fork has all
objects of this process, including closures, tensors and lambdas of a notebook, and it starts in
milliseconds.  The work runs in a new thread of the fork, because the threads of OpenMP's pool do
not exist there and a new thread creates a new pool.  That thread has the torch settings of the
calling thread (`thread_state.py`).  Stock's worker threads do not exist there either.

Where a fork is impossible (on Windows, once CUDA is in use, or if forks cannot run a backward), the
work runs in this process.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import select
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import IO, Any, Literal, TypeAlias

from inductor_lab.compiler.base.thread_state import ThreadState, small_backward
from inductor_lab.compiler.torch_door.torch_types import INSTALLED, torch
from inductor_lab.stock.processes import without_workers

Tell: TypeAlias = Callable[[Any], None]
"""Sends a message to the parent process."""

Work: TypeAlias = Callable[[Tell], Any]
"""A function to run isolated; its result and its messages must be picklable."""

How = Literal["returned", "raised", "crashed", "hung", "stopped"]
Started: TypeAlias = Callable[[Callable[[], None]], None]
"""Gets the function that stops a running process; another thread may call it."""
STACK = 256 << 20
"""Stack size in bytes of the thread that runs the work: Dynamo recurses deeply."""
LAST_WORDS = 4000
"""Number of characters kept from the end of a process's output."""


@dataclass(frozen=True)
class Ended:
    """How the work ended.

    value     its return value, or the exception's message
    kind      the exception's class, or the signal that ended the process
    messages  the messages that it sent, in order
    printed   the end of its output
    """

    how: How
    value: Any = None
    kind: str = ""
    messages: tuple[Any, ...] = ()
    seconds: float = 0.0
    printed: str = ""

    def __str__(self) -> str:
        said = {
            "returned": "returned",
            "raised": f"raised {self.kind}: {self.value}",
            "crashed": f"ended by {self.kind}",
            "hung": f"still running after {self.seconds:.0f} s",
            "stopped": f"stopped after {self.seconds:.0f} s",
        }
        return said[self.how]


def can_fork() -> bool:
    """Can this process be forked, and can the fork compute?"""
    if not INSTALLED or not hasattr(os, "fork"):
        return False
    return not torch.cuda.is_initialized() and _forks_have_gradients()


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
        return os.fork()


@cache
def _forks_have_gradients() -> bool:
    """Can a fork run a backward?  (`thread_state.start_autograd` says when it cannot.)"""
    small_backward()  # autograd starts here if it has not: the answer does not change later
    pid = _fork()
    if pid == 0:
        try:
            small_backward()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def run_isolated(work: Work, limit: float = 120.0, started: Started | None = None) -> Ended:
    """Run `work` in its own process for at most `limit` seconds."""
    for _, ended in run_all_isolated([work], limit, jobs=1, started=started):
        return ended
    raise AssertionError("one function ends once")


def run_all_isolated(
    works: Iterable[Work], limit: float = 120.0, jobs: int = 2, started: Started | None = None
) -> Iterator[tuple[int, Ended]]:
    """Run all `works`, `jobs` at a time; yields the index and the end of each when it ends.

    Closing the iterator, or an exception here (Ctrl-C), kills the processes that still run.
    """
    if not can_fork():
        for number, work in enumerate(works):
            yield number, _run_here(work)
        return
    waiting = iter(enumerate(works))
    running: list[_Process] = []
    try:
        while True:
            while len(running) < jobs and (following := next(waiting, None)) is not None:
                running.append(_Process(*following, limit))
                if started is not None:
                    started(running[-1].stop)
            if not running:
                return
            for process in _wait(running):
                running.remove(process)
                yield process.number, process.end()
    finally:
        for process in running:
            process.kill()
            process.end()


def _run_here(work: Work) -> Ended:
    started, found = time.monotonic(), list[Any]()
    try:
        value = work(found.append)
    except Exception as error:
        took = time.monotonic() - started
        return Ended("raised", str(error), type(error).__name__, tuple(found), took)
    return Ended("returned", value, "", tuple(found), time.monotonic() - started)


def _wait(running: list[_Process]) -> list[_Process]:
    """Wait for messages; returns the processes that ended or reached their time limit."""
    now = time.monotonic()
    left = min(process.deadline - now for process in running)
    ready, _, _ = select.select([p.pipe for p in running], [], [], max(left, 0.0))
    done = [process for process in running if process.pipe in ready and not process.read()]
    for process in running:
        if process not in done and time.monotonic() >= process.deadline:
            process.hung = True
            process.kill()
            done.append(process)
    return done


class _Process:
    """A fork of this process that runs one function."""

    def __init__(self, number: int, work: Work, limit: float) -> None:
        self.number = number
        self.started = time.monotonic()
        self.deadline = self.started + limit
        self.hung = self.stopped = False
        self.received = bytearray()
        self.lock, self.ended = threading.Lock(), False
        self.printed: IO[bytes] = tempfile.TemporaryFile()
        reader, writer = os.pipe()
        self.pid = _fork()
        if self.pid == 0:
            os.close(reader)
            _run_in_fork(work, writer, self.printed.fileno())
        os.close(writer)
        self.pipe = reader

    def read(self) -> bool:
        """Read available bytes; returns False at the end of the pipe."""
        piece = os.read(self.pipe, 1 << 20)
        self.received += piece
        return bool(piece)

    def stop(self) -> None:
        """Kill the process on behalf of the user; nothing happens if it has ended."""
        with self.lock:
            if not self.ended:
                self.stopped = True
                self.kill()

    def kill(self) -> None:
        """Kill the process and the compilers that it started."""
        for end in (os.killpg, os.kill):
            try:
                end(self.pid, signal.SIGKILL)
                return
            except (ProcessLookupError, PermissionError):
                continue

    def end(self) -> Ended:
        with self.lock:
            self.ended = True  # its number may soon be that of another process
            _, status = os.waitpid(self.pid, 0)
        os.close(self.pipe)
        took = time.monotonic() - self.started
        self.printed.seek(0)
        printed = self.printed.read().decode(errors="replace")[-LAST_WORDS:]
        self.printed.close()
        received = list(_messages(bytes(self.received)))
        last = received.pop() if received and received[-1][0] != "message" else None
        found = tuple(message for _, message in received)
        if last is not None:
            how, (value, kind) = last
            return Ended(how, value, kind, found, took, printed)
        if self.hung or self.stopped:
            return Ended("stopped" if self.stopped else "hung", None, "", found, took, printed)
        code = os.waitstatus_to_exitcode(status)
        kind = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return Ended("crashed", None, kind, found, took, printed)


def _messages(received: bytes) -> Iterator[tuple[Any, Any]]:
    """Messages received as `length, pickle`; an incomplete last one is dropped."""
    place = 0
    while place + 8 <= len(received):
        length = int.from_bytes(received[place : place + 8], "little")
        content = received[place + 8 : place + 8 + length]
        if len(content) < length:
            return
        yield pickle.loads(content)
        place += 8 + length


def _run_in_fork(work: Work, writer: int, printed: int) -> None:
    """Run the work in the fork and exit; never returns."""
    os.setpgid(0, 0)
    faulthandler.disable()
    for output in (1, 2):
        os.dup2(printed, output)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1)
    state = ThreadState.now()

    def send(how: str, what: Any) -> None:
        message = pickle.dumps((how, what))
        message = len(message).to_bytes(8, "little") + message
        while message:
            message = message[os.write(writer, message) :]

    def prepared() -> Any:
        without_workers()
        return work(lambda message: send("message", message))

    def run() -> None:
        try:
            send("returned", (state.run(prepared), ""))
        except BaseException as error:
            traceback.print_exc()
            send("raised", (str(error), type(error).__name__))

    threading.stack_size(STACK)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    sys.stdout.flush()
    os._exit(0)
