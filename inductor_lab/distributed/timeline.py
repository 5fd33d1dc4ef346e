"""Predict the communication and computation of one call over time.

    work   ▇▇▇▇▇▇▇▇   ▇▇▇▇▇▇▇▇▇▇▇▇
    wire           ▇▇▇▇▇▇▇▇
    wait                          ▇▇        exposed: no other work is left

The host program is simulated step by step with two clocks.  The time of a kernel comes from a
profile of the call if there is one, else from the roof of assumed rates.  The time of a collective
is never measured: it is the ring's lower bound for a link of a given rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from inductor_lab.api.arguments import Count, checked
from inductor_lab.compiler.base.display import Shown, bytes_text
from inductor_lab.compiler.base.observer import Phase
from inductor_lab.compiler.ir.collective import RATES, Rates
from inductor_lab.compiler.ir.effects import Effect
from inductor_lab.compiler.records import CompiledPart, Record
from inductor_lab.compiler.schedule.cost import extern_cost
from inductor_lab.compiler.schedule.order.overlap import Clock, bytes_on_wire
from inductor_lab.compiler.schedule.schedule import Group
from inductor_lab.compiler.step_time import duration
from inductor_lab.debug.profile import Profile

NVLINK = RATES["cuda"]
"""GPUs of one host: 200 GB/s to the next GPU, 20 µs per hop."""

INFINIBAND = replace(NVLINK, link=5e10, latency=3e-5)
"""Hosts with a 400 Gb/s adapter for each GPU: 50 GB/s, 30 µs per hop."""

HOST = 8
"""The number of GPUs in one host: larger rings use the rate between hosts."""

MORE = (8, 64, 1024)
"""Further group sizes that a timeline's text lists."""


@dataclass(frozen=True, slots=True)
class Span:
    """A step in predicted time, in seconds from the start of the call.

    part   such as "g0.forward"
    lane   "work", "wire", or "wait" for time without other work
    nbytes bytes that one rank sends; 0 for work
    """

    part: str
    name: str
    lane: str
    start: float
    end: float
    nbytes: int = 0

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, eq=False)
class Timeline(Shown):
    """The prediction of one call on one of `ranks` ranks (see the module's docstring)."""

    name: str
    ranks: int
    rates: Rates
    spans: tuple[Span, ...]
    _of: tuple[Record, Profile | None]

    @property
    def seconds(self) -> float:
        return max((span.end for span in self.spans), default=0.0)

    @property
    def wire(self) -> float:
        """Seconds of communication."""
        return self._total("wire")

    @property
    def exposed(self) -> float:
        """Seconds of communication without concurrent work."""
        return self._total("wait")

    @property
    def hidden(self) -> float:
        """Seconds of communication with concurrent work."""
        return max(self.wire - self.exposed, 0.0)

    @property
    def sent(self) -> int:
        """Bytes that a rank sends."""
        return sum(span.nbytes for span in self.spans)

    @property
    def collectives(self) -> tuple[Span, ...]:
        return tuple(span for span in self.spans if span.lane == "wire")

    @property
    def events(self) -> tuple[Phase, ...]:
        """The spans for drawing: one track for each lane."""
        order = ("work", "wire", "wait")
        ordered = sorted(self.spans, key=lambda span: (order.index(span.lane), span.start))
        return tuple(Phase(s.name, s.lane, s.start, s.seconds) for s in ordered if s.seconds)

    def at(self, ranks: int, rates: Rates | None = None) -> Timeline:
        """The same program and the same work per rank in a group of another size."""
        record, profile = self._of
        return timeline(record, ranks, profile, rates)

    @property
    def groups(self) -> tuple[Timeline, ...]:
        """The call in this group, and in the groups of `MORE` ranks."""
        more = (self.at(ranks) for ranks in MORE if ranks != self.ranks)
        return (self, *more)

    @property
    def assumed(self) -> str:
        """One sentence about the sources of these times."""
        profile = self._of[1]
        how = "assumed" if profile is None else "measured"
        paper = f"on paper: work as {how}, the wire by the ring's lower bound on the link"
        rows = () if profile is None else profile.rows
        waits = [row for row in rows if "wait_tensor" in row.name]
        if waits:
            paper += f"; in the profile, {duration(sum(r.seconds for r in waits))} were waited"
        return paper

    def _total(self, lane: str) -> float:
        return sum(span.seconds for span in self.spans if span.lane == lane)

    def __repr__(self) -> str:
        return (
            f"Timeline({self.name} on {self.ranks} ranks: {duration(self.seconds)}, "
            f"{bytes_text(self.sent)} sent in {duration(self.wire)}, "
            f"{duration(self.exposed)} of it exposed)"
        )

    def __str__(self) -> str:
        lines = [repr(self), f"{'':24}{'sent':>10}{'on the wire':>13}  from"]
        for span in self.collectives:
            took = duration(span.seconds)
            start = duration(span.start)
            lines.append(f"{span.name:24}{bytes_text(span.nbytes):>10}{took:>13}  {start}")
        lines.append(f"{'ranks':>6}{'a call':>12}{'on the wire':>13}{'exposed':>12}")
        for there in self.groups:
            times = duration(there.seconds), duration(there.wire), duration(there.exposed)
            lines.append(f"{there.ranks:6}{times[0]:>12}{times[1]:>13}{times[2]:>12}")
        return "\n".join([*lines, self.assumed])


