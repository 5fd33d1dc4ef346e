"""Races between the programs of a Triton kernel: accesses to one element in no order.

    program 0:  load 3   store 3            The programs run at the same time, so program 1 may load
    program 1:            load 3   store 3  before or after the store of program 0.

Accesses of two programs race if at least one writes, not both are atomic, and nothing orders them.
An atomic operation orders: what a program did before it comes before what another program does
after a later atomic operation on the same element.  Each program has a clock, which counts its
atomic operations, and knows for each other program which of its accesses came before.

Lamport 1978 (the order); Flanagan and Freund 2009, FastTrack (the clocks).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from inductor_lab.course.language import say

Clock = dict[int, int]
ACQUIRES, RELEASES = {"acquire", "acquire_release"}, {"release", "acquire_release"}


@dataclass(frozen=True)
class Access:
    """One load or store of one program.

    program   its number in the grid, the last axis counted first
    argument  the number of the tensor; `elements` are places in it
    masked    the number of lanes that are masked off
    order     of an atomic operation: "acquire_release", "relaxed", ...; "" for a plain one
    line      the line of the kernel, "" if it is not known
    """

    program: int
    writes: bool
    argument: int
    elements: tuple[int, ...]
    masked: int
    order: str = ""
    line: str = ""


@dataclass(frozen=True)
class Race:
    """Two accesses of different programs to one element, in no order."""

    argument: int
    element: int
    first: Access
    second: Access

    def __str__(self) -> str:
        text = say(
            "a race: programs {p} and {q} access element {e} of argument {n} in no order",
            p=self.first.program, q=self.second.program, e=self.element, n=self.argument,
        )  # fmt: skip
        return "\n".join([text, *(f"    {self._one(each)}" for each in (self.first, self.second))])

    def _one(self, access: Access) -> str:
        how = "writes" if access.writes else "reads"
        text = say(f"program {{p}} {how} it", p=access.program)
        return f"{text}: {access.line}" if access.line else text


@dataclass
class _Element:
    """The last write, and the last read of each program, with the clock of the program then."""

    write: tuple[Access, int] | None = None
    reads: dict[int, tuple[Access, int]] = field(default_factory=dict)


def races(accesses: Iterable[Access]) -> Iterator[Race]:
    """Each element with a race, once: the first pair.  `accesses` are in the order of one run."""
    elements: dict[tuple[int, int], _Element] = defaultdict(_Element)
    known: dict[int, Clock] = defaultdict(dict)
    clocks: dict[int, int] = defaultdict(int)
    released: dict[tuple[int, int], Clock] = defaultdict(dict)
    reported = set[tuple[int, int]]()
    for access in accesses:
        mine, places = known[access.program], [(access.argument, e) for e in access.elements]
        for place in places if access.order in ACQUIRES else ():
            _join(mine, released[place])
        for place in places:
            other = _conflict(elements[place], access, mine)
            if other is not None and place not in reported:
                reported.add(place)
                yield Race(*place, other, access)
            now = access, clocks[access.program]
            if access.writes:
                elements[place] = _Element(now)
            else:
                elements[place].reads[access.program] = now
        if access.order in RELEASES:
            clocks[access.program] += 1
            for place in places:
                _join(released[place], mine | {access.program: clocks[access.program]})


def _join(into: Clock, other: Clock) -> None:
    for program, clock in other.items():
        into[program] = max(into.get(program, 0), clock)


def _conflict(element: _Element, access: Access, known: Clock) -> Access | None:
    """An earlier access that races with this one."""
    others = [element.write] if element.write else []
    if access.writes:
        others += element.reads.values()
    for other, clock in others:
        both_atomic = bool(other.order and access.order)
        before = known.get(other.program, 0) > clock
        if other.program != access.program and not both_atomic and not before:
            return other
    return None
