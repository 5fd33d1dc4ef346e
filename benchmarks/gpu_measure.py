"""Measure GPU workloads in a separate process: compared with float64, then timed interleaved.

    python -m benchmarks.gpu_measure 'softmax (16384, 4096)' --seconds 1.5 --ways eager stock ours
    python -m benchmarks.gpu_measure 'softmax (16384, 4096)' --first ours

Prints one line of JSON for each workload.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest import mock

import torch

import inductor_lab as lab
from benchmarks.gpu_by_hand import BY_HAND
from benchmarks.gpu_workloads import DEVICE, WORKLOADS, Built, GpuWorkload
from inductor_lab.bench.jobs import values_in
from inductor_lab.compiler.runtime.toolchain.background_compile import BackgroundValue

EAGER, STOCK, OURS, COPY = "eager", "stock", "ours", "copy"
GRAPHS = ("stock graphs", "ours graphs")
TUNED, STOCK_TUNED, HAND = "ours tuned", "stock tuned", "by hand"
WAYS: Mapping[str, Callable[[Any], Any]] = {
    EAGER: lambda f: f,
    STOCK: torch.compile,
    "stock graphs": lambda f: torch.compile(f, mode="reduce-overhead"),
    OURS: lab.compile,
    "ours graphs": lambda f: lab.compile(f, mode="reduce-overhead"),
    TUNED: lambda f: lab.compile(f, mode="max-autotune-no-cudagraphs"),
    STOCK_TUNED: lambda f: torch.compile(f, mode="max-autotune-no-cudagraphs"),
    HAND: lambda f: f,
}
"""Name → how to compile a function, some with CUDA graphs.  The last three are only measured if
they are asked for: tuning compiles each kernel a dozen times, and few workloads have a kernel
written by hand."""
ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 4e-2}
"""Relative to the largest value of a result."""
SLACK = 3.0
"""How many times eager's own error is allowed."""
SMALL = 1e-3
SAMPLE = 4e-3
"""Seconds; quicker calls are repeated within a sample."""
FEWEST_ROUNDS, MOST_ROUNDS = 5, 60
TRACED_CALLS, SHOWN_KERNELS = 3, 14
Job = Callable[[], list[Any]]


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="+", choices=WORKLOADS)
    parser.add_argument("--ways", nargs="+", choices=WAYS)
    parser.add_argument("--seconds", type=float, default=1.5, help="for timing")
    parser.add_argument("--first", choices=WAYS, help="only time this one's first call")
    arguments = parser.parse_args(given)
    for workload in map(WORKLOADS.__getitem__, arguments.workloads):
        if arguments.first:
            found = first_call(workload, arguments.first)
        else:
            rare = (TUNED, STOCK_TUNED, HAND, *(() if workload.graphs else GRAPHS))
            ways = arguments.ways or [way for way in WAYS if way not in rare]
            ways = [way for way in ways if way != HAND or workload.name in BY_HAND]
            found = measured(workload, ways, arguments.seconds)
            torch.compiler.reset()
        print(json.dumps({"workload": workload.name, "kind": workload.kind, **found}), flush=True)
    os._exit(0)  # do not wait for the workers of stock's compiler


def job(fn: Callable[..., Any], args: tuple[Any, ...], gradient: bool) -> Job:
    """A call, and with `gradient` the gradients of all leaves.  The output gradient is not constant
    (for ones, the gradient of a softmax is 0) and is exact in every dtype."""
    leaves = [arg for arg in args if arg.requires_grad]
    if isinstance(fn, torch.nn.Module):
        leaves += fn.parameters()

    def call() -> list[Any]:
        torch.compiler.cudagraph_mark_step_begin()
        return list(values_in(fn(*args)))

    along: list[torch.Tensor] = []

    def both() -> list[Any]:
        results = call()
        if not along:
            along.extend(map(direction, results))
        return [*results, *torch.autograd.grad(results, leaves, along)]

    return both if gradient else call


def direction(result: torch.Tensor) -> torch.Tensor:
    steps = torch.arange(result.numel(), device=result.device).reshape(result.shape)
    return ((steps * 7 % 17 - 8) / 8).to(result)


def first_call(workload: GpuWorkload, way: str) -> dict[str, Any]:
    """Seconds of compiling and running, after modules are imported and CUDA is initialized.

    Also torch's times of its phases (an outer phase includes its inner ones), and how long the call
    waited for our kernels, which are compiled in threads.
    """
    fn, args = workload.build()
    if way != EAGER:
        torch._dynamo.lookup_backend("inductor")
    torch.compiler.cudagraph_mark_step_begin()  # imports stock's own, of every way
    torch.zeros(8, device=DEVICE).add_(1).sum().item()
    wait()
    waited: list[float] = []
    start = time.perf_counter()
    with mock.patch.object(BackgroundValue, "wait", noting(waited, BackgroundValue.wait)):
        job(WAYS[way](fn), args, workload.gradient)()
        wait()
    took = time.perf_counter() - start
    known = torch._dynamo.utils.compilation_time_metrics
    phases = {name: round(sum(times), 3) for name, times in known.items() if sum(times) > 0.05}
    return {"way": way, "first": took, "waited": sum(waited), "kernels": len(waited),
            "phases": phases}  # fmt: skip


