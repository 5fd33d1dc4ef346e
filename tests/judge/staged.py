"""Staged memory like that of a GPU, in main memory, so that its tests need no GPU."""

from __future__ import annotations

import mmap
import os
from typing import Any

import torch

from inductor_lab.debug.judge import serve_candidate
from inductor_lab.debug.judge.timing_memory import StagedMemory

KNOWS_PREPARED_CALLS = """
import sys
served = sys.modules["inductor_lab.debug.judge.serve_candidate"]
prepare = served.prepare
early = {}
def ahead(request):
    prepare(request)
    for number, ((args, kwargs), targets) in enumerate(served._SHARED.prepared):
        early[number] = right(args[0])
served.prepare = ahead
def candidate(x):
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "timed_calls" and "number" in frame.f_locals:
            return early[frame.f_locals["number"] - 1]
        frame = frame.f_back
    return right(x)
"""
"""Computes from the inputs that the process has prepared, before the clock starts."""


class FileMemory(StagedMemory):
    """A file without a name, which other processes get as a descriptor.

    `evicted` counts how often its caches were evicted.
    """

    def __init__(self, file: int, nbytes: int) -> None:
        self.memory, self.nbytes, self.evicted = mmap.mmap(file, nbytes), nbytes, 0

    @staticmethod
    def made(nbytes: int) -> tuple[FileMemory, int]:
        file = os.memfd_create("judge")
        os.ftruncate(file, nbytes)
        return FileMemory(file, nbytes), file

    def part(self, at: int, count: int) -> torch.Tensor:
        if not count:
            return torch.empty(0, dtype=torch.uint8)
        return torch.frombuffer(self.memory, dtype=torch.uint8, count=count, offset=at)

    def wait(self) -> None:
        pass

    def settle(self) -> None:
        pass

    def evict(self) -> None:
        self.evicted += 1


def begin(argument: dict[str, Any]) -> Any:
    """As `serve_candidate.begin`, with this memory."""
    (file,) = argument["files"]
    serve_candidate._SHARED.memory = FileMemory(file, argument["nbytes"])
    return serve_candidate.begin(argument)


def reads(argument: dict[str, Any]) -> Any:
    """A function that reads the file which the process was given."""
    return lambda: os.pread(argument["files"][0], 100, 0).decode()
