"""Report what is compiled while a program runs: when, why, for how long, and what each call ran.

    with lab.recompiles() as seen:
        for batch in batches:
            fast(batch)
    print(seen)

```
compiles: 2, 1.05 s of 3.20 s; recompiles: 1
  when     took  what
0.00 s  667.8 ms  0/0 f
0.89 s  386.9 ms  0/1 f again: tensor 'x' size mismatch at index 0. expected 4, actual 5 (of 0/0)
100 calls
1 to 3: 0/0
4 to 100: 0/1
```

In a notebook it is displayed as a timeline; `lab.recompiles(live=True)` updates it while the block
runs.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from inductor_lab.api.arguments import checked
from inductor_lab.compiler.base.display import Shown, counted, draw
from inductor_lab.compiler.capture import events, live_events
from inductor_lab.compiler.capture.capture import Recompile
from inductor_lab.compiler.step_time import duration
from inductor_lab.compiler.torch_door import torch_api, torch_logs
from inductor_lab.debug.recompiles import causes
from inductor_lab.debug.recompiles.graph_breaks import GraphBreaks
from inductor_lab.debug.recompiles.served import Call, Served, stretches
from inductor_lab.debug.recompiles.uncompiled import Uncompiled
from inductor_lab.saved.documents import of_compile, tool_types
from inductor_lab.saved.documents.kinds import document
from inductor_lab.stock.trace_causes import CACHE_ENTRIES, CacheReasons

WHOLE = "entire_frame_compile"
"""TorchDynamo's phase that contains all other phases of one compilation."""
TOO_MANY = "it has as many versions as torch._dynamo.config.recompile_limit allows"
_KEPT = (
    "chromium_event", "compilation_metrics", "create_symbol", "describe_source", "describe_tensor",
    "dynamo_cpp_guards_str", "guard_added_fast", "symbolic_shape_specialization",
)  # fmt: skip
"""The kinds of trace entries that are read, besides failed guards and graph breaks."""
_ARTIFACTS = ("recompile_reasons", "dynamo_graph_break_reason", *CACHE_ENTRIES)
MOST_LINES = 20
"""Maximum number of lines about calls in the printed text."""


@dataclass(frozen=True)
class Compiled:
    """One compilation of one frame.

    compile_id   TorchDynamo's compile id: `0/1` is the second compilation of the first frame
    function     its name
    when         seconds since the start of the block
    seconds      how long TorchDynamo blocked the call
    reasons      all failed guards of each existing version; empty for the first compilation
    refused      nothing was compiled, for example at the recompile limit: calls run in eager mode
    restarts     why TorchDynamo began its analysis of the frame again
    limit        the limit that was reached; "" if none
    specialized  sizes that were dynamic and became constant
    """

    compile_id: str
    function: str
    when: float
    seconds: float
    reasons: tuple[Recompile, ...] = ()
    refused: bool = False
    restarts: tuple[str, ...] = ()
    limit: str = ""
    specialized: tuple[causes.Specialized, ...] = ()

    @property
    def again(self) -> bool:
        """Is this a recompile: did guards of existing code fail?"""
        return bool(self.reasons)

    def __str__(self) -> str:
        what = f"{self.compile_id} {self.function}{' not compiled' if self.refused else ''}"
        head = f"{self.when:6.2f} s {duration(self.seconds):>9}  {what}"
        why = [str(r).partition(": ")[2] for r in self.reasons]
        more = [f"and: {reason}" for reason in why[1:]]
        more += [f"restarted: {reason}" for reason in self.restarts]
        more += [f"limit reached: {self.limit}"] * bool(self.limit)
        more += [line for each in self.specialized for line in str(each).split("\n")]
        return "\n".join([f"{head} again: {why[0]}" if why else head,
                          *(f"{'':20}{line}" for line in more)])  # fmt: skip


