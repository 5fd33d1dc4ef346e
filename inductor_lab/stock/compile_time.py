"""`c.compile_time()`: what a compile by stock `torch.compile` costs, phase by phase, cold and warm.

    c = lab.inspect(f, x, compiler="stock")
    print(c.compile_time())

```
f: stock torch.compile 2.13.0
  cold  6.12 s, at most 212.4 MB of memory more than before
  warm  0.61 s, at most 31.9 MB of memory more than before; fx_graph hit, aotautograd hit

phases of the cold compile         seconds    own  calls  compiler
  async_compile.wait                  3.40   3.40      2  TorchInductor
  ...
```

The call is compiled twice, each time in a process of its own: with empty caches on disk, and again
with the caches of the first compile.  A cache that has no entry then says which part of its key
differs.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from inductor_lab.bench.contenders import caches_in
from inductor_lab.compiler.base.display import Documented, bytes_text
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.compiler.base.observer import Phase, Stopwatch, in_order
from inductor_lab.compiler.capture.dynamo_listener import recording
from inductor_lab.compiler.capture.events import Event
from inductor_lab.compiler.records import Call
from inductor_lab.debug.explore.what_if import call_of
from inductor_lab.debug.isolate import Tell, run_isolated
from inductor_lab.debug.memory.run_step import run_backward
from inductor_lab.debug.resident_memory import ResidentPeak
from inductor_lab.saved.documents import tool_types
from inductor_lab.saved.documents.kinds import document
from inductor_lab.stock.live import is_not_a_string
from inductor_lab.stock.phases import WHOLE_CALL, by_compiler
from inductor_lab.stock.stock_compilation import StockCompilation
from inductor_lab.stock.trace_causes import CacheReasons
from inductor_lab.stock.trace_index import kind_of

MOST_PHASES = 15
"""Maximum number of phases in the printed text."""
_CACHES = ("fx_graph_cache_", "aotautograd_cache_")


@dataclass(frozen=True, slots=True)
class PhaseCost:
    """All runs of one phase.

    seconds   with the phases inside it
    own       without them
    compiler  TorchDynamo, AOTAutograd or TorchInductor
    """

    name: str
    compiler: str
    seconds: float
    own: float
    calls: int


@dataclass(frozen=True)
class CompileCost:
    """One compile: the first call and its backward.

    peak     by how many bytes it increased the memory of its process; None if that is unknown
    caches   what stock's caches answered, in order: "fx_graph hit"
    reasons  why a cache had no entry
    phases   the phase with the most own seconds first
    """

    seconds: float
    peak: int | None
    caches: tuple[str, ...]
    reasons: tuple[str, ...]
    phases: tuple[PhaseCost, ...]

    def __str__(self) -> str:
        found = f"{self.seconds:.2f} s"
        if self.peak is not None:
            found += f", at most {bytes_text(self.peak)} of memory more than before"
        answers = ", ".join(dict.fromkeys(self.caches))
        return f"{found}; {answers}" if answers else found


@dataclass(frozen=True)
class CompileTime(Documented):
    """A cold and a warm compile of one call; made by `StockCompilation.compile_time`."""

    name: str
    torch_version: str
    cold: CompileCost
    warm: CompileCost

    def __repr__(self) -> str:
        return f"CompileTime({self.name}: cold {self.cold.seconds:.2f} s, " + (
            f"warm {self.warm.seconds:.2f} s)")  # fmt: skip

    def __str__(self) -> str:
        lines = [f"{self.name}: stock torch.compile {self.torch_version}", f"  cold  {self.cold}",
                 f"  warm  {self.warm}"]  # fmt: skip
        lines += [f"        {reason}" for reason in dict.fromkeys(self.warm.reasons)]
        head = "phases of the cold compile"
        lines += ["", f"{head:42}{'seconds':>9}{'own':>8}{'calls':>7}  compiler"]
        for each in self.cold.phases[:MOST_PHASES]:
            lines.append(f"  {each.name[:39]:40}{each.seconds:9.2f}{each.own:8.2f}{each.calls:7}"
                         f"  {each.compiler}")  # fmt: skip
        left = self.cold.phases[MOST_PHASES:]
        if left:
            lines.append(f"  {len(left)} others{'':29}{sum(each.own for each in left):17.2f}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        return document(tool_types.CompileTime(
            id="compile_time", summary=repr(self), kind="compile_time", name=self.name,
            torch_version=self.torch_version, cold=_cost(self.cold), warm=_cost(self.warm),
        ))  # fmt: skip


def _cost(cost: CompileCost) -> tool_types.CompileCost:
    return tool_types.CompileCost(
        seconds=cost.seconds, peak_bytes=cost.peak, caches=list(cost.caches),
        reasons=list(cost.reasons),
        phases=[tool_types.PhaseCost(name=each.name, compiler=each.compiler, seconds=each.seconds,
                                     own_seconds=each.own, calls=each.calls)
                for each in cost.phases],
    )  # fmt: skip


def compile_time(compilation: StockCompilation, *, limit: float = 600.0) -> CompileTime:
    """Implements `StockCompilation.compile_time`."""
    call = call_of(compilation)
    reasons = CacheReasons()
    with tempfile.TemporaryDirectory(prefix="lab-compile-", ignore_cleanup_errors=True) as folder:
        cold, warm = (_measured(call, Path(folder), reasons, limit) for _ in range(2))
    return CompileTime(compilation.name, compilation.torch_version, cold, warm)


def _measured(call: Call, folder: Path, reasons: CacheReasons, limit: float) -> CompileCost:
    """One compile in a fork, with the caches of a folder."""
    ended = run_isolated(partial(_compile, call, folder), limit)
    if ended.how != "returned":
        raise NotRunnable(f"the compile {ended}", todo="call lab.inspect(f, x, compiler='stock')")
    seconds, peak, phases, events = ended.value
    answers = (kind_of(event.metadata).replace("_cache_", " ") for event in events)
    return CompileCost(seconds, peak, tuple(answers), tuple(reasons.reasons(events)),
                       tuple(phase_costs(phases)))  # fmt: skip


def _compile(
    call: Call, folder: Path, tell: Tell
) -> tuple[float, int | None, tuple[Phase, ...], list[Event]]:
    """Compile and call the function; returns seconds, memory, phases and the caches' answers."""
    options = call.options
    compiled = torch.compile(
        call.fn, fullgraph=options.fullgraph, dynamic=options.dynamic, mode=options.mode
    )
    torch.compiler.reset()
    watch, peak = Stopwatch(), ResidentPeak()
    with caches_in(folder), recording(is_not_a_string) as record, watch.phase("total"):
        with torch.set_grad_enabled(call.with_grad):
            run_backward(compiled(*call.args, **dict(call.kwargs)))
    phases = by_compiler(in_order((*watch.phases, *record.phases)))
    answers = [event for event in record.events if kind_of(event.metadata).startswith(_CACHES)]
    return watch.seconds["total"], peak.bytes(), phases, answers


def phase_costs(phases: Iterable[Phase]) -> Iterator[PhaseCost]:
    """The phases by name, the one with the most own seconds first.

    A phase that runs inside another one begins after it and ends before it.
    """
    runs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    ordered = [phase for phase in in_order(phases) if phase.track != WHOLE_CALL]
    for phase, own in zip(ordered, _own_seconds(ordered), strict=True):
        runs[phase.name, phase.track].append((phase.seconds, own))
    costs = [PhaseCost(name, track, sum(s for s, _ in each), sum(own for _, own in each), len(each))
             for (name, track), each in runs.items()]  # fmt: skip
    yield from sorted(costs, key=lambda cost: -cost.own)


def _own_seconds(ordered: Sequence[Phase]) -> list[float]:
    own = [phase.seconds for phase in ordered]
    around: list[int] = []
    for number, phase in enumerate(ordered):
        while around and phase.start >= _end(ordered[around[-1]]):
            around.pop()
        if around:
            own[around[-1]] -= phase.seconds
        around.append(number)
    return [max(seconds, 0.0) for seconds in own]


def _end(phase: Phase) -> float:
    return phase.start + phase.seconds
