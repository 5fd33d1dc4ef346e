"""Work in processes of its own, several at a time, until it is done or its time is over.

Generated code that is wrong may take its process with it, or never end.  So it runs in a process
that another one watches.  A server process imports torch once and forks for each piece of work, so
that a fresh process costs milliseconds.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver as forkserver
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass
class Clock:
    """When to stop: `minutes` after the start (0: never), or when `stop` is called."""

    minutes: float = 0.0

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self.end = self.started + 60 * self.minutes if self.minutes else float("inf")

    @property
    def passed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        return max(self.end - time.monotonic(), 0.0)

    def stop(self) -> None:
        self.end = 0.0


@dataclass(frozen=True)
class Lost:
    """A process that was not done: it died, hung, or was stopped by the clock."""

    how: str
    why: str


CRASH, HANG, STOPPED = "crash", "hang", "stopped"
_DONE = "this was all"
_MOST_WAIT = 1.0


def server(*preload: str) -> Any:
    """The way to start processes, with the modules `preload` imported beforehand.

    A process has one server: a server that has imported another module ends, for what that module
    has set would hold in the new processes too.
    """
    context = multiprocessing.get_context("forkserver")
    running = forkserver._forkserver  # type: ignore[attr-defined]
    if running._preload_modules != [*preload]:
        running._stop()
        context.set_forkserver_preload([*preload])
    return context


def gpu_server(preload: str) -> Any:
    """The same for work on a GPU, which a process that was forked can only use if the server has
    never asked CUDA for anything (`tests/opinfo/warm_gpu.py`); otherwise fresh processes, slowly.
    """
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    context = server(preload)
    found = list(messages(context, _sum_on_gpu, (), 120, Clock()))
    return context if found == [3] else multiprocessing.get_context("spawn")


def _sum_on_gpu(send: Callable[[Any], None]) -> None:
    import torch

    send(int(torch.arange(3, device="cuda").sum()))


def messages(
    context: Any, work: Callable[..., None], arguments: Any, limit: float, clock: Clock
) -> Iterator[Any]:
    """What `work(send, *arguments)` sends from a process of its own.

    `limit`: so many seconds from one message to the next.  The last message is a Lost where the
    process did not end by itself.
    """
    here, there = context.Pipe(duplex=False)
    worker = context.Process(target=_run, args=(there, work, arguments), daemon=True)
    worker.start()
    there.close()
    heard = time.monotonic()
    while True:
        try:
            if here.poll(min(_MOST_WAIT, clock.left)):
                message = here.recv()
                heard = time.monotonic()
                if message == _DONE:
                    worker.join()
                    return
                yield message
                if isinstance(message, Lost):
                    worker.join()
                    return
                continue
        except EOFError:
            worker.join()
            yield Lost(CRASH, _death(worker.exitcode))
            return
        silent = time.monotonic() - heard
        if not clock.left or silent > limit:
            worker.kill()
            worker.join()
            yield Lost(STOPPED, "") if not clock.left else Lost(HANG, f"silent for {limit:.0f} s")
            return


def _run(pipe: Connection, work: Callable[..., None], arguments: Any) -> None:
    """What a process does."""
    import torch

    torch.set_num_threads(1)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)  # torch warns a lot
    try:
        work(pipe.send, *arguments)
    except Exception:
        pipe.send(Lost(CRASH, traceback.format_exc()))
    else:
        pipe.send(_DONE)


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"ended with status {code}"


def in_parallel(
    do: Callable[[Task], tuple[Result, Iterable[Task]]],
    tasks: Iterable[Task],
    jobs: int,
    clock: Clock,
) -> Iterator[Result]:
    """Each task's result, as they come; `do` returns it with further tasks, and runs in a thread.

    Once the clock has stopped, no task is begun; Ctrl-C stops the clock.
    """
    with ThreadPoolExecutor(jobs) as pool:
        pending: set[Future[tuple[Result, Iterable[Task]]]]
        pending = {pool.submit(do, task) for task in tasks}
        try:
            while pending:
                ready, pending = wait(pending, timeout=_MOST_WAIT, return_when=FIRST_COMPLETED)
                if not clock.left:
                    pending = {future for future in pending if not future.cancel()}
                for future in ready:
                    result, more = future.result()
                    if clock.left:
                        pending |= {pool.submit(do, task) for task in more}
                    yield result
        finally:
            clock.stop()
            pool.shutdown(cancel_futures=True)
