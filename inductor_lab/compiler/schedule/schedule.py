"""What the scheduler decided: groups in order, every decision with its reasons, and what it costs.

Inductor: `scheduler.py` (FusedSchedulerNode, can_fuse) and `memory.py`; there the reasons are
logged, here they are returned.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.compiler.base.errors import UnknownName
from inductor_lab.compiler.base.operations import perform
from inductor_lab.compiler.ir.expr import NO_ORIGINS, Origins
from inductor_lab.compiler.ir.higher_order import KERNELS_OF_OURS
from inductor_lab.compiler.ir.index import Axis
from inductor_lab.compiler.ir.program import ExternCall, LoopProgram, Nest, Pointwise
from inductor_lab.compiler.ir.value import Value
from inductor_lab.compiler.schedule.row_parts import InParts

Choice: TypeAlias = Literal["rules", "forced", "forbidden", "disabled"]
"""Who decided on a pair: the rules, or the options."""

Kind: TypeAlias = Literal["legality", "profit"]
"""Must a rule hold, or should it?"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One rule's answer for one pair; `reason` is None where the rule has nothing against it."""

    rule: str
    kind: Kind
    reason: str | None


@dataclass(frozen=True, slots=True)
class Decision(Value):
    """Were two nests put into one group, and what did every rule say?

    A producer and its consumer are fused vertically, two that read the same data horizontally, and
    two that have nothing in common become one kernel as a combo.  A write to part of a buffer (the
    producer) is "in place" if it goes to the buffer's own storage: `fused` says that it does.
    `choice` is "rules", or "forced", "forbidden", "disabled" where `Options.fusion` decided.
    """

    producer: str
    consumer: str
    fused: bool
    relation: Literal["vertical", "horizontal", "combo", "in place"]
    choice: Choice
    verdicts: tuple[Verdict, ...]
    bytes_saved: int = 0


@dataclass(frozen=True, slots=True)
class Decisions:
    """All decisions: those about fusion in the order they were taken, then those about writes."""

    all: tuple[Decision, ...]

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def about(self, producer: str, consumer: str) -> Decision:
        """The decision for a pair of buffers, the first if there are several; raises UnknownName if
        the pair was never considered."""
        return self._about(producer, consumer)[0]

    def _about(self, producer: str, consumer: str) -> list[Decision]:
        pair = (producer, consumer)
        if found := [d for d in self.all if (d.producer, d.consumer) == pair]:
            return found
        raise UnknownName(
            f"the pair {producer}, {consumer} was never considered for fusion",
            todo="pairs are (producer, consumer), or two nests that read the same buffer",
        )

    def explain(self, producer: str, consumer: str) -> str:
        """Every rule with its verdict and reason, as text; a write in place has one of its own."""
        found = self._about(producer, consumer)
        return "\n\n".join(str(perform("decision_text", decision)) for decision in found)


@dataclass(frozen=True, slots=True)
class Cost:
    """Memory traffic in bytes, arithmetic in flops, launches, and passes over memory.

    A pass is one buffer read or written once by one kernel.  Symbolic sizes count with a hint.
    """

    bytes_read: int = 0
    bytes_written: int = 0
    flops: int = 0
    kernels: int = 0
    passes: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*map(operator.add, _COUNTED(self), _COUNTED(other)))

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


_COUNTED = operator.attrgetter(*(count.name for count in fields(Cost)))


