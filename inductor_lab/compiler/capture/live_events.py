"""Entries of the trace log of this process, while torch writes them."""

from __future__ import annotations

from inductor_lab.compiler.capture.events import Event, Reader
from inductor_lab.compiler.torch_door.torch_guards import failed_guards
from inductor_lab.compiler.torch_door.torch_logs import traced_file


def live_reader(files: set[str]) -> Reader:
    """A reader of the entries of this process."""
    return Reader(files, traced_file)


def with_all_guards(event: Event) -> Event:
    """While torch reports the first failed guards: the entry with all of them."""
    if not event.is_artifact("recompile_reasons"):
        return event
    return Event(event.metadata, failed_guards() or event.payload)
