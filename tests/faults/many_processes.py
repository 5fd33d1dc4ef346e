"""Many processes share a cache, and some are killed while compiling."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from tests.faults import jobs
from tests.faults.child import Setting, attempt, caches, server_context
from tests.faults.outcome import DEFECT, OK, Tried
from tests.faults.plan import Plan

LEFT_BEHIND = 8 << 20
"""Maximum bytes that killed processes may leave after another process has finished."""


def tries(plan: Plan) -> Iterator[Tried]:
    yield from at_once(plan)
    yield from killed(plan)


def at_once(plan: Plan) -> Iterator[Tried]:
    """Twelve processes compile the same functions concurrently, three times."""
    count = plan.times(12, 3)
    for turn in range(plan.times(3, 1)):
        setting = caches(plan.place(f"shared{turn}"))
        with ThreadPoolExecutor(count) as pool:
            done = list(pool.map(attempt, [setting] * count, [jobs.both] * count))
        for found, said in done:
            yield Tried("several processes at once", found if found == OK else DEFECT, said)


def killed(plan: Plan) -> Iterator[Tried]:
    """`kill -9` at a random moment of a compile; then the same compile works, with that cache."""
    chance = plan.random()
    setting = caches(plan.place("killed"))
    folder = plan.folder / "killed"
    for _ in range(plan.times(60, 3)):
        seconds = chance.uniform(0.0, 2.5)
        found, said = killed_after(setting, seconds)
        yield Tried("kill -9 at a random moment of a compile", found, said)
    left = sum(path.stat().st_size for path in (folder / "tmp").rglob("*") if path.is_file())
    what = f"{left} bytes are left in the temporary folder"
    yield Tried("what killed processes leave", OK if left < LEFT_BEHIND else DEFECT, what)


def killed_after(setting: Setting, seconds: float) -> tuple[str, str]:
    process = server_context().Process(target=doomed, args=(setting,), daemon=True)
    process.start()
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
        os.killpg(process.pid, signal.SIGKILL)  # its C++ compiler too, if it has begun one
    process.join()
    found, said = attempt(setting, jobs.both)
    return found if found == OK else DEFECT, f"after {seconds:.3f} s: {said}"


def doomed(setting: Setting) -> None:
    """Compiles in a group of its own until it is killed."""
    os.setsid()
    setting.apply()
    jobs.both()
    jobs.learn()
