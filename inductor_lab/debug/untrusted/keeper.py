"""The process between the side that judges and the untrusted code.

It forks the untrusted process, waits, and ends the whole tree: also descendants in new sessions,
which become its children when their parents end (a subreaper, prctl(2)).  The tree ends when the
untrusted process does, when the other side closes its end of the pipe `life` (or dies), when the
time is over, and when the processes together have too much memory.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import NoReturn

from inductor_lab.debug.untrusted.confine import ADOPT_ORPHANS, Limits, control
from inductor_lab.debug.untrusted.processes import answer, descendants

LOOKS = 0.02
"""Seconds from one look at the processes to the next."""
WEIGHED = 0.5
"""Seconds from one look at their memory to the next."""
STOPPED = ("closed", "time", "memory")
"""Reasons to end a process that still runs."""
PATIENCE = 10.0
"""Seconds for killed processes to go away."""


def keep(
    run: Callable[[], NoReturn], limits: Limits, life: int, status: int,
    listening: socket.socket | None = None,
) -> NoReturn:  # fmt: skip
    """Fork `run` and wait; writes how it ended to `status`.  For a process of its own.

    `listening` is where it answers questions about its descendants (processes.py).
    """
    control(ADOPT_ORPHANS, 1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        run()
    try:
        how = _wait(child, limits, life, listening)
        if how in STOPPED:
            os.kill(child, signal.SIGKILL)
        end_descendants()
        os.write(status, how.encode())
    finally:
        os._exit(0)


def _wait(child: int, limits: Limits, life: int, listening: socket.socket | None) -> str:
    """`exit 0`, `signal 9`, `processor time`, or one of STOPPED."""
    deadline = time.monotonic() + limits.whole
    weigh = time.monotonic() + WEIGHED
    begins = _memory()
    ends = [life] if listening is None else [life, listening.fileno()]
    while True:
        ready, _, _ = select.select(ends, [], [], LOOKS)
        if life in ready:
            return "closed"
        if ready and listening is not None:
            answer(listening)
        _forget_adopted(child)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            if code == -signal.SIGXCPU:
                return "processor time"
            return f"exit {code}" if code >= 0 else f"signal {-code}"
        now = time.monotonic()
        if now >= deadline:
            return "time"
        if now >= weigh:
            weigh = now + WEIGHED
            if _memory() > begins + limits.memory:
                return "memory"


def _forget_adopted(child: int) -> None:
    """Wait for adopted children that have ended; `child` is waited for elsewhere."""
    if not hasattr(os, "waitid"):
        return
    while True:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None or ended.si_pid == child:
            return
        os.waitpid(ended.si_pid, 0)


def end_descendants() -> None:
    """Kill all descendants of this process, also those that start while it kills."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for each in descendants(os.getpid()):
            try:
                os.kill(each.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            time.sleep(0.002)


def _memory() -> int:
    """Bytes that all descendants of this process have for themselves alone, about."""
    return sum(each.nbytes for each in descendants(os.getpid()))