@dataclass(eq=False)
class Recompiles(Shown):
    """Every compilation in a block so far, in order, for every backend."""

    began: float = field(default_factory=time.time)
    ended: float | None = None
    _heard: list[events.Event] = field(default_factory=list)
    _code: dict[str, CodeType] = field(default_factory=dict)
    _served: Served = field(default_factory=Served)
    _uncompiled: Uncompiled = field(default_factory=Uncompiled)

    @property
    def calls(self) -> tuple[Call, ...]:
        """Each call of code that was compiled in the block, and the code that it ran."""
        return self._served.calls(self.began)

    @property
    def more_calls(self) -> int:
        """The number of calls that are counted but not stored, because there are too many."""
        return self._served.left_out

    @property
    def eager_calls(self) -> Mapping[str, int]:
        """By function: calls that matched no version and ran in eager mode, because the function
        had reached `torch._dynamo.config.recompile_limit`."""
        found: Counter[str] = Counter()
        for code, runs in tuple(self._uncompiled.runs.items()):
            found[code.co_name] += runs
        return found

    @property
    def compiled(self) -> tuple[Compiled, ...]:
        """The compilations in the order in which they began."""
        found = (self._compiled(name, heard) for name, heard in self._by_id().items() if name)
        return tuple(sorted(filter(None, found), key=lambda each: each.when))

    @property
    def varied(self) -> tuple[causes.Varied, ...]:
        """What differed between the calls that were compiled: the objects of failed guards."""
        facts = {name: causes.seen_values(heard) for name, heard in self._by_id().items()}
        return causes.varied([r for each in self.compiled for r in each.reasons], facts)

    @property
    def breaks(self) -> GraphBreaks:
        """All graph breaks in the block, each once; `breaks.write("breaks.txt")` for a report."""
        reader = live_events.live_reader({each.co_filename for each in self._code.values()})
        return GraphBreaks.of(reader.breaks(tuple(self._heard)))

    @property
    def cache_reasons(self) -> tuple[str, ...]:
        """Why caches of stock `torch.compile` had no entry, each with its compile id."""
        caches = CacheReasons()
        return tuple(f"{name} {reason}" for name, heard in self._by_id().items()
                     for reason in caches.reasons(heard))  # fmt: skip

    @property
    def codes(self) -> Mapping[str, CodeType]:
        """By compile id: the code that was compiled, as the user wrote it."""
        return dict(self._code)

    def _by_id(self) -> dict[str, list[events.Event]]:
        found: dict[str, list[events.Event]] = {}
        for event in tuple(self._heard):
            found.setdefault(event.compile_id, []).append(event)
        return found

    @property
    def has_recompiles(self) -> bool:
        """Were several versions of one frame compiled in the block?"""
        frames = Counter(each.compile_id.rpartition("/")[0] for each in self.compiled)
        return any(versions > 1 for versions in frames.values())

    def _compiled(self, compile_id: str, heard: list[events.Event]) -> Compiled | None:
        whole = [phase for phase in events.phases(heard) if phase.name == WHOLE]
        if not whole:
            return None
        code = self._code.get(compile_id)
        reader = live_events.live_reader({each.co_filename for each in self._code.values()})
        named = code or self._of_frame(compile_id)
        when, seconds = whole[0].start - self.began, sum(phase.seconds for phase in whole)
        name = named.co_name if named else ""
        restarts, limit = causes.restarts_and_limit(heard)
        return Compiled(compile_id, name, when, seconds, tuple(reader.recompiles(heard)),
                        code is None, restarts, limit,
                        tuple(causes.specializations(heard, reader)))  # fmt: skip

    def _look_for_refusal(self, event: events.Event) -> None:
        """After a compilation without a result, count calls that run in eager mode."""
        entry = json.loads(event.payload)
        over = entry["name"] == WHOLE and entry["ph"] == "E"
        code = self._of_frame(event.compile_id)
        if over and event.compile_id not in self._code and code is not None:
            self._uncompiled.watch(code)

    def _of_frame(self, compile_id: str) -> CodeType | None:
        """The code of an earlier version of the same frame."""
        frame = compile_id.rpartition("/")[0]
        return next((c for name, c in self._code.items() if name.rpartition("/")[0] == frame), None)

    @property
    def seconds(self) -> float:
        """The duration of the block, until now if it is still running."""
        return (self.ended or time.time()) - self.began

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        found = self.compiled
        kept = [each for each in found if not each.refused]
        return document(tool_types.Recompiles(
            id="recompiles",
            summary=repr(self),
            kind="recompiles",
            seconds=self.seconds,
            compiles=len(kept),
            recompiles=sum(each.again for each in kept),
            compiled=[_compile(each) for each in found],
            calls=[tool_types.Calls(first=first, last=last, compile_ids=list(served))
                   for first, last, served in stretches(self.calls)],
            eager_calls=dict(self.eager_calls),
            varied=[causes.varied_data(each) for each in self.varied],
            cache_reasons=list(self.cache_reasons),
        ))  # fmt: skip

    def __repr__(self) -> str:
        found = self.compiled
        took = duration(sum(each.seconds for each in found))
        found = tuple(each for each in found if not each.refused)
        again = sum(each.again for each in found)
        return f"compiles: {len(found)}, {took} of {self.seconds:.2f} s; recompiles: {again}"

    def __str__(self) -> str:
        found = self.compiled
        head = [f"{'when':>8} {'took':>9}  what"] if found else []
        varied = [f"varied: {each}" for each in self.varied]
        caches = [f"cache: {reason}" for reason in self.cache_reasons]
        return "\n".join(
            [repr(self), *head, *map(str, found), *varied, *caches, *self._call_lines()]
        )

    def _call_lines(self) -> Iterator[str]:
        calls = self.calls
        if calls:
            count = len(calls) + self.more_calls
            yield "1 call" if count == 1 else f"{count} calls"
        found = list(stretches(calls))
        for first, last, served in found[:MOST_LINES]:
            yield f"{first if first == last else f'{first} to {last}'}: {' '.join(served)}"
        if len(found) > MOST_LINES:
            yield f"and {len(found) - MOST_LINES} more ranges of calls"
        for name, runs in self.eager_calls.items():
            yield f"{counted(runs, 'call')} of {name} ran in eager mode: {TOO_MANY}"


