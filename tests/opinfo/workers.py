"""Ops run in processes of their own, since a wrong kernel may take its process with it.

A server process imports torch once and forks for each op, so a fresh process costs milliseconds.
Where it dies or stops answering, the sample at hand is to blame, and the next process goes on
behind it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

from tests.opinfo.check import CRASH, HANG, Settings, Verdict

DONE = "done"


def server() -> Any:
    """The way to start processes, with everything imported beforehand."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.opinfo.warm"])
    return context


def _work(pipe: Connection, name: str, settings: Settings, first: int) -> None:
    """What a worker process does: send how many samples there are, each verdict, then DONE."""
    import torch

    from tests.opinfo.check import all_samples, verdicts

    torch.set_num_threads(1)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)  # torch warns a lot
    pipe.send(len(all_samples(name, settings)))
    for verdict in verdicts(name, settings, first):
        pipe.send(verdict)
    pipe.send(DONE)


def verdicts_of(
    context: Any, name: str, settings: Settings, *, first: int = 0, limit: float = 120.0
) -> Iterator[Verdict]:
    """The verdicts of one op from sample `first` on; `limit` is in seconds per sample."""
    number, count = first, first + 1
    while number < count:
        here, there = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(there, name, settings, number), daemon=True)
        worker.start()
        there.close()
        lost = ""
        try:
            while not lost:
                if not here.poll(limit):
                    worker.kill()
                    lost = HANG
                    break
                message = here.recv()
                if message == DONE:
                    worker.join()
                    return
                if isinstance(message, int):
                    count = message
                    continue
                yield message
                number = message.sample + 1
        except EOFError:
            lost = CRASH
        worker.join()
        why = f"no answer for {limit:.0f} s" if lost == HANG else _death(worker.exitcode)
        yield Verdict(name, settings.dtype, number, lost, why)
        number += 1


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"ended with status {code}"
