"""The order in which kernels and library calls run.

Each step runs after the steps that it needs: those that compute its inputs and those that define
its symbolic sizes.  A step that writes to the storage of another buffer runs after all readers of
that buffer.  A step that computes the new value of an input runs, if possible, after all readers of
the input: then the value can be computed in the input's storage.  Collectives start in program
order, on all ranks.

Inductor: `scheduler.py`, `topological_sort_schedule` and the WeakDeps of mutations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TypeAlias

import sympy

from inductor_lab.compiler.ir.effects import Effect
from inductor_lab.compiler.ir.program import (
    BufferView,
    ExternCall,
    LoopProgram,
    Step,
    bound_by,
    read_by,
    storage_bases,
    symbols_of,
    written_by,
)
from inductor_lab.compiler.schedule.fusion.cluster import Cluster

Unit: TypeAlias = Cluster | ExternCall
"""A unit of execution, identified by its position in the program."""


class Order:
    """Chooses the next unit; `ready` are the units whose dependences have all run."""

    def __init__(self, units: Mapping[int, Unit], program: LoopProgram) -> None:
        maker = {name: at for at, unit in units.items() for name in _written(unit)}
        self.needs = {
            at: {maker[name] for name in _reads(unit) if name in maker}
            for at, unit in units.items()
        }
        binders = binders_of(units, program)
        for at, unit in units.items() if binders else ():
            self.needs[at] |= {binders[s] for s in _symbols(unit) if s in binders} - {at}
        self.waits = {at: set[int]() for at in units}
        readers: dict[str, set[int]] = {}
        for at, unit in units.items():
            for name in _reads(unit):
                readers.setdefault(name, set()).add(at)
        for new, base in storages_continued(program.steps).items():
            if new in maker:
                self.needs[maker[new]] |= readers.get(base, set()) - {maker[new]}
        for value, given in made_for_inputs(program).items():
            if value in maker:
                self.waits[maker[value]] |= readers.get(given, set()) - {maker[value]}
        calls = {at: unit for at, unit in sorted(units.items()) if isinstance(unit, ExternCall)}
        collectives = [at for at, call in calls.items() if call.effect is Effect.COLLECTIVE]
        for earlier, later in pairwise(collectives):
            self.waits[later].add(earlier)
        self.users: dict[int, list[int]] = {at: [] for at in units}
        for at in units:
            for source in self.needs[at] | self.waits[at]:
                self.users[source].append(at)
        self.left = set(units)
        self.ready = {at for at in units if not self.needs[at] and not self.waits[at]}

    def next(self) -> int | None:
        """The first unit, in program order, that is ready; None at the end."""
        if not self.ready and self.left:
            able = [at for at in self.left if not self.needs[at]]
            assert able, "the schedule has a cycle"
            self.ready.add(min(able))
        return min(self.ready, default=None)

    def done(self, positions: Iterable[int]) -> None:
        """Record that these units have run; units that waited only for them become ready."""
        for at in positions:
            self.ready.discard(at)
            self.left.discard(at)
            for user in self.users[at]:
                self.needs[user].discard(at)
                self.waits[user].discard(at)
                if user in self.left and not self.needs[user] and not self.waits[user]:
                    self.ready.add(user)


def storages_continued(steps: Iterable[Step]) -> dict[str, str]:
    """Buffer → the buffer whose storage it is written to."""
    return {new: base for step in steps for new, base in storage_bases(step).items()}


def made_for_inputs(program: LoopProgram) -> dict[str, str]:
    """The first buffer of the storage that gets an input's new value → the input."""
    continued = storages_continued(program.steps)
    found = {}
    for write, value in program.written_inputs:
        if isinstance(value, BufferView):
            first = value.buffer
            while first in continued and continued[first] not in program.inputs:
                first = continued[first]
            found[first] = write.input
    return found


def binders_of(
    steps: Mapping[int, Step | Cluster], program: LoopProgram
) -> dict[sympy.Symbol, int]:
    """Symbol → the step that defines its value, for symbols that no input defines."""
    given: set[object] = {entry for entry in program.inputs if not isinstance(entry, str)}
    for entry in program.inputs:
        given.update(program.buffers[entry].layout.size if isinstance(entry, str) else ())
    found: dict[sympy.Symbol, int] = {}
    for at, step in steps.items():
        if isinstance(step, ExternCall):
            for symbol in bound_by(step, program.buffers):
                if symbol not in given:
                    found.setdefault(symbol, at)
    return found


def _symbols(unit: Unit) -> frozenset[sympy.Symbol]:
    if isinstance(unit, ExternCall):
        return symbols_of(unit)
    nests = (facts.nest for facts in (*(m.facts for m in unit.members), *unit.inlined.values()))
    return frozenset[sympy.Symbol]().union(*map(symbols_of, nests))


def _written(unit: Unit) -> Iterable[str]:
    return unit.written if isinstance(unit, Cluster) else written_by(unit)


def _reads(unit: Unit) -> Iterable[str]:
    return unit.reads if isinstance(unit, Cluster) else read_by(unit)
