"""Records what TorchDynamo reports while it compiles.

Torch has a structured trace log for tools (`TORCH_TRACE`, tlparse).  A handler on that logger
receives guards, graph breaks, symbols, recompile reasons and timings in this process, as
dictionaries.  Nothing is printed, no file is written, and Dynamo is not patched.  Bytecode comes
from Dynamo's bytecode hook, because the log has it only for some frames; single instructions come
from the log that `TORCH_LOGS="trace_bytecode"` prints.
"""

from __future__ import annotations

import dis
import linecache
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from inductor_lab.compiler.base.observer import Phase
from inductor_lab.compiler.capture import events, live_events
from inductor_lab.compiler.capture.capture import AsCaptured, Bytecode, Capture
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.capture.symbolic_steps import StepRecord
from inductor_lab.compiler.torch_door import torch_api, torch_logs


@dataclass
class Record:
    """The recorded entries, in order; `capture` converts them to a value."""

    events: list[events.Event] = field(default_factory=list)
    bytecode: list[tuple[str, CodeType, CodeType]] = field(default_factory=list)
    steps: StepRecord = field(default_factory=StepRecord)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Dynamo's phases, with times in seconds since 1970."""
        return tuple(events.phases(self.events))

    def graph_so_far(self) -> tuple[str, ...]:
        """Lines of the graph that Dynamo was tracing last."""
        runs = self.steps.finished()
        return tuple(line for step in runs[-1].instructions for line in step.added) if runs else ()

    def capture(
        self, graphs: tuple[FxGraph, ...], as_captured: tuple[AsCaptured, ...] = ()
    ) -> Capture:
        """Everything recorded, with the graphs that the backend got (in that order), and the
        reasons why other graphs run in eager mode."""
        files = {code.co_filename for _, code, _ in self.bytecode}
        read = live_events.live_reader(files | set(torch_logs.traced_files()))
        return Capture(
            graphs=graphs,
            guards=tuple(read.guards(self.events)),
            breaks=tuple(read.breaks(self.events)),
            bytecode=tuple(_bytecode(*entry) for entry in self.bytecode),
            symbols=tuple(dict.fromkeys(read.symbols(self.events))),
            recompiles=tuple(read.recompiles(self.events)),
            compile_ids=tuple(events.compile_ids(self.events)),
            seconds=events.seconds_by_phase(self.phases),
            runs=self.steps.finished(),
            as_captured=as_captured,
        )


def _bytecode(compile_id: str, original: CodeType, rewritten: CodeType) -> Bytecode:
    before, after = (dis.Bytecode(code).dis() for code in (original, rewritten))
    return Bytecode(compile_id, original.co_name, before, after)


class _Listener(logging.Handler):
    """Stores the structured records of one thread."""

    def __init__(self, record: Record, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
        super().__init__(logging.DEBUG)
        self.record, self.wanted = record, wanted
        self.thread_id = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        metadata: dict[str, Any] = getattr(record, "metadata", None) or {}
        if record.thread in (None, self.thread_id) and self.wanted(metadata):
            payload = getattr(record, "payload", None)
            self.record.events.append(live_events.with_all_guards(events.Event(metadata, payload)))


@contextmanager
def recording(
    wanted: Callable[[Mapping[str, Any]], bool] = events.is_wanted,
) -> Iterator[Record]:
    """Record every compilation of this thread inside the block.  Blocks may be nested, and other
    threads may record at the same time.  `wanted` selects entries by their metadata.

    After the last block the logger has its old settings, also if the user has enabled tracing.
    Files that changed in the meantime, for example before a reload, are read again, because torch
    uses Python's cache of source lines.
    """
    linecache.checkcache()
    record, thread = Record(), threading.get_ident()

    def keep_bytecode(original: CodeType, rewritten: CodeType) -> None:
        if threading.get_ident() == thread:
            record.bytecode.append((torch_api.compile_id(), original, rewritten))

    hook = torch_logs.on_bytecode(keep_bytecode)
    try:
        with (
            torch_logs.traces_to(_Listener(record, wanted)),
            torch_logs.watched_instructions(record.steps.tell),
        ):
            yield record
    finally:
        hook.remove()
