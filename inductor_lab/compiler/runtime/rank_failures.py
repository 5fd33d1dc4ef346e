"""Reports which rank of a process group failed to the other ranks.

    rank 0   in a collective: "Connection closed by peer"   →   RankFailed: rank 1 could not compile
    rank 1   could not compile, and has written this to the store of the process group

Each rank also writes its host and process to the store, so that a killed rank can be named.  If
there is no failure, no rank reads the store or waits for another.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch.distributed as dist

from inductor_lab.compiler.base.errors import RankFailed

FAILED, PROCESS = "inductor_lab/failed/{}", "inductor_lab/process/{}"
"""The keys in the store for each rank: why it failed; its host and process."""


def has_other_ranks() -> bool:
    """Does this process belong to a process group with several ranks?"""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def report_failure(problem: Exception) -> None:
    """Write to the store that this rank has failed."""
    if has_other_ranks():
        with suppress(RuntimeError):  # the store is gone with the rank that held it
            _store().set(FAILED.format(dist.get_rank()), str(problem))


def register_rank() -> None:
    """Write the host and process of this rank to the store."""
    if has_other_ranks():
        with suppress(RuntimeError):
            _store().set(PROCESS.format(dist.get_rank()), f"{socket.gethostname()} {os.getpid()}")


def _store() -> Any:
    """Return the store of the default process group."""
    world = dist.group.WORLD
    assert world is not None, "there is no process group"
    return world.get_group_store()


class Collectives:
    """Wraps `torch.ops._c10d_functional` (or an operator in it): errors name the failed rank."""

    def __init__(self, torchs: Any) -> None:
        self.torchs = torchs

    def __getattr__(self, name: str) -> Collectives:
        found = Collectives(getattr(self.torchs, name))
        setattr(self, name, found)
        return found

    def __str__(self) -> str:
        return str(self.torchs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.torchs(*args, **kwargs)
        except RuntimeError as problem:
            failed = _failed_soon() if has_other_ranks() else []
            if not failed:
                raise
            what = f"rank {dist.get_rank()} was in a collective, and {failed[0]}"
            todo = "see the output of the other rank"
            raise RankFailed(what, "\n  ".join(failed[1:]), todo) from problem


def _failed_soon() -> list[str]:
    """Find failed ranks.  Retries, because a process ends shortly after its connections close."""
    for wait in (0.0, 0.1, 0.3, 0.6):
        time.sleep(wait)
        if failed := list(_failed()):
            return failed
    return []


def _failed() -> Iterator[str]:
    """Yield a description of each failed rank."""
    store = _store()
    for rank in sorted({*range(dist.get_world_size())} - {dist.get_rank()}):
        failed, process = FAILED.format(rank), PROCESS.format(rank)
        with suppress(RuntimeError):
            if store.check([failed]):
                yield f"rank {rank} could not go on: {store.get(failed).decode()}"
            elif store.check([process]):
                host, number = store.get(process).decode().split()
                if host == socket.gethostname() and not _is_running(int(number)):
                    yield f"rank {rank}, process {number}, has ended"


def _is_running(process: int) -> bool:
    """Is a process on this machine running, and not a zombie?"""
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except OSError:  # the process belongs to another user, or there is no /proc
        return True
    return state != "Z"
