"""A process group over gloo whose ranks compile one step, or something else on one rank.

    TORCH_TRACE=FOLDER python ranks_that_differ.py CACHE,CACHE [RANK=DIFFERENCE ...]

Each rank has a folder of the list for its caches.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch._inductor import config  # noqa: TID251


class Setting:
    """What the step reads: which branch it takes, and the order of its collectives."""

    first, second = True, False
    operators = ("sum", "max")


def step(x: torch.Tensor, setting: Setting) -> torch.Tensor:
    """Two sums over all ranks; gloo waits for no rank that has them in another order."""
    if setting.first or setting.second:
        x = x * 2
    before, after = (funcol.all_reduce(x + 1, name, dist.group.WORLD)
                     for name in setting.operators)  # fmt: skip
    return (before - after).sin()


def warm_up(x: torch.Tensor) -> torch.Tensor:
    return x.cos() + 1


def train(rank: int, size: int, store: str, cache: str, difference: str) -> None:
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
    config.cpp_cache_precompile_headers = False  # it takes longer than these kernels
    dist.init_process_group("gloo", store=dist.FileStore(store, size), rank=rank, world_size=size)
    setting = Setting()
    if difference == "ids":
        torch.compile(warm_up)(torch.ones(8))
    elif difference == "guards":
        setting.first, setting.second = False, True
    elif difference == "collectives":
        setting.operators = setting.operators[::-1]
    torch.compile(step)(torch.ones(4, 4), setting)
    dist.barrier()
    dist.destroy_process_group()


def main(caches: list[str], differences: dict[str, str]) -> int:
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder, "store"))
        ranks = [
            fork.Process(target=train, args=(
                rank, len(caches), store, cache, differences.get(str(rank), "")))
            for rank, cache in enumerate(caches)
        ]  # fmt: skip
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
    return max(abs(rank.exitcode or 0) for rank in ranks)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].split(","), dict(one.split("=") for one in sys.argv[2:])))
