"""What ranks of a process group tell one another when one of them fails.

    rank 0   in a collective: "Connection closed by peer"   →   RankFailed: rank 1 could not compile
    rank 1   could not compile, and has left word in the store of the process group

Each rank leaves there who it is (host and process), too; so one that was killed can be named.
Nothing is asked, and nobody is waited for, as long as all goes well.
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
"""Keys of the store, by rank: why it could not go on; its host and process."""


def is_one_of_many() -> bool:
    """Does this process belong to a process group of several?"""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def tell_of(problem: Exception) -> None:
    """Leave a message for the other ranks that this one cannot go on."""
    if is_one_of_many():
        with suppress(RuntimeError):  # the store is gone with the rank that held it
            _store().set(FAILED.format(dist.get_rank()), str(problem))


def introduce() -> None:
    """Tell the other ranks who we are, before anything can go wrong."""
    if is_one_of_many():
        with suppress(RuntimeError):
            _store().set(PROCESS.format(dist.get_rank()), f"{socket.gethostname()} {os.getpid()}")


def _store() -> Any:
    """Where the ranks of all processes together have found one another."""
    world = dist.group.WORLD
    assert world is not None, "asked of one of many ranks alone"
    return world.get_group_store()


class Collectives:
    """In place of `torch.ops._c10d_functional` in a host program, or of something in it: the same,
    with errors that say which rank has failed."""

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
            failed = _failed_soon() if is_one_of_many() else []
            if not failed:
                raise
            what = f"rank {dist.get_rank()} was in a collective, and {failed[0]}"
            todo = "what the other rank has printed says more"
            raise RankFailed(what, "\n  ".join(failed[1:]), todo) from problem


def _failed_soon() -> list[str]:
    """What is known of failed ranks: a process ends a moment after its connections are closed."""
    for wait in (0.0, 0.1, 0.3, 0.6):
        time.sleep(wait)
        if failed := list(_failed()):
            return failed
    return []


def _failed() -> Iterator[str]:
    """What is known of failed ranks, some words for each."""
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
    """Is a process of this machine at work, and no zombie whose parent has not asked for it?"""
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's, or there is no /proc
        return True
    return state != "Z"
