"""This machine, and its maximum bandwidth and flop rate: the roofs of a roofline.

Limits are measured until two sweeps agree, which takes some seconds.  The user's cache directory
has a file for each machine, device and number of threads.  On a busy machine sweeps may never
agree: then there are no roofs, and `Ceilings.doubt` has the reason.

Samuel Williams, Andrew Waterman, David Patterson: "Roofline: an insightful visual performance model
for multicore architectures", 2009.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import torch

from inductor_lab.api.arguments import checked
from inductor_lab.bench.roofs import Ceilings, Machine, falling, size_text
from inductor_lab.bench.timing import clock_of
from inductor_lab.compiler.base.errors import CacheRefused, CannotWrite, UnreadableFile
from inductor_lab.compiler.runtime.cache.kernel_cache import open_cache
from inductor_lab.compiler.runtime.toolchain.find_compiler import cpu_identity
from inductor_lab.debug.doctor import cpu_name
from inductor_lab.saved import saving


@dataclass(frozen=True)
class Effort:
    """How large the work must be to reach a device's limits.

    copied   bytes read and written by each copy: from sizes in a core's cache to sizes in memory
    matrix   rows and columns of the matrices
    calls    consecutive calls for one sample
    """

    copied: tuple[int, ...]
    matrix: int
    calls: int


EFFORTS = {
    "cpu": Effort(tuple(1 << power for power in (14, 17, 20, 23, 25, 27)), 1024, 1),
    "cuda": Effort(tuple(1 << power for power in (14, 17, 20, 23, 25, 27, 30)), 8192, 20),
}
FLOP_DTYPES = (torch.float32, torch.bfloat16, torch.float64)
SECONDS_EACH = 0.08
SMALL_MATRIX, LONGEST_PRODUCT = 256, 0.5
"""If a product takes more seconds than this, smaller matrices are used: a CPU without bfloat16
vectors needs 2.5 s for a product of 1024 by 1024."""

AGREE = 1.15
"""Two sweeps agree if no rate differs by more than this factor."""
SWEEPS = 6
"""If this many sweeps do not agree, the machine is too noisy."""
STALE_AFTER = timedelta(days=30)
PROBE = 1 << 20
"""Bytes of the copy that checks whether limits on disk are from a busy machine."""


def machine(device: str = "cpu") -> Machine:
    """This machine with a torch device."""
    if torch.device(device).type == "cpu":
        return Machine(cpu_name(), torch.get_num_threads(), str(torch.__version__))
    return Machine(torch.cuda.get_device_name(device), 0, str(torch.__version__))


@checked
def ceilings(device: str = "cpu", *, fresh: bool = False) -> Ceilings:
    """This machine's limits: from disk if they are valid, otherwise (or if `fresh`) measured.

    They are invalid after a month, or if a short copy is now faster than they allow, because then
    the machine was busy when they were measured.  Limits with `doubt` are not kept.
    """
    path = _kept_at(machine(device))
    if path is not None and path.exists() and not fresh:
        try:
            kept = saving.load(path, Ceilings)
            if not _is_old(kept) and _copied(PROBE, device) < AGREE * kept.bytes_per_second(PROBE):
                return kept
        except UnreadableFile:
            pass  # from another version, or damaged: measure again
    found = measured(device)
    if not found.doubt:
        keep(found)
    return found


def keep(found: Ceilings) -> None:
    """Write limits to disk, where `ceilings` finds them."""
    path = _kept_at(found.machine)
    if path is not None:
        try:
            saving.save(path, found)
        except CannotWrite:
            pass  # measured again next time


def measured(device: str) -> Ceilings:
    """Copy arrays and multiply matrices until the rates of two sweeps agree."""
    rates, doubt = agreed(partial(_sweep, device))
    bandwidth = {what: rate for what, rate in rates.items() if isinstance(what, int)}
    flop_rates = {what: rate for what, rate in rates.items() if isinstance(what, str)}
    today = f"{datetime.now():%Y-%m-%d}"
    return Ceilings(machine(device), falling(bandwidth), flop_rates, today, doubt)


Rates = dict[int | str, float]
"""Bytes copied → bytes per second; dtype → floating-point operations per second."""


def agreed(sweep: Callable[[], Rates]) -> tuple[Rates, str]:
    """The maximum rates of sweeps, and "" if the last sweep agrees with the maximum before it.

    Otherwise a text says why the rates are not reliable.  A rate is a limit, so the largest value
    counts.  A rate that is never reached again may be a clock error.  A rate that keeps growing
    was measured on a busy machine.
    """
    best, apart, worst = sweep(), 1.0, ""
    for _ in range(SWEEPS - 1):
        new = sweep()
        ratios = {what: max(new[what] / best[what], best[what] / new[what]) for what in best}
        what = max(ratios, key=ratios.__getitem__)
        apart = ratios[what]
        worst = f"copies of {size_text(what)}" if isinstance(what, int) else what
        best = {what: max(best[what], new[what]) for what in best}
        if apart <= AGREE:
            return best, ""
    return best, (
        f"this machine is too noisy to say what it can do: after {SWEEPS} measurements {worst} "
        f"still differ by a factor of {apart:,.1f}"
    )


def _sweep(device: str) -> Rates:
    effort, gpu = EFFORTS[torch.device(device).type], device.startswith("cuda")
    rates: Rates = {nbytes: _copied(nbytes, device) for nbytes in effort.copied}
    for dtype in FLOP_DTYPES:
        size, took = effort.matrix, _product(dtype, device, SMALL_MATRIX, gpu)
        while size > SMALL_MATRIX and took * (size / SMALL_MATRIX) ** 3 > LONGEST_PRODUCT:
            size //= 2
        took = _product(dtype, device, size, gpu)
        rates[str(dtype).removeprefix("torch.")] = 2 * size**3 / took
    return rates


def _product(dtype: torch.dtype, device: str, size: int, gpu: bool) -> float:
    """Seconds of a product of square matrices."""
    calls = EFFORTS[torch.device(device).type].calls
    return min(_fastest(product, calls, gpu) for product in _products(dtype, device, size))


def _copied(nbytes: int, device: str) -> float:
    """Bytes per second, read and written, of a copy."""
    source = torch.ones(nbytes // 8, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    gpu = device.startswith("cuda")
    calls = EFFORTS["cuda" if gpu else "cpu"].calls
    return nbytes / _fastest(partial(target.copy_, source), calls, gpu)


def _is_old(kept: Ceilings) -> bool:
    return not kept.on or datetime.now() - datetime.fromisoformat(kept.on) > STALE_AFTER


def _products(dtype: torch.dtype, device: str, size: int) -> list[Callable[[], object]]:
    """Matrix products of several libraries; which one is the fastest depends on the machine."""
    a = torch.ones(size, size, dtype=dtype, device=device)
    ways: list[Callable[[], object]] = [partial(torch.mm, a, a)]
    if device == "cpu" and dtype == torch.float32 and torch.backends.mkldnn.is_available():
        packed = a.to_mkldnn()
        ways.append(partial(torch.nn.functional.linear, packed, packed))
    return ways


def _fastest(work: Callable[[], object], calls: int, gpu: bool) -> float:
    """Seconds of a call: the fastest of the samples taken within `SECONDS_EACH`."""
    work()
    start = clock_of(gpu)
    took: list[float] = []
    end = time.perf_counter() + SECONDS_EACH
    while not took or time.perf_counter() < end:
        stop = start()
        for _ in range(calls):
            work()
        took.append(stop()() / calls)
    return min(took)


def _kept_at(here: Machine) -> Path | None:
    try:
        folder = open_cache().root / "ceilings"
        folder.mkdir(mode=0o700, exist_ok=True)
    except (CacheRefused, OSError):
        return None
    key = hashlib.sha256(f"{here}\n{cpu_identity()}".encode()).hexdigest()[:16]
    return folder / f"{key}.json"
