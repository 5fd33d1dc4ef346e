"""The result of the scheduler: groups in order, all decisions with their reasons, and costs.

Inductor: `scheduler.py` (FusedSchedulerNode, can_fuse) and `memory.py`; it logs the reasons, while
we return them.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from inductor_lab.compiler.base.display import Documented, Shown, bytes_text, counted
from inductor_lab.compiler.base.errors import UnknownName
from inductor_lab.compiler.base.operations import perform
from inductor_lab.compiler.ir.expr import NO_ORIGINS, Origins
from inductor_lab.compiler.ir.higher_order import KERNELS_OF_OURS
from inductor_lab.compiler.ir.index import Axis
from inductor_lab.compiler.ir.program import ExternCall, LoopProgram, Nest, Pointwise
from inductor_lab.compiler.ir.value import Value
from inductor_lab.compiler.schedule.row_parts import InParts

Choice: TypeAlias = Literal["rules", "forced", "forbidden", "disabled"]
"""Whether the rules or the options decided on a pair."""

Kind: TypeAlias = Literal["legality", "profit"]
"""A legality rule must hold; a profit rule should hold."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One rule's answer for one pair; `reason` is None if the rule accepts the pair."""

    rule: str
    kind: Kind
    reason: str | None


@dataclass(frozen=True, slots=True)
class Decision(Documented, Value):
    """Whether two nests were fused into one group, with the verdict of every rule.

    A producer and its consumer are fused vertically, two nests that read the same data
    horizontally; two independent nests become a combo.  The relation "in place" is about a write to
    part of a buffer (the producer): `fused` is true if it writes to the buffer's own storage.
    `choice` is "rules", or "forced", "forbidden", "disabled" if `Options.fusion` decided.
    """

    producer: str
    consumer: str
    fused: bool
    relation: Literal["vertical", "horizontal", "combo", "in place"]
    choice: Choice
    verdicts: tuple[Verdict, ...]
    bytes_saved: int = 0


@dataclass(frozen=True, slots=True)
class Decisions(Documented):
    """All decisions: first those about fusion, in order, then those about writes."""

    all: tuple[Decision, ...]

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    @property
    def by_pair(self) -> dict[tuple[str, str], tuple[Decision, ...]]:
        """The different decisions about each pair, the final one last.

        A pair is judged again when one of its nests has changed its group, or is recomputed in
        another kernel.  The final decision is the one that fused the pair, otherwise the last.
        """
        found: dict[tuple[str, str], list[Decision]] = {}
        for decision in self.all:
            known = found.setdefault((decision.producer, decision.consumer), [])
            if decision in known:
                known.remove(decision)
            known.append(decision)
        return {pair: tuple(sorted(known, key=lambda d: d.fused)) for pair, known in found.items()}

    def about(self, producer: str, consumer: str) -> Decision:
        """The final decision about a pair of buffers; raises UnknownName if the pair was never
        considered."""
        return self._about(producer, consumer)[-1]

    def _about(self, producer: str, consumer: str) -> tuple[Decision, ...]:
        if found := self.by_pair.get((producer, consumer)):
            return found
        raise UnknownName(
            f"the pair {producer}, {consumer} was never considered for fusion",
            todo="pairs are (producer, consumer), or two nests that read the same buffer",
        )

    def explain(self, producer: str, consumer: str) -> str:
        """The final decision with every rule's verdict and reason; then earlier attempts."""
        *earlier, final = self._about(producer, consumer)
        texts = [str(perform("decision_text", final))]
        for number, decision in enumerate(earlier, 1):
            texts.append(f"earlier attempt {number}: {perform('decision_text', decision)}")
        return "\n\n".join(texts)

    def __repr__(self) -> str:
        final = [found[-1] for found in self.by_pair.values()]
        fused = sum(decision.fused for decision in final)
        return f"Decisions({counted(len(final), 'pair')}, {fused:,} fused)"

    def __str__(self) -> str:
        return "\n\n".join(self.explain(*pair) for pair in self.by_pair)


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

    All nests share the outer `axes` (the same Axis values; none of size 1): each stored nest and
    each reduction visits every point of `axes`, and at one point it reads other nests of the group
    only at the same point.  So the points of `axes` are independent, and a kernel runs them in
    parallel.  Axes of a nest that are not in `axes` are inner: loops inside each point.  The axis
    of a scan is inner, and nests of the group read the scan in step (`schedule/fusion/scans.py`).

    nests     in data-flow order: reductions, scans, and the pointwise nests that are stored
    stored    buffers that are stored to memory; other reductions stay in a register per point,
              other scans in a register per element
    inlined   pointwise producers that exist only as expressions: a load at any index means the body
              with its axes replaced; their axes are not shared
    combined  the groups of a combo: they are independent, have separate axes, and run at the same
              time in one kernel.  The other fields of a combo describe all groups together, except
              `axes`, which is empty.  Empty if the group is not a combo.
    in_parts  how the points of `axes` are visited if a nest is reduced over them; such a nest has
              the part axis, and no nest of the group reads it
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

    def sums_across_points(self, nest: Nest) -> bool:
        """Is the nest reduced over points of the group?"""
        return self.in_parts is not None and self.in_parts.part in nest.axes

    @property
    def visited(self) -> frozenset[Axis]:
        """The axes of nests that enumerate the points of the group."""
        return frozenset((*self.axes, *(self.in_parts.axes if self.in_parts else ())))

    @property
    def parts(self) -> tuple[Group, ...]:
        """The groups of a combo; for any other group, the group itself."""
        return self.combined or (self,)

    def __repr__(self) -> str:
        parts = f" in {counted(len(self.combined), 'part')}" if self.combined else ""
        nests = f"{counted(len(self.nests), 'nest')}, {len(self.inlined)} inlined{parts}"
        return f"Group({self.name}: {nests})"


