"""Record what torch's allocators do while a function runs.

torch's profiler reports each allocation and each release of the allocators of a CPU and of a GPU,
also of memory that an operator needs only while it runs.  Marks divide this sequence: each event
belongs to the last mark before it.

    mark 0   +4.0 MB at 0x7f10
    mark 1   +2.0 MB at 0x7f50   -4.0 MB at 0x7f10
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

PREFIX = "inductor_lab memory mark "
DEVICE_TYPES = {"cpu": 0, "cuda": 1}
"""The numbers of device types in a trace of the profiler."""


@dataclass(frozen=True, slots=True)
class Event:
    """An allocation, or a release (`nbytes` is negative); `mark` is the last mark before it."""

    address: int
    nbytes: int
    mark: int


def emit_mark(number: int) -> None:
    """Put a mark between the events; numbers start at 0 and increase by 1."""
    with record_function(f"{PREFIX}{number}"):
        pass


LOG_LEVEL, SILENT = "KINETO_LOG_LEVEL", "99"


def start_profiler() -> None:
    """Load the profiler here: it takes seconds in the first process, and none in its forks.

    When it loads, it reads how much it may print; by default it prints two lines for each run.
    """
    set_by_user = os.environ.get(LOG_LEVEL)
    os.environ.setdefault(LOG_LEVEL, SILENT)
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True):
            pass
    finally:
        if set_by_user is None:
            os.environ.pop(LOG_LEVEL, None)


def record(work: Callable[[], Any], device: torch.device) -> tuple[Any, tuple[Event, ...]]:
    """Run `work` and return its result with the events of one device."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        result = work()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        seen.export_chrome_trace(str(path))
        trace = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    return result, tuple(_events(trace["traceEvents"], device))


def _events(entries: list[dict[str, Any]], device: torch.device) -> Iterator[Event]:
    mark = -1
    for entry in sorted((e for e in entries if "ts" in e), key=lambda e: float(e["ts"])):
        name, about = str(entry.get("name", "")), entry.get("args", {})
        if name.startswith(PREFIX) and entry.get("ph") == "X":
            mark = max(mark, int(name[len(PREFIX) :]))
        elif name == "[memory]" and _is_on(about, device) and about.get("Bytes"):
            yield Event(int(about["Addr"]), int(about["Bytes"]), mark)


def _is_on(about: dict[str, Any], device: torch.device) -> bool:
    if about.get("Device Type") != DEVICE_TYPES.get(device.type):
        return False
    return device.type == "cpu" or about.get("Device Id") == (device.index or 0)
