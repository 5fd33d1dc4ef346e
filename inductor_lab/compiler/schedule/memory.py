"""Memory planning: decide which buffers reuse the storage of other buffers.

A buffer is alive from the step that computes it to the last step that reads it.  A result may reuse
the storage of a dead buffer.  It may also reuse the storage of a buffer that the same kernel reads
last, if the kernel reads the old and writes the new element at the same place (in place).  The new
value of an input is computed in the input's storage under the same conditions.  A write to part of
a buffer uses its storage (`lower/passes/in_place.py`).  The storage of other inputs, of constants
and of outputs is never reused.

Inductor: `memory.py`, `codegen/wrapper.py` (`MemoryPlanningState`, `AllocateLine.plan`) and
`scheduler.py` (`SchedulerNode.decide_inplace_update`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

from inductor_lab.compiler.ir.effects import Effect
from inductor_lab.compiler.ir.expr import Masked
from inductor_lab.compiler.ir.index import Index, hint, is_int
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    BufferView,
    ExternCall,
    LoopProgram,
    Nest,
    Pointwise,
    Reduction,
    Scan,
    Scatter,
    Step,
    read_by,
    storage_bases,
    views_in,
    written_by,
)
from inductor_lab.compiler.schedule.demand import Demand, demand
from inductor_lab.compiler.schedule.facts import real_axes
from inductor_lab.compiler.schedule.order.step_order import made_for_inputs, storages_continued
from inductor_lab.compiler.schedule.schedule import Group, Lifetime, MemoryPlan, ScheduleStep


def plan_memory(
    program: LoopProgram, steps: Sequence[ScheduleStep], unfused: Sequence[Step] = (),
    share: bool = True,
) -> MemoryPlan:  # fmt: skip
    """The lifetimes of all computed buffers, and which buffer reuses which storage.

    Peaks count intermediates and outputs, each from the step that computes it to its last reader.
    `peak_after` counts shared storage once, as long as any of its buffers is alive.  A buffer whose
    storage is reused later is not in `freed`: the last buffer in the storage is.  `unfused` are the
    steps without fusion, for their peak; there too, a scatter uses the storage of its base.
    Without `share`, no other storage is reused.
    """
    last = last_uses(program, steps)
    lifetimes = buffer_lifetimes(program, steps, last)
    plan = _Plan(program, steps, lifetimes, last)
    for position, step in enumerate(steps):
        if isinstance(step, Group) and share:
            plan.reuse_in(position, step)
        elif isinstance(step, Group):
            plan.reuse_base_storage(position, storage_bases(step.nests[0]))
        else:
            plan.reuse_base_storage(position, storage_bases(step))
    freed: dict[int, list[str]] = {}
    taken = set(plan.reuse.values())
    for life in lifetimes:
        if life.last < len(steps) and life.buffer not in taken:
            freed.setdefault(life.last, []).append(life.buffer)
    alone = buffer_lifetimes(program, unfused, last_uses(program, unfused))
    continued = storages_continued(unfused)
    return MemoryPlan(
        lifetimes=lifetimes,
        reuse=plan.reuse,
        in_place=frozenset(plan.in_place),
        freed={position: tuple(names) for position, names in sorted(freed.items())},
        peak_before=plan.peak,
        peak_after=max(live_bytes(lifetimes, len(steps), plan.reuse), default=0),
        peak_unfused=max(live_bytes(alone, len(unfused), continued), default=0),
    )


def live_bytes(lives: Sequence[Lifetime], steps: int, reuse: Mapping[str, str]) -> list[int]:
    """Bytes alive at each step.

    A shared storage is alive from the first write to the last read of its buffers.  The storage of
    an input is always alive and is not counted.
    """
    change: Counter[int] = Counter()
    for first, held in storages(lives, reuse).items():
        if first == held[0].buffer:
            change[held[0].first] += held[0].nbytes
            change[max(life.last for life in held) + 1] -= held[0].nbytes
    return [*accumulate(change[position] for position in range(steps))]


def storages(lives: Sequence[Lifetime], reuse: Mapping[str, str]) -> dict[str, list[Lifetime]]:
    """The buffers of each storage, in order; the key is the buffer or input that used it first."""
    first: dict[str, str] = {}
    found: dict[str, list[Lifetime]] = {}
    for life in lives:
        old = reuse.get(life.buffer, life.buffer)
        first[life.buffer] = first.get(old, old)
        found.setdefault(first[life.buffer], []).append(life)
    return found


def buffer_lifetimes(
    program: LoopProgram, steps: Sequence[ScheduleStep | Step], last: Mapping[str, int]
) -> tuple[Lifetime, ...]:
    """The lifetime of each buffer that a step computes.

    The result of a library call may be a view of its arguments, so these live as long as the
    result.
    """
    made = ((name, position) for position, step in enumerate(steps) for name in made_by(step))
    return tuple(
        Lifetime(name, storage_bytes(program.buffers[name]), position, last[name])
        for name, position in made
    )


def last_uses(program: LoopProgram, steps: Sequence[ScheduleStep | Step]) -> dict[str, int]:
    """The last step that reads each buffer, including inputs; see `buffer_lifetimes`.

    A collective reads its arguments until all its results have been waited for.
    """
    last: dict[str, int] = {}
    sent: dict[str, frozenset[str]] = {}
    for position, step in enumerate(steps):
        needed = needed_by(step)
        used = {*made_by(step), *needed}
        for name in needed & sent.keys():
            used |= sent.pop(name)
        if isinstance(step, ExternCall) and step.effect is Effect.COLLECTIVE:
            sent.update(dict.fromkeys(made_by(step), needed))
        last.update(dict.fromkeys(used, position))
    last.update(dict.fromkeys((name for names in sent.values() for name in names), len(steps)))
    last.update(dict.fromkeys(program.output_buffers, len(steps)))
    for step in reversed(steps):
        if isinstance(step, ExternCall) and step.may_alias:
            end = max((last[name] for name in made_by(step)), default=0)
            for name in needed_by(step):
                last[name] = max(last[name], end)
    return last


def new_values(program: LoopProgram) -> dict[str, str]:
    """Buffers that could be computed in the storage of an input → the input.

    Such a buffer is not returned elsewhere and has the input's layout.  If the new value is written
    in several parts, the first buffer of this sequence is used.
    """
    outputs = [view.buffer for view in views_in(program.outputs)]
    first = {given: value for value, given in made_for_inputs(program).items()}
    found = {}
    for write, value in program.written_inputs:
        assert isinstance(value, BufferView), "an input becomes a tensor"
        here, there = program.buffers[value.buffer], program.buffers[write.input]
        alike = value.layout == here.layout == there.layout
        alike = alike and (here.dtype, here.device) == (there.dtype, there.device)
        times = 1 + len(write.returned)
        alone = outputs.count(value.buffer) == times and write.input not in outputs
        if write.method == "copy_" and alike and alone:
            found[first[write.input]] = write.input
    return found


def made_by(step: ScheduleStep | Step) -> tuple[str, ...]:
    """The buffers that a step stores to memory."""
    if not isinstance(step, Group):
        return written_by(step)
    return tuple(nest.buffer for nest in step.nests if nest.buffer in step.stored)


def needed_by(step: ScheduleStep | Step) -> frozenset[str]:
    """The buffers that a step reads from memory.

    The parts of a combo are separate: one may read a buffer that another recomputes.
    """
    if not isinstance(step, Group):
        return read_by(step)
    if step.combined:
        return frozenset[str]().union(*map(needed_by, step.combined))
    own = {*step.inlined, *(nest.buffer for nest in step.nests)}
    nests = (*step.nests, *step.inlined.values())
    return frozenset(name for nest in nests for name in read_by(nest) if name not in own)


def storage_bytes(buffer: Buffer) -> int:
    """Bytes of a buffer's storage, with symbols hinted."""
    if any(is_int(size, 0) for size in buffer.layout.size):
        return 0
    return hint(buffer.layout.storage_size) * buffer.dtype.itemsize


