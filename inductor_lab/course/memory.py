"""Memory measurements on this machine: bandwidth, page faults, and a race of memory traffic.

rate = copy_rate()                      bytes per second
race(rate, "x", (("before", before_passes), ("fused", after_passes)))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.records import CompiledPart
from inductor_lab.compiler.schedule.memory import storage_bytes
from inductor_lab.course.language import Both, one_of, say
from inductor_lab.course.pictures import Picture, drawn

Pass = tuple[str, int, bool]
"""A buffer, its bytes, and whether it is written."""


def seconds_of(call: Callable[[], Any], seconds: float = 0.4) -> float:
    """The fastest of at least five calls in this many seconds; other processes only add time."""
    found: list[float] = []
    while len(found) < 5 or sum(found) < seconds:
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def copy_rate(nbytes: int = 64 << 20) -> float:
    """Bytes per second that a copy reads and writes."""
    source = torch.ones(nbytes // 4)
    target = torch.empty_like(source)
    return 2 * nbytes / seconds_of(lambda: target.copy_(source))


def largest_cache() -> int | None:
    """Bytes of the processor's largest cache; None if the system does not report it."""
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        try:
            text = path.read_text(encoding="ascii").strip()
            sizes.append(int(text[:-1]) << {"K": 10, "M": 20, "G": 30}[text[-1]])
        except (OSError, ValueError, KeyError, IndexError):
            continue
    return max(sizes, default=None)


def page_faults() -> int | None:
    """Page faults of this process so far that needed no disk; None if unknown."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def passes_of(part: CompiledPart) -> list[Pass]:
    """The reads and writes of a part's generated kernels, in order; each buffer once per kernel."""
    return [
        (p.buffer, int(storage_bytes(kernel.buffers[p.buffer])), p.role != "in")
        for kernel in part.kernels
        for p in kernel.parameters
        if p.buffer is not None
    ]


def race(rate: float, title: Both, programs: Sequence[tuple[Both, Sequence[Pass]]]) -> Picture:
    """An animation of the memory passes of programs, timed at `rate` bytes per second."""
    words = say("memory,processor,read,write,pause").split(",")
    lanes, lines = [], [one_of(title)]
    for named, passes in programs:
        name = one_of(named)
        total = sum(nbytes for _, nbytes, _ in passes)
        said = say(
            "{n} passes, {b}, {t:.1f} ms",
            n=len(passes), b=bytes_text(total), t=total / rate * 1e3,
        )  # fmt: skip
        legs = [(buffer, nbytes / rate, writes) for buffer, nbytes, writes in passes]
        lanes.append((f"{name}: {said}", legs))
        steps = ", ".join(f"{words[2 + writes]} {buffer}" for buffer, _, writes in passes)
        lines.append(f"  {name}: {said}: {steps}")
    return drawn("course_race", lines[0], "\n".join(lines), lanes, tuple(words))