ScheduleStep: TypeAlias = Group | ExternCall


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Step `first` computes a buffer, and step `last` uses it last (positions in the schedule).

    For outputs of the graph, `last` is `len(steps)`.
    """

    buffer: str
    nbytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MemoryPlan(Documented):
    """Which buffers reuse the storage of other buffers.

    reuse     buffer → the dead buffer whose storage it reuses (same device, dtype and byte size),
              or the input whose new value it is
    in_place  the subset of `reuse` where one kernel reads each old element and writes the new
              element at the same place, or writes to a part of the buffer
    freed     step position → buffers that are dead after it, except those whose storage is reused
              later: the last buffer in that storage is freed
    peak_before, peak_after   bytes of live intermediates and outputs without and with the plan
    peak_unfused  the same without fusion (one kernel per op) and without the plan
    """

    lifetimes: tuple[Lifetime, ...]
    reuse: Mapping[str, str]
    in_place: frozenset[str]
    freed: Mapping[int, tuple[str, ...]]
    peak_before: int
    peak_after: int
    peak_unfused: int = 0

    def __repr__(self) -> str:
        peaks = f"{bytes_text(self.peak_before)} -> {bytes_text(self.peak_after)}"
        return f"MemoryPlan(peak {peaks}, {counted(len(self.reuse), 'buffer')} in reused storage)"

    def __str__(self) -> str:
        return str(perform("memory_text", self))

    def storage(self, name: str) -> str:
        """The buffer or input that used the storage of this buffer first."""
        while name in self.reuse:
            name = self.reuse[name]
        return name


def fused_text(steps: int, library_calls: int) -> str:
    """The number of kernels after fusion; library calls are counted separately.

    >>> fused_text(2, 0), fused_text(121, 84)
    ('2 fused', '37 generated + 84 library calls')
    """
    if not library_calls:
        return f"{steps:,} fused"
    return f"{steps - library_calls:,} generated + {counted(library_calls, 'library call')}"


@dataclass(frozen=True, eq=False)
class Schedule(Shown):
    """Groups and extern calls in execution order."""

    program: LoopProgram
    steps: tuple[ScheduleStep, ...]
    decisions: Decisions
    memory: MemoryPlan
    before: Cost
    after: Cost

    @property
    def groups(self) -> tuple[Group, ...]:
        return tuple(step for step in self.steps if isinstance(step, Group))

    def in_one_kernel(self, first: str, second: str) -> bool:
        """Does one kernel compute both buffers?"""
        for group in self.groups:
            made = {nest.buffer for part in group.parts for nest in part.nests}
            if {first, second} <= made.union(*(part.inlined for part in group.parts)):
                return True
        return False

    @property
    def library_calls(self) -> int:
        """Steps that call a library; all other steps are generated kernels."""
        calls = (step for step in self.steps if isinstance(step, ExternCall))
        return sum(call.reason != KERNELS_OF_OURS for call in calls)

    @property
    def saved(self) -> float:
        """The share of memory traffic that fusion removed, 0 to 1."""
        return 1 - self.after.bytes / self.before.bytes if self.before.bytes else 0.0

    def __repr__(self) -> str:
        fused = fused_text(self.after.kernels, self.library_calls)
        kernels = f"kernels {self.before.kernels:,} unfused -> {fused}"
        passes = f"memory passes {self.before.passes:,} -> {self.after.passes:,}"
        return f"Schedule({kernels}, {passes}, {self.saved:.1%} saved)"

    def __str__(self) -> str:
        return str(perform("schedule_text", self))

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Interpret the schedule with torch, group by group: the reference for its kernels."""
        return tuple(perform("run_schedule", self, inputs))