class _Plan:
    """The reuse decisions so far; `live[p]` is the number of bytes alive while step p runs."""

    def __init__(
        self,
        program: LoopProgram,
        steps: Sequence[ScheduleStep],
        lifetimes: Sequence[Lifetime],
        last: Mapping[str, int],
    ) -> None:
        self.buffers = program.buffers
        self.lives = {life.buffer: life for life in lifetimes}
        self.live = live_bytes(lifetimes, len(steps), {})
        self.peak = max(self.live, default=0)
        self.inputs = new_values(program)
        self.last = last
        self.reuse: dict[str, str] = {}
        self.in_place: set[str] = set()
        aliased = {n for s in steps if isinstance(s, ExternCall) and s.may_alias for n in _all(s)}
        aliased |= _unused_results(steps, last)
        self.holder: dict[str, str] = {}
        """Inputs whose storage has a new value → the buffer of this value."""
        self.available: dict[object, list[str]] = {}
        for life in lifetimes:
            if life.last < len(steps) and life.nbytes and life.buffer not in aliased:
                kind = _kind_of_storage(self.buffers[life.buffer])
                self.available.setdefault(kind, []).append(life.buffer)

    def reuse_in(self, position: int, group: Group) -> None:
        """Find a storage for each result of a group; a scatter uses the storage of its base."""
        (nest, *_) = group.nests
        if isinstance(nest, Scatter):
            self.reuse_base_storage(position, storage_bases(nest))
            return
        readers = Readers(group)
        for name in made_by(group):
            if self.reuse_input_storage(position, group, name, readers):
                continue
            candidates = self.available.get(_kind_of_storage(self.buffers[name]), [])
            fitting = [old for old in candidates if self.lives[old].first < position]
            here = [old for old in fitting if self.lives[old].last == position]
            safe = (old for old in here if runs_in_place(group, old, name, self.buffers, readers))
            old = next(safe, None)
            if old is not None:
                self.in_place.add(name)
                self.live[position] -= self.lives[old].nbytes
            else:
                dead = [old for old in fitting if self.lives[old].last < position]
                old = self.cheapest_dead_storage(dead, position)
                if old is None:
                    continue
                for gap in range(self.lives[old].last + 1, position):
                    self.live[gap] += self.lives[old].nbytes
            self.reuse[name] = old
            candidates.remove(old)

    def reuse_base_storage(self, position: int, continued: Mapping[str, str]) -> None:
        """Record that buffers use the storage of the buffers that they write to."""
        for new, old in continued.items():
            self.reuse[new] = old
            self.in_place.add(new)
            candidates = self.available.get(_kind_of_storage(self.buffers[old]), [])
            if old in candidates:
                candidates.remove(old)
            given = self.input_of(old)
            if given is None:
                self.live[position] -= self.lives[old].nbytes
                continue
            self.record_input_storage(given, new, position)

    def input_of(self, name: str) -> str | None:
        """The input whose storage a buffer uses, if any."""
        while name in self.reuse:
            name = self.reuse[name]
        return name if self.buffers[name].kind is BufferKind.INPUT else None

    def record_input_storage(self, given: str, new: str, position: int) -> None:
        """Record that the storage of an input has a new value, which needs no other memory."""
        self.holder[given] = new
        for later in range(position, min(self.lives[new].last + 1, len(self.live))):
            self.live[later] -= self.lives[new].nbytes
        candidates = self.available.get(_kind_of_storage(self.buffers[new]), [])
        if new in candidates:
            candidates.remove(new)

    def reuse_input_storage(self, position: int, group: Group, name: str, readers: Readers) -> bool:
        """Compute an input's new value in its storage, if nothing reads the old value later."""
        given = self.inputs.get(name)
        if given is None:
            return False
        old = self.holder.get(given, given)
        if max(self.last.get(given, -1), self.last.get(old, -1)) > position:
            return False
        in_use = self.last.get(old) == position
        if in_use and not runs_in_place(group, old, name, self.buffers, readers):
            return False
        self.reuse[name] = old
        self.in_place.add(name)
        self.record_input_storage(given, name, position)
        return True

    def cheapest_dead_storage(self, dead: Sequence[str], position: int) -> str | None:
        """The most recently dead storage that can be kept until now without raising the peak."""
        most, start = 0, position
        for old in sorted(dead, key=lambda name: self.lives[name].last, reverse=True):
            life = self.lives[old]
            most = max(most, max(self.live[life.last + 1 : start], default=0))
            start = life.last + 1
            if start == position or most + life.nbytes <= self.peak:
                return old
        return None


