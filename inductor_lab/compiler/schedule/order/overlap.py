"""Overlap communication with computation.

A collective starts as soon as its argument is available, and the steps that it needs run before
other work.  The wait comes when another step needs the result and, as predicted, it has arrived.

    s = wait(all_reduce(dx))              s = all_reduce(dx)
    db = sum(dy)                     →    db = sum(dy)              does not need s
    y = relu'(s)                          y = relu'(wait(s))

The prediction is a simulated clock that computation and communication advance.  Its rates are
constants, not measured on this machine: all ranks must choose the same order.

Inductor: `comms.py`, `reorder_compute_for_overlap` and `sink_waits`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from inductor_lab.compiler.ir.collective import RATES, Rates
from inductor_lab.compiler.ir.effects import Effect
from inductor_lab.compiler.ir.program import Buffer, ExternCall, LoopProgram, read_by, written_by
from inductor_lab.compiler.schedule.cost import cluster_cost, extern_cost
from inductor_lab.compiler.schedule.memory import storage_bytes
from inductor_lab.compiler.schedule.order.step_order import Order, Unit
from inductor_lab.compiler.schedule.schedule import Cost

PLANNED_RANKS = 2
"""The order is planned for this number of ranks: messages of a larger group take up to twice as
long."""


def bytes_on_wire(call: ExternCall, buffers: Mapping[str, Buffer], ranks: int) -> int:
    """The minimum number of bytes that one rank sends; a ring algorithm reaches this bound.

    With n ranks, each sends 2 (n-1)/n of the data for an all-reduce, and (n-1)/n for a gather,
    scatter or exchange.  (Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms", 2009.)
    """
    sides = written_by(call), read_by(call)
    largest = max(sum(storage_bytes(buffers[name]) for name in side) for side in sides)
    passes = 2 if "all_reduce" in call.op else 1
    return round(passes * (ranks - 1) / ranks * largest)


@dataclass
class Clock:
    """Simulated time of computation and communication, in seconds.

    One collective is sent at a time.
    """

    rates: Rates
    buffers: Mapping[str, Buffer]
    ranks: int
    now: float = 0.0
    free: float = 0.0
    arrivals: dict[str, float] = field(default_factory=dict)

    def work(self, cost: Cost) -> None:
        self.now += self.rates.work(cost.bytes, cost.flops)

    def begin(self, call: ExternCall) -> tuple[float, float]:
        """Start a collective; returns the times at which sending starts and ends."""
        start = max(self.now, self.free)
        sent = bytes_on_wire(call, self.buffers, self.ranks)
        self.free = start + self.rates.wire(sent, self.ranks)
        self.arrivals.update(dict.fromkeys(written_by(call), self.free))
        return start, self.free

    def arrival(self, wait: ExternCall) -> float:
        return max((self.arrivals.get(name, 0.0) for name in read_by(wait)), default=0.0)

    def wait(self, call: ExternCall) -> None:
        """Advance to the arrival of the result."""
        self.now = max(self.now, self.arrival(call))


class Overlapping(Order):
    """An order that minimizes waiting time."""

    def __init__(self, units: Mapping[int, Unit], program: LoopProgram) -> None:
        super().__init__(units, program)
        self.units, self.clock = units, clock_for(program, PLANNED_RANKS)
        begin = (at for at, unit in units.items() if _is(unit, Effect.COLLECTIVE))
        self.coming = sorted(begin, reverse=True)
        self.urgent: set[int] = set()
        self.first_use = {at: min(users, default=len(units)) for at, users in self.users.items()}

    def next(self) -> int | None:
        first = super().next()
        if first is None:
            return None
        if self.coming and not self.urgent:
            self.urgent = self._sources(self.coming[-1])
        waits = [at for at in self.ready if _is(self.units[at], Effect.WAIT)]
        work = sorted(self.ready.difference(waits))
        begins = [at for at in work if _is(self.units[at], Effect.COLLECTIVE)]
        if begins or not waits:
            return min(begins or self.urgent.intersection(work) or work)
        if needed := self.urgent.intersection(work):
            return min(needed)
        wait = min(waits, key=self.first_use.__getitem__)
        call = self.units[wait]
        assert isinstance(call, ExternCall), "a wait is a call"
        due = not work or self.first_use[wait] < work[0]
        if due and (not work or self.clock.arrival(call) <= self.clock.now):
            return wait
        return work[0]

    def done(self, positions: Iterable[int]) -> None:
        positions = tuple(positions)
        for at in positions:
            unit = self.units[at]
            if not isinstance(unit, ExternCall):
                self.clock.work(cluster_cost(unit))
            elif unit.effect is Effect.COLLECTIVE:
                self.clock.begin(unit)
                self.coming.remove(at)
                self.urgent = set()
            elif unit.effect is Effect.WAIT:
                self.clock.wait(unit)
            else:
                self.clock.work(extern_cost(unit, self.clock.buffers))
        super().done(positions)

    def _sources(self, at: int) -> set[int]:
        """The unit, and all units that must still run before it."""
        found, waiting = set[int](), [at]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting.extend(self.needs[one] | self.waits[one])
        return found


def order_of(units: Mapping[int, Unit], program: LoopProgram) -> Order:
    """Program order, or an overlapping order if there are collectives."""
    sends = any(_is(unit, Effect.COLLECTIVE) for unit in units.values())
    return (Overlapping if sends else Order)(units, program)


def clock_for(program: LoopProgram, ranks: int) -> Clock:
    """A clock at zero, for the device that the program runs on."""
    devices = {buffer.device.split(":")[0] for buffer in program.buffers.values()}
    return Clock(RATES["cuda" if "cuda" in devices else "cpu"], program.buffers, ranks)


def _is(unit: Unit, effect: Effect) -> bool:
    return isinstance(unit, ExternCall) and unit.effect is effect
