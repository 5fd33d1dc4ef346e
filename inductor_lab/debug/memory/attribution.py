"""Who keeps each byte at the peak of a run, from its events, its marks and its facts.

The events are replayed.  A fact says what is at an address at a mark, so it belongs to the
allocation that is alive there at that time.  Views of a tensor have one storage and one allocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.debug.memory.allocations import Event
from inductor_lab.debug.memory.marks import Fact, Mark
from inductor_lab.debug.memory.run_step import Owned
from inductor_lab.debug.memory.step_memory import Holder, Kind, Point


@dataclass
class Allocation:
    """Memory between its allocation and its release; `born` is -1 if it existed before the step."""

    address: int
    nbytes: int
    born: int
    owned: Owned | None = None
    facts: list[Fact] = field(default_factory=list)


@dataclass(frozen=True)
class Replayed:
    """The bytes alive after each event, and what is alive at the peak."""

    base_bytes: int
    points: tuple[Point, ...]
    peak: int
    alive: tuple[Allocation, ...]
    kept_bytes: int

    @property
    def peak_bytes(self) -> int:
        return self.points[self.peak].nbytes if self.points else self.base_bytes


def base_allocations(owned: Iterable[Owned]) -> dict[int, Allocation]:
    """The memory that exists before the step, by address."""
    return {o.address: Allocation(o.address, o.nbytes, -1, o) for o in owned if o.nbytes}


def replay(
    events: Sequence[Event], marks: Sequence[Mark], facts: Iterable[Fact],
    base: Mapping[int, Allocation],
) -> Replayed:  # fmt: skip
    """Replay the events of one run."""
    live = dict(base)
    alive = base_bytes = sum(each.nbytes for each in base.values())
    waiting = sorted(facts, key=lambda fact: fact.mark, reverse=True)
    points: list[Point] = []
    most, peak = base_bytes, -1
    at_peak = list(live.values())
    kept = -1

    def learn(until: int) -> None:
        while waiting and waiting[-1].mark <= until:
            fact = waiting.pop()
            if fact.address in live:
                live[fact.address].facts.append(fact)

    for event in events:
        mark = marks[event.mark] if event.mark >= 0 else None
        if kept < 0 and mark is not None and mark.phase == "backward":
            learn(event.mark)
            kept = _kept(live.values(), event.mark)
        learn(event.mark)
        if event.nbytes > 0:
            live[event.address] = Allocation(event.address, event.nbytes, event.mark)
            alive += event.nbytes
        else:
            freed = live.pop(event.address, None)
            if freed is None:  # memory of an earlier call
                continue
            alive -= freed.nbytes
        points.append(Point(mark.phase if mark else "forward", alive))
        if alive > most:
            most, peak, at_peak = alive, len(points) - 1, list(live.values())
    learn(len(marks))
    return Replayed(base_bytes, tuple(points), peak, tuple(at_peak), max(kept, 0))


def peak_mark(events: Sequence[Event], base: Mapping[int, Allocation]) -> int:
    """The mark before the peak; -1 if there is none."""
    live = {address: each.nbytes for address, each in base.items()}
    alive = most = sum(live.values())
    found = -1
    for event in events:
        if event.nbytes > 0:
            live[event.address] = event.nbytes
            alive += event.nbytes
        else:
            alive -= live.pop(event.address, 0)
        if alive > most:
            most, found = alive, event.mark
    return found


def _kept(live: Iterable[Allocation], mark: int) -> int:
    """Bytes that were made in the forward and are saved when the backward begins."""
    return sum(a.nbytes for a in live if a.born >= 0 and any(_saves(f, mark) for f in a.facts))


def _saves(fact: Fact, mark: int) -> bool:
    return fact.role == "saved" and fact.mark <= mark and (fact.until is None or fact.until >= mark)


def holders(
    alive: Iterable[Allocation], marks: Sequence[Mark], peak: int
) -> tuple[Holder, ...]:
    """Who keeps the memory that is alive after mark `peak`, the largest first."""
    grouped: dict[tuple[object, ...], Holder] = {}
    for each in alive:
        holder = _holder(each, marks, peak)
        key = (holder.kind, holder.name, holder.why, holder.place, holder.maker, holder.lines)
        known = grouped.get(key)
        if known is not None:
            holder = known.plus(holder)
        grouped[key] = holder
    return tuple(sorted(grouped.values(), key=lambda h: (-h.nbytes, h.kind, h.name)))


def _holder(each: Allocation, marks: Sequence[Mark], peak: int) -> Holder:
    made = marks[each.born] if each.born >= 0 else None
    valid = [fact for fact in each.facts if _holds(fact, peak)]
    roles: dict[str, Fact] = {}
    for fact in valid:
        roles.setdefault(fact.role, fact)
    names = tuple(dict.fromkeys(f.name for f in valid if f.role in ("variable", "buffer")))
    maker = made.what if made is not None else ""
    place = made.place if made is not None else None
    if each.owned is not None:
        return Holder(each.owned.kind, each.nbytes, each.owned.name, before=True)
    for role, kind in _ORDER.items():
        if role in roles:
            fact = roles[role]
            name = fact.name or ", ".join(names)
            found = Holder(kind, each.nbytes, name, fact.why, _place(fact, place), maker)
            return found.with_lines(fact.lines)
    if made is None:
        return Holder("temporary", each.nbytes, ", ".join(names))
    name = ", ".join(names) or made.value
    return Holder("temporary", each.nbytes, name, _why_temporary(each, made), place, maker)


def _why_temporary(each: Allocation, made: Mark) -> str:
    if made.again:
        return "a checkpoint computes it again"
    inside = made.value or any(fact.role == "made" for fact in each.facts)
    said = f"in {made.node}" if made.node else ""
    return said if inside else f"inside of the operator {said}".rstrip()


_ORDER: Mapping[str, Kind] = {
    "saved": "saved", "gradient": "gradient", "output": "output", "checkpoint": "checkpoint",
    "variable": "variable", "pool": "pool", "buffer": "temporary",
}  # fmt: skip
"""Role of a fact → kind of a holder; the first one that applies is used."""


def _place(fact: Fact, made: Span | None) -> Span | None:
    return fact.place if fact.role in ("saved", "buffer") and fact.place else made


def _holds(fact: Fact, peak: int) -> bool:
    """Does a fact hold at the peak?"""
    if fact.role == "saved":
        return _saves(fact, peak)
    if fact.role in ("variable", "buffer", "pool"):
        return fact.mark == peak
    if fact.role == "checkpoint":
        return fact.mark <= peak
    return fact.role in ("output", "gradient")
