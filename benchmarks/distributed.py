"""Several ranks of this machine train a model: eager, stock and ours, interleaved.

    python -m benchmarks.distributed                    NCCL on all GPUs, else gloo on 2 processes
    python -m benchmarks.distributed --only ddp --ranks 4 --minutes 2
    python -m benchmarks.distributed --only messages    small messages, separate and merged

For each model: the losses of ten steps, compared with eager; milliseconds of a training step,
interleaved; the communication time, and how much of it is exposed (the rank computes nothing in
that time), measured by torch's profiler.  A compiler whose losses differ from eager is not timed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

from benchmarks.distributed_models import CASES

EAGER, STOCK, OURS = "eager", "stock", "ours"
BACKENDS = {EAGER: None, STOCK: "inductor", OURS: "inductor_lab"}
SEEN = {"cpp.enable_kernel_profile": True}
"""So that the profiler sees stock's kernels on CPUs, as it sees ours."""
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2}
"""Relative, of the loss of a step."""
CHECKED, PROFILED = 10, 3
"""Steps whose losses are compared; steps under the profiler."""
FEWEST, MOST = 5, 60
"""Rounds of measuring."""
LIMIT = timedelta(minutes=5)
SHORT = {"ddp": "GPT-2, DDP", "fsdp": "GPT-2, FSDP2", "tensor": "LLaMA blocks, tensor parallel"}
COMMUNICATES = ("gloo:", "nccl")
STEP = "step of the benchmark"
WAITS = (STEP, "wait", "c10d::", "record_param_comms", "autograd::engine")


def main(given: Sequence[str] | None = None) -> None:
    gpus = torch.cuda.device_count()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=(*SHORT, "messages"), default=list(SHORT))
    parser.add_argument("--ranks", type=int, default=gpus if gpus > 1 else 2)
    parser.add_argument("--minutes", type=float, default=8.0, help="for all models together")
    parser.add_argument("--into", type=Path, help="a file for the results, as JSON")
    arguments = parser.parse_args(given)
    device = "cuda" if gpus >= arguments.ranks else "cpu"
    print(f"{arguments.ranks} ranks, {'NCCL' if device == 'cuda' else 'gloo'}, "
          f"torch {torch.__version__}", flush=True)  # fmt: skip
    seconds = 60 * arguments.minutes / len(arguments.only)
    found = {}
    for name in arguments.only:
        found[name] = on_ranks(arguments.ranks, device, name, seconds)
        print(table(SHORT.get(name, name), found[name]), flush=True)
        if arguments.into:
            arguments.into.write_text(json.dumps(found, indent=1))
    if any("failure" in one for entry in found.values() for one in entry.values()):
        raise SystemExit(1)


def on_ranks(ranks: int, device: str, name: str, seconds: float) -> dict[str, Any]:
    """The measurements of rank 0 by compiler; a failure of the whole run has the name "all"."""
    with tempfile.TemporaryDirectory() as folder:
        given = (ranks, device, name, seconds, folder)
        try:
            multiprocessing.spawn(_rank, given, nprocs=ranks)  # type: ignore[no-untyped-call]
            return dict(json.loads(Path(folder, "found").read_text()))
        except Exception as problem:
            return {"all": {"failure": str(problem).strip()[-2000:]}}


