"""`c.profile()`: the time of each kernel and library call, linked to the user's lines.

```
c.profile()                   # a table; in a notebook also bars and a timeline
c.profile().trace("run.json") # compile phases and one call as a Chrome trace
```

Calls with a timer on each step and calls without timers are interleaved, so that the table can
report the overhead of the timers.  The rest of the call is Python: guards, the host program,
autograd.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from time import perf_counter

from inductor_lab.bench.kernels import (
    ONE_AT_A_TIME,
    Clock,
    Tick,
    ready,
    running,
    seconds_of,
    with_times,
)
from inductor_lab.compiler.base.display import Shown
from inductor_lab.compiler.base.observer import Phase
from inductor_lab.compiler.records import AnyRecord, CompiledPart
from inductor_lab.compiler.schedule.schedule import ScheduleStep
from inductor_lab.compiler.step_time import StepTime, duration
from inductor_lab.saved.trace import write_trace

HOST = "between kernels"
"""The label of the rest of a call: Python, and the time that it waits."""
LONGEST = 70
"""Maximum number of characters shown of a line."""
FEWEST, PATIENCE = 3, 10.0
"""The minimum number of rounds, and the seconds after which no further round starts."""


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel with all its calls in one call of the user's function, or a library function with
    its calls for the same lines of user code.

    seconds   total time of these calls
    roof      minimum seconds for its bytes and flops on this machine; None if unknown
    nodes     FX nodes that it computes
    lines     the user's lines that these nodes come from
    """

    part: str
    name: str
    generated: bool
    calls: int
    seconds: float
    nbytes: int
    flops: int
    roof: float | None
    nodes: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def where(self) -> str:
        """`g0.forward  m.py:3  y = x.sin()`: the part and its first line, shortened."""
        more = f" and {len(self.lines) - 1} more" if len(self.lines) > 1 else ""
        return "  ".join([self.part, *map(shortened, self.lines[:1])]) + more

    @property
    def bandwidth(self) -> float:
        """Bytes per second."""
        return self.nbytes / self.seconds if self.seconds else 0.0

    @property
    def flop_rate(self) -> float:
        """Floating-point operations per second."""
        return self.flops / self.seconds if self.seconds else 0.0

    @property
    def of_roof(self) -> float | None:
        """The share of the roof that it reaches: 1 is the limit of the machine."""
        return None if self.roof is None or not self.seconds else self.roof / self.seconds


@dataclass(frozen=True, eq=False)
class Profile(Shown):
    """The time of a call, sorted from the slowest row to the fastest.

    call_seconds    seconds of a call with timers, the mean of `steps` calls: the sum of all rows
                    and `host_seconds`
    clock_cost      overhead of the timers, the median of all rounds: 0.02 is 2 %
    plain_seconds   seconds of a call without timers: `call_seconds` without `clock_cost`
    events          the steps of the median call, in seconds since its start
    phases          the phases of the compile, in seconds since its start
    """

    name: str
    steps: int
    call_seconds: float
    clock_cost: float
    rows: tuple[Row, ...]
    events: tuple[Phase, ...]
    phases: tuple[Phase, ...] = ()

    @property
    def plain_seconds(self) -> float:
        return self.call_seconds / (1 + self.clock_cost)

    @property
    def kernel_seconds(self) -> float:
        return sum(row.seconds for row in self.rows if row.generated)

    @property
    def library_seconds(self) -> float:
        return sum(row.seconds for row in self.rows if not row.generated)

    @property
    def host_seconds(self) -> float:
        """The time of a call without its kernels and library functions."""
        return self.call_seconds - self.kernel_seconds - self.library_seconds

    def share(self, seconds: float) -> float:
        """The share of the call's time, 0 to 1."""
        return seconds / self.call_seconds

    def __repr__(self) -> str:
        return (
            f"Profile({self.name}: {duration(self.call_seconds)}, "
            f"{self.share(self.kernel_seconds):.0%} kernels, "
            f"{self.share(self.library_seconds):.0%} libraries, "
            f"{self.share(self.host_seconds):.0%} {HOST})"
        )

    def __str__(self) -> str:
        width = max([len(row.name) for row in self.rows], default=10) + 2
        head = f"{'':{width}}{'share':>8}{'time':>11}{'calls':>7}{'GB/s':>10}{'GFLOP/s':>10}"
        known = any(row.of_roof is not None for row in self.rows)
        lines = [repr(self), head + "  of roof" * known + "  where"]
        for row in self.rows:
            roof = "" if row.of_roof is None else f"{row.of_roof:.0%}"
            lines.append(
                f"{row.name:{width}}{self.share(row.seconds):8.2%}{duration(row.seconds):>11}"
                f"{row.calls:7}{row.bandwidth / 1e9:10.3g}{row.flop_rate / 1e9:10.3g}"
                + f"{roof:>9}" * known
                + f"  {row.where}"
            )
        host = self.host_seconds
        lines.append(f"{HOST:{width}}{self.share(host):8.2%}{duration(host):>11}")
        known = self.clock_cost >= 0
        cost = f"{self.clock_cost:+.1%} with them" if known else "their cost is noise"
        return "\n".join([*lines, f"{duration(self.plain_seconds)} without timers ({cost})"])

    def trace(self, path: str | Path) -> Path:
        """Write the compile, followed by one call, as a Chrome trace; raises CannotWrite."""
        after = max((phase.start + phase.seconds for phase in self.phases), default=0.0)
        run = (Phase(e.name, e.track, after + e.start, e.seconds) for e in self.events)
        return write_trace(Path(path), self.name, (*self.phases, *run))


