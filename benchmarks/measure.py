"""One workload in a separate process: compiled, compared with eager, timed interleaved.

The process is forked from one that has imported everything and run nothing, so it starts in
milliseconds.  A workload that crashes or hangs does not affect the others.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch
import torch._dynamo

from benchmarks.workloads import Built, Workload
from inductor_lab.bench.bench_result import OURS, BenchResult, CompileTime, Contender
from inductor_lab.bench.contenders import EAGER
from inductor_lab.bench.jobs import Job, difference, tolerance, values_in
from inductor_lab.bench.machine import machine
from inductor_lab.bench.timing import Timings, compare

COPY = "copy"
FEWEST_ROUNDS = 5
CALLS_FOR_PEAK = 3
T = TypeVar("T")


class Failed(Exception):
    """A forked process did not return a value; the message contains the reason."""


def in_fork(work: Callable[[], T], patience: float) -> T:
    """Run `work()` in a forked process; raises Failed if it raises, crashes or takes too long."""
    processes = multiprocessing.get_context("fork")
    ours, theirs = processes.Pipe(duplex=False)
    child = processes.Process(target=_send, args=(work, theirs))
    child.start()
    theirs.close()
    try:
        if not ours.poll(patience):
            raise Failed(f"took longer than {patience:.0f} s")
        value, failure = ours.recv()
    except EOFError:
        child.join()
        raise Failed(f"its process ended with {child.exitcode}") from None
    finally:
        if child.is_alive():
            child.kill()
        child.join()
    if failure:
        raise Failed(failure)
    return value


def _send(work: Callable[[], Any], to: Any) -> None:
    try:
        to.send((work(), ""))
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        to.send((None, f"{type(error).__name__}: {lines[0]}"))


def measured(workload: Workload, names: Iterable[str], seconds: float) -> BenchResult:
    """Compile with each compiler, compare with eager, and time interleaved if the results agree.

    Memory-bound work is compared with a copy of as many bytes.
    """
    contenders, jobs = {}, {}
    shared = workload.build() if workload.gradient else None  # parameters are compared by identity
    for name in names:
        run, _, failure = first_call(workload, name, shared)
        contenders[name] = Contender(name, failure=failure)
        if run is not None:
            jobs[name] = run
    timed = {name: run for name, (run, _) in jobs.items()}
    expected = jobs[EAGER][1]
    tolerated = max(tolerance(expected), workload.tolerance)
    for name, (_, found) in jobs.items():
        error = difference(expected, found)
        agrees = error <= tolerated
        contenders[name] = replace(contenders[name], error=error, agrees=agrees)
        if not agrees:
            del timed[name]
    if workload.streams:
        timed[COPY] = copy_of(bytes_moved(workload, expected))
        contenders[COPY] = Contender(COPY)
    jobs.clear()
    timings = compare(timed, seconds=seconds, at_least=FEWEST_ROUNDS)
    return BenchResult(workload.name, workload.kind, machine(), tuple(contenders.values()), timings)


def first_call(
    workload: Workload, name: str, built: Built | None = None
) -> tuple[Any, float | None, str]:
    """The compiled call, its first results and its seconds; or the reason why a compiler failed."""
    fn, args = built or workload.build()
    if name != EAGER:
        torch._dynamo.lookup_backend(name)  # imported before the clock starts
    run = Job(fn if name == EAGER else torch.compile(fn, backend=name), args, {}, workload.gradient)
    start = time.perf_counter()
    try:
        found = run()
    except Exception as error:
        if name == EAGER:
            raise
        lines = str(error).strip().splitlines() or [""]
        return None, None, f"{type(error).__name__}: {lines[0]}"
    return (run, found), time.perf_counter() - start, ""


def bytes_moved(workload: Workload, results: Any) -> int:
    """The bytes of all arguments, read once, and of all results, written once."""
    values = [*values_in(workload.build()[1]), *values_in(results)]
    return sum(value.nbytes for value in values if isinstance(value, torch.Tensor))


def copy_of(nbytes: int) -> Callable[[], Any]:
    """A copy to allocated memory that moves this many bytes: half are read, half are written."""
    source = torch.ones(nbytes // 8)
    target = torch.ones(nbytes // 8)
    return partial(target.copy_, source)


def first_calls(workload: Workload, name: str, patience: float) -> Contender:
    """Seconds of a first call with empty caches, then with filled caches, each in a process that
    has compiled nothing; the peak bytes of the second; or the reason of a failure."""
    try:
        cold, _ = in_fork(partial(peak, workload, name), patience)
        warm, most = in_fork(partial(peak, workload, name), patience)
    except Failed as failed:
        return Contender(name, note=f"alone: {failed}")
    compiled = None if name == EAGER else CompileTime(cold=cold, warm=warm)
    return Contender(name, compiled, peak=most)


def peak(workload: Workload, name: str) -> tuple[float, int]:
    """Seconds of a first call, and the peak bytes of this process for a few calls."""
    torch._dynamo.lookup_backend(name if name != EAGER else OURS)
    before = most_bytes()
    made, took, failure = first_call(workload, name)
    if made is None or took is None:
        raise Failed(failure)
    run, found = made
    for _ in range(CALLS_FOR_PEAK):
        found = run()
    del found
    return took, most_bytes() - before


def most_bytes() -> int:
    """Peak resident bytes of this process since it was forked."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def with_first_calls(result: BenchResult, firsts: Mapping[str, Contender]) -> BenchResult:
    """The result with the measurements of `first_calls`."""
    contenders = [
        replace(c, compile=alone.compile, peak=alone.peak, note=alone.note)
        if not c.failure and (alone := firsts.get(c.name))
        else c
        for c in result.contenders
    ]
    return replace(result, contenders=tuple(contenders))


def failure(workload: Workload, why: str) -> BenchResult:
    """The entry in the results for a workload whose process failed."""
    nobody = Contender(OURS, failure=why)
    return BenchResult(workload.name, workload.kind, machine(), (nobody,), Timings({}))