def _rank(rank: int, ranks: int, device: str, name: str, seconds: float, folder: str) -> None:
    os.environ["LOCAL_RANK"] = str(rank)
    if device == "cuda":
        torch.cuda.set_device(rank)
    else:
        torch.set_num_threads(max((os.cpu_count() or 1) // ranks, 1))
    store = dist.FileStore(str(Path(folder, "store")), ranks)
    kind = "nccl" if device == "cuda" else "gloo"
    dist.init_process_group(kind, store=store, rank=rank, world_size=ranks, timeout=LIMIT)
    found = messages(device) if name == "messages" else measured(name, device, seconds)
    if rank == 0:
        Path(folder, "found").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


class Trained:
    """A model with its optimizer and data, and steps of its training."""

    def __init__(self, name: str, device: str, way: str) -> None:
        build, sizes, together = CASES[SHORT[name]]
        self.size, self.device = sizes[device], device
        torch.manual_seed(0)
        self.model = build(device)
        if way != EAGER:
            self.model.compile(backend=BACKENDS[way], options=SEEN if way == STOCK else None)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, foreach=not together)
        self.draw = torch.Generator().manual_seed(0 if together else dist.get_rank())

    def step(self) -> torch.Tensor:
        shape = self.size.batch, self.size.length
        words = torch.randint(self.size.words, shape, generator=self.draw).to(self.device)
        loss: torch.Tensor = self.model(words)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def seconds(self) -> float:
        """Seconds of a step; the clock starts when all ranks are ready."""
        together(self.device)
        start = time.perf_counter()
        self.step()
        wait(self.device)
        return time.perf_counter() - start


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def together(device: str) -> None:
    """Wait until all ranks are here and have finished their work."""
    wait(device)
    dist.barrier()
    wait(device)


def measured(name: str, device: str, seconds: float) -> dict[str, Any]:
    """Losses, times and communication of each compiler on this rank."""
    torch._dynamo.config.recompile_limit = 64  # every compiler compiles the same code
    end, found, trained = time.monotonic() + seconds, dict[str, Any](), dict[str, Trained]()
    for way in BACKENDS:
        start = time.perf_counter()
        try:
            trained[way] = Trained(name, device, way)
            first = trained[way].step().item()
            took = time.perf_counter() - start
            losses = [first, *(trained[way].step().item() for _ in range(CHECKED - 1))]
            found[way] = {"first": took, "losses": losses}
        except Exception:
            found[way] = {"failure": traceback.format_exc()[-2000:]}
        if not agree(way, found, TOLERANCE[CASES[SHORT[name]][1][device].dtype]):
            trained.pop(way, None)
        if dist.get_rank() == 0:
            took = time.perf_counter() - start
            print(f"  {name}, {way}: losses after {took:.1f} s", flush=True)
    for way, samples in rounds(trained, end).items():
        found[way] |= {"ms": 1e3 * statistics.median(samples), "samples": samples}
    for way, one in trained.items():
        found[way] |= communication(one, device)
    return found


def agree(way: str, found: dict[str, Any], tolerance: float) -> bool:
    """Do the losses agree with eager on all ranks?  All ranks return the same answer."""
    mine = found[way]
    wrong = "failure" in mine
    if not wrong and "losses" in found[EAGER]:
        pairs = zip(mine["losses"], found[EAGER]["losses"], strict=True)
        each = [abs(a - b) / abs(b) for a, b in pairs]
        mine["off"] = off = max(each, key=lambda one: (one != one, one))  # NaN is the worst
        wrong = not off <= tolerance
        if wrong:
            mine["failure"] = f"the losses are off by {off:.2g}"
    said = list[Any]([None]) * dist.get_world_size()
    dist.all_gather_object(said, wrong)
    if any(said) and "failure" not in mine:
        mine["failure"] = f"rank {said.index(True)} failed"
    return not any(said)


def rounds(trained: dict[str, Trained], end: float) -> dict[str, list[float]]:
    """Seconds of steps, interleaved.  Rank 0 ends the loop, so that all ranks stop together."""
    samples: dict[str, list[float]] = {way: [] for way in trained}
    for number in range(MOST if trained else 0):
        over = [number >= FEWEST and time.monotonic() > end]
        dist.broadcast_object_list(over, 0)
        if over[0]:
            break
        for way, one in trained.items():
            samples[way].append(one.seconds())
    return samples


def communication(one: Trained, device: str) -> dict[str, float]:
    """The communication that torch's profiler records in some steps, after an uncounted warm-up
    step."""
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    together(device)
    with torch.profiler.profile(activities=kinds) as profile:
        for number in range(1 + PROFILED):
            with torch.profiler.record_function(f"{STEP} {number}"):
                one.step()
                wait(device)
    return shares(list(profile.events() or ()), device)


def shares(events: Sequence[Any], device: str) -> dict[str, float]:
    """Milliseconds of communication per step ("wire"): during other work ("hidden") and without
    other work ("exposed"); and milliseconds of the complete step under the profiler.

    Profiler ranges that a program names are not work, not even on a GPU.
    """
    cuda = torch.autograd.DeviceType.CUDA
    marked = [e.time_range for e in events if e.name.startswith(STEP) and e.device_type != cuda]
    _, *steps = sorted((span.start, span.end) for span in marked)
    start, end = steps[0][0], steps[-1][1]
    if device == "cuda":
        events = [e for e in events if e.device_type == cuda and not e.is_user_annotation]
    spans: dict[bool, Ranges] = {True: [], False: []}
    for event in events:
        begun, done = max(event.time_range.start, start), min(event.time_range.end, end)
        sent = event.name.lower().startswith(COMMUNICATES)
        work = not event.cpu_children and not any(part in event.name for part in WAITS)
        if begun < done and (sent or work):
            spans[sent].append((begun, done))
    wire, work_done = merged(spans[True]), merged(spans[False])
    found = {"wire": total(wire), "hidden": common(wire, work_done), "profiled": end - start,
             "exposed": total(merged((*wire, *work_done))) - total(work_done)}  # fmt: skip
    return {name: us / 1e3 / len(steps) for name, us in found.items()}


Ranges = list[tuple[float, float]]


def merged(ranges: Iterable[tuple[float, float]]) -> Ranges:
    """The union of these time intervals, sorted and disjoint."""
    found: Ranges = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def total(ranges: Ranges) -> float:
    return sum(end - start for start, end in ranges)


def common(some: Ranges, others: Ranges) -> float:
    """The length of the intersection."""
    return max(total(some) + total(others) - total(merged((*some, *others))), 0.0)


def messages(device: str) -> dict[str, Any]:
    """Milliseconds of eight all-reduces, as separate messages and as one, by bytes of each."""
    found = {}
    c10d = torch.ops._c10d_functional
    for nbytes in (256, 4 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20):
        given = [torch.randn(nbytes // 4, device=device) for _ in range(8)]

        def apart(given: list[torch.Tensor] = given) -> None:
            for sent in [c10d.all_reduce(x, "sum", "0") for x in given]:
                c10d.wait_tensor(sent)

        def joined(given: list[torch.Tensor] = given) -> None:
            for sent in c10d.all_reduce_coalesced(given, "sum", "0"):
                c10d.wait_tensor(sent)

        times = {"apart": quickest(apart, device), "joined": quickest(joined, device)}
        found[f"8 x {nbytes:,} B"] = {name: 1e3 * took for name, took in times.items()}
    return found


def quickest(send: Callable[[], None], device: str) -> float:
    """The lower quartile of forty measurements, in seconds."""
    times = []
    for _ in range(40):
        together(device)
        start = time.perf_counter()
        send()
        wait(device)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 4]


COLUMNS = {"ms": "ms a step", "profiled": "profiled", "wire": "in flight",
           "hidden": "hidden", "exposed": "exposed", "first": "first, s",
           "off": "off eager", "apart": "apart, ms", "joined": "joined, ms"}  # fmt: skip


def table(name: str, found: dict[str, Any]) -> str:
    """A line for each compiler; the speedup of ours over stock is the median over the rounds."""
    shown = [key for key in COLUMNS if any(key in entry for entry in found.values())]
    lines = [f"{name:24}" + "".join(f"{COLUMNS[key]:>12}" for key in shown)]
    for way, entry in found.items():
        cells = (f"{entry[key]:12.3g}" if key in entry else f"{'':12}" for key in shown)
        lines.append(f"  {way:22}" + "".join(cells))
        if "failure" in entry:
            lines.append("    " + entry["failure"].replace("\n", "\n    "))
    pairs = [found.get(way, {}).get("samples", ()) for way in (STOCK, OURS)]
    if all(pairs):
        ratio = statistics.median(s / o for s, o in zip(*pairs, strict=True))
        lines.append(f"  ours is {ratio:.2f} times as fast as stock")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