def _compile(each: Compiled) -> tool_types.Compile:
    return tool_types.Compile(
        id=f"compile:{each.compile_id}", summary=str(each).split("\n")[0].strip(), kind="compile",
        compile_id=each.compile_id, function=each.function, when=each.when, seconds=each.seconds,
        refused=each.refused, reasons=[of_compile.recompile(reason) for reason in each.reasons],
        restarts=list(each.restarts), limit=each.limit,
        specialized=[causes.specialized_data(one) for one in each.specialized],
    )  # fmt: skip


class _Listener(logging.Handler):
    """Receives TorchDynamo's compile events, and adds notes to compiled code."""

    def __init__(self, seen: Recompiles) -> None:
        super().__init__(logging.DEBUG)
        self.seen = seen
        self._hook = torch_logs.on_bytecode(self._compiled)

    def emit(self, record: logging.LogRecord) -> None:
        metadata: Mapping[str, object] = getattr(record, "metadata", None) or {}
        event = events.Event(metadata, getattr(record, "payload", None))
        if "dynamo_start" in metadata:  # register last, so that other hooks see torch's own code
            self._hook.remove()
            self._hook = torch_logs.on_bytecode(self._compiled)
        if any(map(event.is_artifact, _ARTIFACTS)) or any(kind in metadata for kind in _KEPT):
            self.seen._heard.append(live_events.with_all_guards(event))
        if "chromium_event" in metadata:
            self.seen._look_for_refusal(event)

    def _compiled(self, original: CodeType, rewritten: CodeType) -> CodeType | None:
        compile_id = torch_api.compile_id()
        self.seen._code[compile_id] = original
        return self.seen._served.noting(compile_id, rewritten)

    def close(self) -> None:
        self._hook.remove()
        super().close()


@checked
@contextmanager
def recompiles(live: bool = False) -> Iterator[Recompiles]:
    """Record what TorchDynamo compiles in the block and which code each call runs.

    All threads and all backends are recorded.  Calls that run code compiled before the block are
    not recorded.  inductor_lab may compile C++ kernels in the background, so a first call can take
    longer than TorchDynamo blocked it.  Calls that run in eager mode because of the recompile limit
    are counted in `eager_calls`.  `live` updates a timeline in the output of a notebook cell while
    the block runs.
    """
    seen = Recompiles()
    listener = _Listener(seen)
    view = draw("live_recompiles", seen) if live else None
    if view is not None:
        seen._served.changed = view.update
    try:
        with torch_logs.traces_to(listener):
            yield seen
    finally:
        listener.close()
        seen._served.close()
        seen._uncompiled.close()
        seen.ended = time.time()
        if view is not None:
            view.finished()
