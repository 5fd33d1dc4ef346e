"""Processes that form a process group on this machine, over gloo or over NCCL."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.distributed.programs import CACHES
from tests.processes import Clock, Lost, messages, server

PRELOAD = "tests.distributed.warm"
LIMIT = timedelta(seconds=60)


def results_of(
    size: int,
    work: Callable[..., Any],
    *arguments: Any,
    cache: Path | None = None,
    backend: str = "gloo",
) -> list[Any]:
    """The result of `work(*arguments)` on each rank; the text of its error, or a Lost, if it fails.

    Its processes share a cache of their own, which is empty at first, or the one given.  With NCCL
    each has a GPU, and begins anew: one that was forked cannot use it.
    """
    fresh = backend == "nccl"
    context = multiprocessing.get_context("spawn") if fresh else server(PRELOAD)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(size) as threads:
        places = folder, str(cache or folder)
        ranks = [(backend, places, rank, size, work, arguments) for rank in range(size)]
        heard = threads.map(lambda rank: list(messages(context, _rank, rank, 150, Clock())), ranks)
        return [said[0] for said in heard]


def _rank(
    send: Callable[[Any], None],
    backend: str,
    places: tuple[str, str],
    rank: int,
    size: int,
    work: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    import torch
    import torch.distributed as dist

    if backend == "nccl":
        torch.cuda.set_device(rank)
    folder, cache = places
    os.environ.update(dict.fromkeys(CACHES, cache))
    store = dist.FileStore(str(Path(folder, "store")), size)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=LIMIT)
    try:
        send(work(*arguments))
    except Exception as problem:
        send(f"{type(problem).__name__}: {problem}")
        return  # the group is not asked to end well
    dist.barrier()
    dist.destroy_process_group()


def of_all(found: list[Any]) -> list[Any]:
    """The results, after checking that no rank has an error."""
    assert not any(isinstance(one, Lost | str) for one in found), found
    return found