def _kind_of_storage(buffer: Buffer) -> object:
    """Buffers with equal keys can reuse each other's storage."""
    return buffer.device, buffer.dtype, buffer.layout.storage_size


def _unused_results(steps: Sequence[ScheduleStep], last: Mapping[str, int]) -> set[str]:
    """Unused results: the library may return None instead of them, so they have no storage."""
    calls = ((n, step) for n, step in enumerate(steps) if isinstance(step, ExternCall))
    return {name for position, call in calls for name in made_by(call) if last[name] == position}


def _all(call: ExternCall) -> set[str]:
    return {*written_by(call), *read_by(call)}


class Readers:
    """The parts of a group that read each buffer from memory."""

    def __init__(self, group: Group) -> None:
        self.parts: dict[str, list[Group]] = {}
        for part in group.parts:
            for name in needed_by(part):
                self.parts.setdefault(name, []).append(part)
        self._demands: dict[str, Demand] = {}

    def demand(self, nest: Nest, producers: Mapping[str, Pointwise]) -> Demand:
        """The demand of a nest; computed once, because a nest belongs to exactly one part."""
        if nest.buffer not in self._demands:
            self._demands[nest.buffer] = demand(nest, producers)
        return self._demands[nest.buffer]


def runs_in_place(
    group: Group, old: str, new: str, buffers: Mapping[str, Buffer], readers: Readers
) -> bool:
    """May the kernel that reads `old` overwrite it with `new`?

    Each element of `old` must have been read for the last time when the element at its place is
    written.  So the nest of `new` reads `old` only at this place.  Other nests read it at this
    place in the same loop body, or at the same point of the outer axes and complete before
    (reductions that `new` depends on; an element for a row is loaded once, before the inner loops).
    Other parts of a combo run at the same time, so they must not read it.
    """
    if any(new not in part.stored for part in readers.parts.get(old, ())):
        return False
    group = next(part for part in group.parts if new in part.stored)
    nests = {nest.buffer: nest for nest in group.nests}
    writer = nests[new]
    if isinstance(writer, Scatter):
        return writer.base == old
    producers = {**group.inlined, **{n.buffer: n for n in group.nests if isinstance(n, Pointwise)}}
    demanded = readers.demand(writer, producers)
    if isinstance(writer, Reduction) or all(buffer != old for buffer, _ in demanded):
        return False
    reading = {name: [place for buffer, place in readers.demand(nest, producers) if buffer == old]
               for name, nest in nests.items() if name != new}  # fmt: skip
    waits, outer_axes = _ancestors(writer, group), set(group.axes)
    before = (place for name in waits for place in reading.get(name, ()))
    of_row = {place for place in before if all(outer_axes.issuperset(i.axes()) for i in place)}
    own = [place for buffer, place in demanded if buffer == old and place not in of_row]
    store = tuple(Index.of(axis) for axis in writer.axes)
    here, there = buffers[old].layout, buffers[new].layout
    if len(own) != 1 or here.element(own[0]) != there.element(store):
        return False
    if any(isinstance(nest, Scan) for nest in group.nests):
        return not any(reading.values())  # they run interleaved
    if _one_body(group):
        elements = {here.element(place) for places in reading.values() for place in places}
        same = elements <= {there.element(store)}
        later = list(nests)[list(nests).index(new) :]
        reloads = any(reading.get(name) for name in later) and _has_masked_loads(writer, demanded)
        return same and not reloads
    outer = {d: index for d, index in enumerate(own[0]) if index.as_axis() in group.axes}
    if len(outer) < len(group.axes):
        return not any(reading.values())
    return all(
        not places
        or (name in waits and all(p[d] == index for p in places for d, index in outer.items()))
        for name, places in reading.items()
    )


def _one_body(group: Group) -> bool:
    """Do all nests run in one loop body?

    In one body, nests load and store one after the other, and a value is loaded only once, unless
    it was loaded under a mask.
    """
    axes = set(group.axes)
    return all(isinstance(n, Pointwise) and set(real_axes(n.axes)) == axes for n in group.nests)


def _has_masked_loads(nest: Nest, demanded: Demand) -> bool:
    """Does a nest have masked loads?"""
    bodies = (nest.body, *(body for body in demanded.values() if body is not None))
    return any(isinstance(node, Masked) for body in bodies for node in body.walk())


def _ancestors(nest: Nest, group: Group) -> set[str]:
    """The reductions of the group that must be complete before the nest can run."""
    makers: dict[str, Nest] = {**group.inlined, **{n.buffer: n for n in group.nests}}
    found: set[str] = set()
    waiting = [nest]
    while waiting:
        for name in read_by(waiting.pop()):
            if name in makers and name not in found:
                found.add(name)
                waiting.append(makers[name])
    return {name for name in found if not isinstance(makers[name], Pointwise)}