def shortened(line: str) -> str:
    """`/long/path/m.py:3  y = x.sin()` → `m.py:3  y = x.sin()`; long lines are cut."""
    place, _, code = line.partition("  ")
    shown = f"{PurePath(place).name}  {code}"
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def profile(compilation: AnyRecord, steps: int = 20) -> Profile:
    """Implements `Compilation.profile`."""
    with ONE_AT_A_TIME, ready(compilation) as (compilation, parts, run):
        clocks = {id(part): Clock.of(part) for part in parts}
        plain: list[float] = []
        took: list[float] = []
        ends: list[dict[int, int]] = []
        until = perf_counter() + PATIENCE
        for done in range(steps):
            if done >= FEWEST and perf_counter() > until:
                break
            plain.append(seconds_of(run))
            with running(parts, clocks):
                took.append(seconds_of(run))
            ends.append({name: len(clock.ticks) for name, clock in clocks.items()})
    measured, _ = with_times(compilation, clocks, statistics.median(took))
    call_seconds = statistics.fmean(took)
    rows = [
        row
        for before, after in zip(parts, _parts_like(parts, measured), strict=True)
        for row in _rows(after, _scope(compilation, before), clocks[id(before)].ticks, len(took))
    ]
    middle = took.index(statistics.median_low(took))
    starts = ends[middle - 1] if middle else dict.fromkeys(clocks, 0)
    ticks = [t for k, clock in clocks.items() for t in clock.ticks[starts[k] : ends[middle][k]]]
    return Profile(
        name=compilation.name,
        steps=len(took),
        call_seconds=call_seconds,
        clock_cost=statistics.median(t / p for t, p in zip(took, plain, strict=True)) - 1,
        rows=tuple(sorted(rows, key=lambda row: -row.seconds)),
        events=tuple(_events(ticks)),
        phases=compilation.phases,
    )


def _parts_like(parts: Sequence[CompiledPart], measured: AnyRecord) -> Iterator[CompiledPart]:
    """The parts of the measured compilation that correspond to `parts`, in order."""
    by_code = {id(part.executable): part for part in measured.parts}
    return (by_code[id(part.executable)] for part in parts)


def _scope(compilation: AnyRecord, part: CompiledPart) -> str:
    number = next(n for n, g in enumerate(compilation.graphs) if any(p is part for p in g.parts))
    return f"g{number}.{part.name}"


def _rows(part: CompiledPart, scope: str, ticks: Sequence[Tick], calls: int) -> Iterator[Row]:
    """One row for each kernel, and for each library function and the lines that it computes."""
    spans = _lines_by_node(part)
    steps = part.schedule.steps
    alike: dict[tuple[str, ...], list[tuple[int, ScheduleStep, StepTime]]] = {}
    for position, (step, time) in enumerate(zip(steps, part.times, strict=True)):
        key = (time.name, *(() if time.generated else _lines(step.origins, spans)))
        alike.setdefault(key, []).append((position, step, time))
    for (name, *_), uses in alike.items():
        nodes = {origin for _, step, _ in uses for origin in step.origins}
        seconds = sum(t.seconds() for p, _, _ in uses for t in ticks[p :: len(steps)]) / calls
        roofs = [time.roof for _, _, time in uses]
        yield Row(
            part=scope,
            name=name,
            generated=uses[0][2].generated,
            calls=len(uses),
            seconds=seconds,
            nbytes=sum(time.nbytes for _, _, time in uses),
            flops=sum(time.flops for _, _, time in uses),
            roof=None if None in roofs else sum(roof for roof in roofs if roof is not None),
            nodes=tuple(sorted(nodes)),
            lines=_lines(nodes, spans),
        )


def _lines(nodes: Iterable[str], spans: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(spans[node] for node in sorted(nodes) if node in spans))


def _lines_by_node(part: CompiledPart) -> Mapping[str, str]:
    graphs = [part.graph, *(step.after for step in part.rewrites.steps if step.after is not None)]
    return {
        node.name: f"{node.span.file}:{node.span.line}  {node.span.code}"
        for graph in graphs
        for node in graph.nodes
        if node.span is not None
    }


def _events(ticks: Sequence[Tick]) -> Iterator[Phase]:
    """Each step on its track, in the order of their start times."""
    ordered = sorted(ticks, key=lambda tick: tick.began)
    zero = ordered[0].began if ordered else 0.0
    for tick in ordered:
        track = "libraries" if "." in tick.name else "kernels"
        yield Phase(tick.name, track, tick.began - zero, tick.seconds())