@dataclass(frozen=True, slots=True)
class Group:
    """Nests that become one kernel.

    All nests share the outer `axes` (the very same Axis values; none of size 1): each stored nest
    and each reduction visits every point of `axes`, and at one point of them it reads of the
    group's other nests only what belongs to that same point.  So the points of `axes` are
    independent, and a kernel runs them in parallel.  Axes of a nest that are not in `axes` are
    inner: a nest's own loop per point.  The axis of a scan is inner, and nests that read it here do
    so in step (`schedule/fusion/scans.py`).

    nests     in data-flow order: reductions, scans, and the pointwise nests that are stored
    stored    buffers that reach memory; a reduction that is not here lives in a register per point,
              a scan in a register per element
    inlined   pointwise producers that exist only as expressions: a load of one at any index means
              its body with its axes replaced; their own axes are theirs alone
    combined  the groups that a combo is made of: independent of one another, each with axes of its
              own, run at the same time by one kernel.  What a combo says of itself (`axes` apart,
              which is empty) holds for all of them together.  Empty for any other group.
    in_parts  how the points of `axes` are visited where a nest is reduced over them; such a nest
              has the part among its axes, and nobody in the group reads it
    """

    name: str
    axes: tuple[Axis, ...]
    nests: tuple[Nest, ...]
    stored: frozenset[str]
    inlined: Mapping[str, Pointwise]
    cost: Cost
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    combined: tuple[Group, ...] = ()
    in_parts: InParts | None = None

    def crosses(self, nest: Nest) -> bool:
        """Is it reduced over points of the group?"""
        return self.in_parts is not None and self.in_parts.part in nest.axes

    @property
    def visited(self) -> frozenset[Axis]:
        """The axes of its nests that stand for its points."""
        return frozenset((*self.axes, *(self.in_parts.axes if self.in_parts else ())))

    @property
    def parts(self) -> tuple[Group, ...]:
        """The groups of a combo; of any other group, itself."""
        return self.combined or (self,)

    def __repr__(self) -> str:
        parts = f" in {counted(len(self.combined), 'part')}" if self.combined else ""
        nests = f"{counted(len(self.nests), 'nest')}, {len(self.inlined)} inlined{parts}"
        return f"Group({self.name}: {nests})"


ScheduleStep: TypeAlias = Group | ExternCall


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A buffer is made by step `first` and last used by step `last` (positions in the schedule).

    Outputs of the graph live to `len(steps)`.
    """

    buffer: str
    nbytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Which intermediate takes over whose storage.

    reuse     buffer → the dead buffer whose storage it takes (same device, dtype and byte size),
              or the input that it is the new value of
    in_place  the subset of `reuse` where one kernel reads the old and writes the new element by
              element at the same places, or writes to a part of what is there
    freed     step position → buffers that are dead after it, less those whose storage somebody
              takes over later: that storage ends with the buffer that took it
    peak_before, peak_after   bytes of live intermediates and outputs without and with the plan
    peak_unfused  the same without fusion (one kernel for each op) and without the plan
    """

    lifetimes: tuple[Lifetime, ...]
    reuse: Mapping[str, str]
    in_place: frozenset[str]
    freed: Mapping[int, tuple[str, ...]]
    peak_before: int
    peak_after: int
    peak_unfused: int = 0

    def storage(self, name: str) -> str:
        """The buffer or input that first had the storage of this one."""
        while name in self.reuse:
            name = self.reuse[name]
        return name


def fused_text(steps: int, library_calls: int) -> str:
    """The kernels after fusion, without counting library calls as kernels.

    >>> fused_text(2, 0), fused_text(121, 84)
    ('2 fused', '37 generated + 84 library calls')
    """
    if not library_calls:
        return f"{steps:,} fused"
    return f"{steps - library_calls:,} generated + {counted(library_calls, 'library call')}"


@dataclass(frozen=True, eq=False)
class Schedule(Shown):
    """Groups and extern calls in the order they run."""

    program: LoopProgram
    steps: tuple[ScheduleStep, ...]
    decisions: Decisions
    memory: MemoryPlan
    before: Cost
    after: Cost

    @property
    def groups(self) -> tuple[Group, ...]:
        return tuple(step for step in self.steps if isinstance(step, Group))

    @property
    def library_calls(self) -> int:
        """Steps that call a library; all other steps are generated kernels."""
        calls = (step for step in self.steps if isinstance(step, ExternCall))
        return sum(call.reason != KERNELS_OF_OURS for call in calls)

    @property
    def saved(self) -> float:
        """Share of the memory traffic that fusion removed, 0 to 1."""
        return 1 - self.after.bytes / self.before.bytes if self.before.bytes else 0.0

    def __repr__(self) -> str:
        fused = fused_text(self.after.kernels, self.library_calls)
        kernels = f"kernels {self.before.kernels:,} unfused -> {fused}"
        passes = f"memory passes {self.before.passes:,} -> {self.after.passes:,}"
        return f"Schedule({kernels}, {passes}, {self.saved:.1%} saved)"

    def __str__(self) -> str:
        return str(perform("schedule_text", self))

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Interpret group by group with torch: what the kernels are meant to compute."""
        return tuple(perform("run_schedule", self, inputs))
