"""Compile time as a Chrome trace: JSON for Perfetto (ui.perfetto.dev) and chrome://tracing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.display import write_text
from inductor_lab.compiler.base.observer import Phase


def chrome_trace(name: str, phases: Iterable[Phase]) -> dict[str, Any]:
    """Complete events ("ph": "X", microseconds), one thread for each track."""
    phases = list(phases)
    tracks = list(dict.fromkeys(phase.track for phase in phases))
    named = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": number, "args": {"name": track}}
        for number, track in enumerate(tracks)
    ]
    named.append({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": f"compile {name}"}})
    events = [
        {
            "ph": "X",
            "name": phase.name,
            "cat": phase.track,
            "pid": 1,
            "tid": tracks.index(phase.track),
            "ts": round(1e6 * phase.start, 1),
            "dur": round(1e6 * phase.seconds, 1),
        }
        for phase in phases
    ]
    return {"traceEvents": [*named, *events], "displayTimeUnit": "ms"}


def write_trace(path: Path, name: str, phases: Iterable[Phase]) -> Path:
    """Write the trace; raises CannotWrite."""
    return write_text(path, json.dumps(chrome_trace(name, phases)), "trace")
