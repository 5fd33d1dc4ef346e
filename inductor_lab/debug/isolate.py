"""Run something where it cannot hurt: in a copy of this process, with a limit.

A kernel that is wrong may end its process, or never end.  So what may do that runs in a fork of
this one: it has everything that is here, closures and tensors and lambdas of a notebook, and
starts in milliseconds.  The work runs in a new thread of the copy, where OpenMP makes a pool of
threads anew: the old pool's threads are not in the copy.  It has the settings of the thread that
asks for it (`thread_state.py`).

Where a process cannot be forked (Windows, or once CUDA is in use) the work runs here.
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
from typing import IO, Any, Literal, TypeAlias

import torch

from inductor_lab.compiler.base.thread_state import ThreadState

Tell: TypeAlias = Callable[[Any], None]
"""Sends a message to the process that waits."""

Work: TypeAlias = Callable[[Tell], Any]
"""What is done apart; its result, and what it tells, must be picklable."""

How = Literal["returned", "raised", "crashed", "hung"]
STACK = 256 << 20
"""Bytes of stack for the thread that works: Dynamo recurses deeply."""
LAST_WORDS = 4000
"""Characters that are kept of what a process printed."""


@dataclass(frozen=True)
class Ended:
    """How a piece of work ended.

    value    what it returned, or the exception's own words
    kind     the exception's class, or the signal that ended the process
    told     its messages, in order
    printed  the end of what it wrote to its outputs
    """

    how: How
    value: Any = None
    kind: str = ""
    told: tuple[Any, ...] = ()
    seconds: float = 0.0
    printed: str = ""

    def __str__(self) -> str:
        said = {
            "returned": "returned",
            "raised": f"raised {self.kind}: {self.value}",
            "crashed": f"ended by {self.kind}",
            "hung": f"still running after {self.seconds:.0f} s",
        }
        return said[self.how]


def can_fork() -> bool:
    """Can a copy of this process compute?"""
    return hasattr(os, "fork") and not torch.cuda.is_initialized()


def apart(work: Work, limit: float = 120.0) -> Ended:
    """Do one piece of work in a process of its own, for at most `limit` seconds."""
    for _, ended in all_apart([work], limit, jobs=1):
        return ended
    raise AssertionError("one piece of work has one end")


def all_apart(
    works: Iterable[Work], limit: float = 120.0, jobs: int = 2
) -> Iterator[tuple[int, Ended]]:
    """Do them all, `jobs` at a time; each with its number, as they end.

    Closing the iterator, or an exception here (Ctrl-C), ends what still runs.
    """
    if not can_fork():
        for number, work in enumerate(works):
            yield number, _here(work)
        return
    waiting = iter(enumerate(works))
    running: list[_Process] = []
    try:
        while True:
            while len(running) < jobs and (following := next(waiting, None)) is not None:
                running.append(_Process(*following, limit))
            if not running:
                return
            for process in _heard(running):
                running.remove(process)
                yield process.number, process.end()
    finally:
        for process in running:
            process.kill()
            process.end()


def _here(work: Work) -> Ended:
    started, told = time.monotonic(), list[Any]()
    try:
        value = work(told.append)
    except Exception as error:
        took = time.monotonic() - started
        return Ended("raised", str(error), type(error).__name__, tuple(told), took)
    return Ended("returned", value, "", tuple(told), time.monotonic() - started)


def _heard(running: list[_Process]) -> list[_Process]:
    """Wait for messages; the processes that are done, or have been long enough."""
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
    """A copy of this process that does one piece of work."""

    def __init__(self, number: int, work: Work, limit: float) -> None:
        self.number = number
        self.started = time.monotonic()
        self.deadline = self.started + limit
        self.hung = False
        self.heard = bytearray()
        self.printed: IO[bytes] = tempfile.TemporaryFile()
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
            self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            _work(work, writer, self.printed.fileno())
        os.close(writer)
        self.pipe = reader

    def read(self) -> bool:
        """Take what has come; False at the end."""
        piece = os.read(self.pipe, 1 << 20)
        self.heard += piece
        return bool(piece)

    def kill(self) -> None:
        """End it, with the compilers that it may have started."""
        for end in (os.killpg, os.kill):
            try:
                end(self.pid, signal.SIGKILL)
                return
            except (ProcessLookupError, PermissionError):
                continue

    def end(self) -> Ended:
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pipe)
        took = time.monotonic() - self.started
        self.printed.seek(0)
        printed = self.printed.read().decode(errors="replace")[-LAST_WORDS:]
        self.printed.close()
        messages = list(_messages(bytes(self.heard)))
        last = messages.pop() if messages and messages[-1][0] != "told" else None
        told = tuple(message for _, message in messages)
        if last is not None:
            how, (value, kind) = last
            return Ended(how, value, kind, told, took, printed)
        if self.hung:
            return Ended("hung", None, "", told, took, printed)
        code = os.waitstatus_to_exitcode(status)
        kind = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return Ended("crashed", None, kind, told, took, printed)


def _messages(heard: bytes) -> Iterator[tuple[Any, Any]]:
    """What came as `length, pickle`; an unfinished one is left out."""
    place = 0
    while place + 8 <= len(heard):
        length = int.from_bytes(heard[place : place + 8], "little")
        whole = heard[place + 8 : place + 8 + length]
        if len(whole) < length:
            return
        yield pickle.loads(whole)
        place += 8 + length


def _work(work: Work, writer: int, printed: int) -> None:
    """What the copy does; it never returns."""
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

    def do() -> None:
        try:
            value = state.run(lambda: work(lambda message: send("told", message)))
            send("returned", (value, ""))
        except BaseException as error:
            traceback.print_exc()
            send("raised", (str(error), type(error).__name__))

    threading.stack_size(STACK)
    thread = threading.Thread(target=do)
    thread.start()
    thread.join()
    sys.stdout.flush()
    os._exit(0)