@checked
def timeline(
    compilation: Record, ranks: Count, profile: Profile | None = None, rates: Rates | None = None
) -> Timeline:
    """Predict when each step and each collective of a call runs on each of `ranks` ranks.

    The times of kernels and libraries come from `profile` (`c.profile()`); without it, they are the
    roof of `rates` (by default a laptop's core, or an H100).  The link is also that of `rates`: by
    default NVLink up to 8 GPUs, and InfiniBand for more.

    Raises BadArguments for a group of fewer than one rank.
    """
    chosen = rates or _rates(compilation.parts, ranks)
    rows = profile.rows if profile else ()
    took = {(row.part, row.name): row.seconds / row.calls for row in rows}
    clock = Clock(chosen, {}, ranks)
    spans = [
        span
        for number, graph in enumerate(compilation.graphs)
        for part in graph.parts
        for span in _spans(part, f"g{number}.{part.name}", clock, took)
    ]
    kept = (compilation, profile)
    return Timeline(compilation.name, ranks, chosen, tuple(spans), kept)


def _rates(parts: Iterable[CompiledPart], ranks: int) -> Rates:
    devices = {b.device.split(":")[0] for part in parts for b in part.loops.buffers.values()}
    if "cuda" not in devices:
        return RATES["cpu"]
    return NVLINK if ranks <= HOST else INFINIBAND


def _spans(
    part: CompiledPart, scope: str, clock: Clock, took: Mapping[tuple[str, str], float]
) -> Iterator[Span]:
    clock.buffers = part.loops.buffers
    kernels = iter(part.kernels)
    for step in part.schedule.steps:
        before = clock.now
        if isinstance(step, Group):
            name, cost = next(kernels).name, step.cost
        else:
            name, cost = step.op, extern_cost(step, clock.buffers)
        short = name if isinstance(step, Group) else ".".join(name.split(".")[:2])
        if isinstance(step, Group) or step.effect not in (Effect.COLLECTIVE, Effect.WAIT):
            clock.now += took.get((scope, name)) or clock.rates.work(cost.bytes, cost.flops)
            yield Span(scope, short, "work", before, clock.now)
        elif step.effect is Effect.COLLECTIVE:
            start, end = clock.begin(step)
            sent = bytes_on_wire(step, clock.buffers, clock.ranks)
            yield Span(scope, short.split(".")[1], "wire", start, end, sent)
        else:
            clock.wait(step)
            yield Span(scope, "wait", "wait", before, clock.now)