def noting(times: list[float], function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the function: record the time of each call."""

    def timed(*args: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*args)
        finally:
            times.append(time.perf_counter() - start)

    return timed


def measured(workload: GpuWorkload, names: Sequence[str], seconds: float) -> dict[str, Any]:
    """Errors of all compilers, times of the correct ones, and profiles of stock and ours."""
    fn, args = workload.build()
    exact = in_float64(fn, args, workload.gradient)
    ways: dict[str, dict[str, Any]] = {}
    jobs: dict[str, Job] = {}
    rounding, room = 0.0, 0.0
    for name in names:
        entry = ways[name] = {}
        start = time.perf_counter()
        try:
            made = BY_HAND[workload.name]() if name == HAND else fn
            run = job(WAYS[name](made), args, workload.gradient)
            results = run()
            wait()
            entry["second process"] = time.perf_counter() - start
            for _ in range(3):
                results = run()  # the warm state, in which CUDA graphs are replayed
            rounding = rounding or max(ROUNDING.get(r.dtype, 0.0) for r in results)
            entry["error"] = error = difference(results, exact)
        except Exception as raised:
            entry["failure"] = f"{type(raised).__name__}: {' '.join(str(raised).split())[:500]}"
            continue
        if name == EAGER:
            room = SLACK * error
        if not error <= room + rounding:
            entry["failure"] = f"wrong: off by {error:.2g} where eager is off by {room / SLACK:.2g}"
            continue
        jobs[name] = run
    moved = sum(value.nbytes for value in values_in([list(args), jobs[EAGER]()]))
    if workload.gradient:  # the backward also reads the inputs and the output gradient
        moved += sum(value.nbytes for value in values_in([list(args), fn(*args)]))
    del exact
    if workload.streams:
        jobs[COPY] = copy_of(moved)
        ways[COPY] = {}
    for name, times in timed(jobs, seconds).items():
        ways[name] |= {"ms": statistics.median(times) * 1e3, "rounds": len(times)}
    for name in (STOCK, OURS):
        if name in jobs:
            ways[name] |= traced(jobs[name])
    return {"bytes": moved, "ways": ways}


def in_float64(fn: Any, args: tuple[Any, ...], gradient: bool) -> list[torch.Tensor]:
    """The results in double precision; large ones are stored in float32."""
    wide: Built = (
        copy.deepcopy(fn).double() if isinstance(fn, torch.nn.Module) else fn,
        tuple(
            a.detach().double().requires_grad_(a.requires_grad) if a.is_floating_point() else a
            for a in args
        ),
    )
    results = job(*wide, gradient)()
    return [r.detach().float() if r.is_floating_point() else r for r in results]


def difference(found: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]) -> float:
    """The largest error of a result, relative to the largest value in it (or SMALL times that of
    all); inf for NaN, for other shapes and for integers that differ."""
    largest_of_all = max((float(b.abs().max()) for b in exact if b.is_floating_point()), default=0)
    assert len(found) == len(exact), f"{len(found)} results instead of {len(exact)}"
    largest = 0.0
    for a, b in zip(found, exact, strict=True):
        if a.shape != b.shape or not b.is_floating_point():
            error = 0.0 if torch.equal(a, b) else float("inf")
        else:
            scale = max(float(b.abs().max()), SMALL * largest_of_all) or 1.0
            pairs = zip(parts(a), parts(b), strict=True)
            error = max((float((x - y).abs().max()) / scale for x, y in pairs), default=0.0)
        largest = max(largest, error if error == error else float("inf"))
    return largest


def parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Large tensors in parts, because differences need memory."""
    return tensor.detach().reshape(-1).float().split(1 << 27) if tensor.numel() else ()


def copy_of(nbytes: int) -> Job:
    """A copy that moves this many bytes: half are read, half are written."""
    source, target = (torch.ones(nbytes // 8, device=DEVICE) for _ in range(2))
    return lambda: [target.copy_(source)]


def timed(jobs: Mapping[str, Job], seconds: float) -> dict[str, list[float]]:
    """Seconds per call, interleaved, by CUDA events."""
    repeats = {name: max(1, int(SAMPLE / sample(run, 2))) for name, run in jobs.items()}
    found: dict[str, list[float]] = {name: [] for name in jobs}
    end = time.perf_counter() + seconds
    for number in range(MOST_ROUNDS):
        if number >= FEWEST_ROUNDS and time.perf_counter() > end:
            break
        order = list(jobs.items())
        for name, run in order if number % 2 == 0 else reversed(order):
            found[name].append(sample(run, repeats[name]))
    return found


def wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def sample(run: Job, calls: int) -> float:
    if DEVICE == "cpu":
        start = time.perf_counter()
        for _ in range(calls):
            run()
        return (time.perf_counter() - start) / calls
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    first.record()
    for _ in range(calls):
        run()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1e3 / calls


def traced(run: Job) -> dict[str, Any]:
    """Busy milliseconds of the GPU, launches per call, and the longest kernels."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    try:
        with torch.profiler.profile(activities=activities) as profile:
            for _ in range(TRACED_CALLS):
                run()
            torch.cuda.synchronize()
        took: Counter[str] = Counter()
        count: Counter[str] = Counter()
        for event in profile.events():
            if event.device_type == torch.autograd.DeviceType.CUDA:
                took[event.name] += event.time_range.elapsed_us()
                count[event.name] += 1
    except Exception as raised:
        return {"not traced": f"{type(raised).__name__}: {raised}"}
    kernels = [
        {"name": name[:120], "ms": us / 1e3 / TRACED_CALLS, "count": count[name] / TRACED_CALLS}
        for name, us in took.most_common(SHOWN_KERNELS)
    ]
    busy, launches = took.total() / 1e3 / TRACED_CALLS, count.total() / TRACED_CALLS
    return {"busy": busy, "launches": launches, "kernels": kernels}


if __name__ == "__main__":
    main()
