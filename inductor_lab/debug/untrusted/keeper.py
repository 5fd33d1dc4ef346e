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
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

from inductor_lab.debug.untrusted.confine import ADOPT_ORPHANS, Limits, control

LOOKS = 0.02
"""Seconds from one look at the processes to the next."""
WEIGHED = 0.5
"""Seconds from one look at their memory to the next."""
STOPPED = ("closed", "time", "memory")
"""Reasons to end a process that still runs."""
PATIENCE = 10.0
"""Seconds for killed processes to go away."""


def keep(run: Callable[[], NoReturn], limits: Limits, life: int, status: int) -> NoReturn:
    """Fork `run` and wait; writes how it ended to `status`.  For a process of its own."""
    control(ADOPT_ORPHANS, 1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        run()
    try:
        how = _wait(child, limits, life)
        if how in STOPPED:
            os.kill(child, signal.SIGKILL)
        end_descendants()
        os.write(status, how.encode())
    finally:
        os._exit(0)


def _wait(child: int, limits: Limits, life: int) -> str:
    """`exit 0`, `signal 9`, `processor time`, or one of STOPPED."""
    deadline = time.monotonic() + limits.whole
    weigh = time.monotonic() + WEIGHED
    begins = _memory([child])
    while True:
        closed, _, _ = select.select([life], [], [], LOOKS)
        if closed:
            return "closed"
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
            if _memory([child, *descendants(os.getpid())]) > begins + limits.memory:
                return "memory"
        _reap(child)


def _reap(spared: int) -> None:
    """Forget adopted children that have ended; `spared` is waited for elsewhere."""
    for pid in _children().get(os.getpid(), ()):
        if pid != spared:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue


def end_descendants() -> None:
    """Kill all descendants of this process, also those that start while it kills."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            time.sleep(0.002)


def descendants(pid: int) -> Iterator[int]:
    """Children, their children, and so on; none where there is no /proc."""
    children = _children()
    waiting = list(children.get(pid, ()))
    while waiting:
        one = waiting.pop()
        yield one
        waiting += children.get(one, ())


def children(pid: int) -> list[int]:
    """The processes that a process has started; none where there is no /proc."""
    return _children().get(pid, [])


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for name in filter(str.isdigit, names):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        found.setdefault(parent, []).append(int(name))
    return found


def _memory(pids: list[int]) -> int:
    """Bytes that processes have for themselves alone, about."""
    pages = 0
    for pid in set(pids):
        try:
            with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                _, resident, shared, *_ = map(int, file.read().split())
        except (OSError, ValueError):
            continue
        pages += resident - shared
    return pages * os.sysconf("SC_PAGE_SIZE")
