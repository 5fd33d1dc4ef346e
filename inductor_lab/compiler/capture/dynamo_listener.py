"""Listen to what TorchDynamo reports while it compiles.

Torch has a structured trace log, made for tools (`TORCH_TRACE`, tlparse).  A handler on that logger
gets guards, graph breaks, symbols, recompile reasons and timings in this process, as dictionaries;
nothing is printed, no file is written, and Dynamo is not patched.  Bytecode comes from Dynamo's
bytecode hook, since the log has it for some frames only; single instructions from the log that
`TORCH_LOGS="trace_bytecode"` prints.
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
from inductor_lab.compiler.capture import events
from inductor_lab.compiler.capture.capture import AsCaptured, Bytecode, Capture
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.capture.symbolic_steps import StepRecord
from inductor_lab.compiler.torch_door import torch_api, torch_logs


@dataclass
class Record:
    """What was recorded, in order; `capture` turns it into a value."""

    events: list[events.Event] = field(default_factory=list)
    bytecode: list[tuple[str, CodeType, CodeType]] = field(default_factory=list)
    steps: StepRecord = field(default_factory=StepRecord)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """When Dynamo did what, in seconds since 1970."""
        return tuple(events.phases(self.events))

    def graph_so_far(self) -> tuple[str, ...]:
        """Lines of the graph that Dynamo was building last."""
        runs = self.steps.finished()
        return tuple(line for step in runs[-1].instructions for line in step.added) if runs else ()

    def capture(
        self, graphs: tuple[FxGraph, ...], as_captured: tuple[AsCaptured, ...] = ()
    ) -> Capture:
        """Everything recorded, with the graphs that the backend was given (in that order), and why
        others run in eager mode."""
        files = {code.co_filename for _, code, _ in self.bytecode}
        read = events.Reader(files | set(torch_logs.traced_files()))
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
    """Keeps the structured records of one thread."""

    def __init__(self, record: Record, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
        super().__init__(logging.DEBUG)
        self.record, self.wanted = record, wanted
        self.thread_id = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        metadata: dict[str, Any] = getattr(record, "metadata", None) or {}
        if record.thread in (None, self.thread_id) and self.wanted(metadata):
            payload = getattr(record, "payload", None)
            self.record.events.append(events.Event(metadata, payload))


@contextmanager
def recording(
    wanted: Callable[[Mapping[str, Any]], bool] = events.is_wanted,
) -> Iterator[Record]:
    """Record every compilation of this thread inside the block; may be nested, and other threads
    may record theirs meanwhile.  `wanted` chooses entries by their metadata.

    Once the last one is done, the logger is as it was, also if the user has tracing on.  Files that
    were written meanwhile, as before a reload, are read again: torch takes its lines from what
    Python has kept of them.
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
