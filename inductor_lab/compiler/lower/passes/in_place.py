"""Writes to parts of tensors are done in place, if no later step needs the old value.

    buf0[i0, i1] = c[i0, i1]                     a copy that is made for the write
    buf1[3, i0] = buf0 with store of x[i0]       c is not read after this
    write  c.copy_(buf1)

    buf1[3, i0] = c with store of x[i0]          the write is in place
    write  c.copy_(buf1)

The pass covers all writes to the storage of another buffer: scatters, and calls of operators that
write to their arguments.  The buffer may be an input that the graph writes to, a result of a
library, or a result of another nest.  The answers of all rules are recorded (`PartialWrite`) and
shown with the decisions of the schedule.

Inductor: `fx_passes/reinplace.py`, `can_inplace`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.expr import Expr, Load, Op
from inductor_lab.compiler.ir.higher_order import PREFIX
from inductor_lab.compiler.ir.index import Index
from inductor_lab.compiler.ir.interpret import find_operator
from inductor_lab.compiler.ir.program import (
    Answer,
    Buffer,
    BufferKind,
    BufferView,
    ExternArg,
    ExternCall,
    Layout,
    LoopProgram,
    PartialWrite,
    Pointwise,
    Scatter,
    Step,
    read_by,
    storage_bases,
    views_in,
    written_by,
)
from inductor_lab.compiler.ir.rules import rule_of
from inductor_lab.compiler.ir.text import dtype_text
from inductor_lab.compiler.lower.passes.facts import ProgramFacts
from inductor_lab.compiler.lower.tensor import overlaps


@dataclass(frozen=True)
class Candidate:
    """A write that may go to the storage of `source`, which was copied for it.

    place    the position of the step
    new      the buffer that the step computes
    readers  the positions of steps that read each buffer
    taken    buffers whose storage an earlier step overwrites → the buffer that it computes
    """

    program: LoopProgram
    steps: Sequence[Step]
    place: int
    new: str
    source: str
    readers: dict[str, list[int]]
    taken: dict[str, str]

    @property
    def step(self) -> Step:
        return self.steps[self.place]

    @property
    def old(self) -> Buffer:
        return self.program.buffers[self.source]

    def later_readers(self, name: str) -> list[str]:
        """The names of the results of later steps that read a buffer."""
        after = (self.steps[at] for at in self.readers.get(name, ()) if at > self.place)
        return [" ".join(written_by(step)) or getattr(step, "op", "") for step in after]


Rule = Callable[[Candidate], "str | None"]
RULES: dict[str, Rule] = {}
rule = rule_of(RULES)


@rule
def may_be_written(candidate: Candidate) -> str | None:
    """An input is written only if the program writes to it; a constant is never written."""
    kind, name = candidate.old.kind, candidate.source
    if kind is BufferKind.CONSTANT:
        return f"{name} is a constant"
    written = {w.input for w in candidate.program.writes if w.method == "copy_"}
    if kind is BufferKind.INPUT and name not in written:
        return f"{name} is an argument that must keep its value"
    return None


@rule
def stored_alike(candidate: Candidate) -> str | None:
    """The new value has the dtype and layout of the source."""
    new, old = candidate.program.buffers[candidate.new], candidate.old
    if new.dtype != old.dtype:
        return f"{candidate.source} is {dtype_text(old.dtype)}, not {dtype_text(new.dtype)}"
    if new.layout != old.layout:
        return f"{candidate.source} has another layout"
    return None


@rule
def elements_apart(candidate: Candidate) -> str | None:
    """No two elements share memory; otherwise a write to one would change another."""
    if overlaps(candidate.old.layout):
        return f"elements of {candidate.source} may share memory"
    return None


@rule
def not_needed_later(candidate: Candidate) -> str | None:
    """No later step reads the old value, and it is not a result."""
    later = candidate.later_readers(candidate.source)
    if later:
        return f"{later[0]} reads {candidate.source} later"
    if candidate.source in candidate.program.output_buffers:
        return f"{candidate.source} is a result"
    if found := candidate.taken.get(candidate.source):
        return f"{found} was written to the storage of {candidate.source} before"
    return None


@rule
def not_seen_by_library(candidate: Candidate) -> str | None:
    """No earlier call may have returned a view of the source, or of its own argument."""
    name = candidate.source
    for step in candidate.steps[: candidate.place]:
        if not isinstance(step, ExternCall) or not step.may_alias:
            continue
        results = [made for made in written_by(step) if made not in storage_bases(step)]
        touched = name in results or (name in read_by(step) and results)
        if touched and may_return_views(step):
            return f"{step.op} may return a view of its argument"
    return None


def may_return_views(call: ExternCall) -> bool:
    """May a call return a view of an argument?

    Custom operators must declare that in their schema, and the results of higher-order operators
    are copied.
    """
    if call.op.startswith(PREFIX):
        return False
    schema: Any = getattr(find_operator(call.op), "_schema", None)
    if schema is None or call.op.startswith(("aten.", "prims.")):
        return True
    return any(result.alias_info for result in schema.returns)


@rule
def not_a_result_too(candidate: Candidate) -> str | None:
    """The new value of an input is not also a separate result, which would need its own memory."""
    program = candidate.program
    start, taken = candidate.source, {new: old for old, new in candidate.taken.items()}
    while start in taken:
        start = taken[start]
    if program.buffers[start].kind is not BufferKind.INPUT:
        return None
    held = Counter(view.buffer for view in views_in(program.returned))
    for write, value in program.written_inputs:
        if isinstance(value, BufferView) and value.buffer == candidate.new:
            if write.input != start:
                return f"{candidate.new} is also the new value of {write.input}"
            held[candidate.new] -= len(write.returned)
    return f"{candidate.new} is a result as well" if held[candidate.new] > 0 else None


@rule
def places_known_before(candidate: Candidate) -> str | None:
    """A scatter does not overwrite the indices that it reads, and an operator that writes to an
    argument does not also read its old value."""
    step, name = candidate.step, candidate.source
    if isinstance(step, ExternCall):
        inside = name in read_by(step)
    else:
        inside = any(load.buffer == name for root in step.roots[1:] for load in root.loads())
    return f"it also reads {name}" if inside else None


def in_place(program: LoopProgram, facts: ProgramFacts) -> LoopProgram:
    """The program without the copies that writes do not need, and a decision on each write."""
    if not any(map(storage_bases, program.steps)):
        return program
    work = _Work(program, facts.options)
    for place in range(len(work.steps)):
        for new, base in storage_bases(program.steps[place]).items():
            work.consider(place, new, base)
    steps = work.result
    made = {name for step in steps for name in written_by(step)}
    kept = (BufferKind.INPUT, BufferKind.CONSTANT)
    buffers = {n: b for n, b in work.buffers.items() if b.kind in kept or n in made}
    decisions = (*program.partial_writes, *work.decisions)
    return replace(program, steps=steps, buffers=buffers, partial_writes=decisions)


class _Work:
    """The steps so far; a copy that is removed becomes None."""

    def __init__(self, program: LoopProgram, options: Options) -> None:
        self.program, self.buffers = program, dict(program.buffers)
        self.steps: list[Step | None] = list(program.steps)
        self.before: dict[int, Pointwise] = {}
        self.forbidden = {frozenset(pair) for pair in options.fusion.forbid}
        self.decisions: list[PartialWrite] = []
        self.taken: dict[str, str] = {}
        self.readers: dict[str, list[int]] = {}
        self.makers: dict[str, int] = {}
        for place, step in enumerate(program.steps):
            self.makers.update(dict.fromkeys(written_by(step), place))
            for name in read_by(step):
                self.readers.setdefault(name, []).append(place)

    @property
    def result(self) -> tuple[Step, ...]:
        """The remaining steps, in order."""
        found: list[Step] = []
        for place, step in enumerate(self.steps):
            found.extend(filter(None, (self.before.get(place), step)))
        return tuple(found)

    def consider(self, place: int, new: str, base: str) -> None:
        """Decide on one write, and remove its copy if it is done in place."""
        made = self.steps[self.makers[base]] if base in self.makers else None
        copied = _copied(made) if isinstance(made, Pointwise) else None
        if copied is None or not isinstance(made, Pointwise) or self.readers[base] != [place]:
            self.taken[base] = new
            return
        source, exact = copied
        step = self.steps[place]
        candidate = Candidate(
            self.program, self.program.steps, place, new, source, self.readers, self.taken
        )
        answers = tuple(Answer(name, "legality", ask(candidate)) for name, ask in RULES.items())
        forbidden = frozenset((source, new)) in self.forbidden
        decision = PartialWrite(new, source, answers, "forbidden" if forbidden else "rules")
        self.decisions.append(decision)
        if not (decision.in_place and exact) or step is None:
            self.taken[base] = new
            return
        self.steps[self.makers[base]] = None
        self.readers.setdefault(source, []).append(place)
        self.taken[source] = new
        self.steps[place] = self._without_copy(place, step, base, source)

    def _without_copy(self, place: int, step: Step, base: str, source: str) -> Step:
        """The write without its copy.  If it reads the source at other places than it writes, a new
        nest computes its values before."""
        if isinstance(step, ExternCall):
            return _called_with(step, base, source)
        assert isinstance(step, Scatter), "only scatters overwrite a storage"
        reads = {load.index for load in step.body.loads() if load.buffer == source}
        body = step.body
        if not step.may_read(reads):
            body = self._computed_before(place, step)
        return replace(step, base=source, body=body)

    def _computed_before(self, place: int, step: Scatter) -> Expr:
        layout = Layout.contiguous(tuple(axis.size for axis in step.axes))
        own = self.buffers[step.buffer]
        name, kind = f"{step.buffer}_values", BufferKind.COMPUTED
        self.buffers[name] = Buffer(name, kind, step.body.dtype, own.device, layout, step.origins)
        self.before[place] = Pointwise(name, step.axes, step.body, step.origins)
        return Load(name, tuple(map(Index.of, step.axes)), step.body.dtype, step.origins)


def _copied(nest: Pointwise) -> tuple[str, bool] | None:
    """The buffer that a nest copies, and whether the copy has the same dtype; None if it is not a
    copy."""
    match nest.body:
        case Load(source, index) | Op("convert", (Load(source, index),)) if index == tuple(
            map(Index.of, nest.axes)
        ):
            return source, isinstance(nest.body, Load)
    return None


def _called_with(call: ExternCall, base: str, source: str) -> ExternCall:
    """The call with `source` in place of `base`."""

    def moved(argument: ExternArg) -> ExternArg:
        if isinstance(argument, BufferView) and argument.buffer == base:
            return replace(argument, buffer=source)
        return tuple(map(moved, argument)) if isinstance(argument, tuple) else argument

    return replace(
        call,
        args=tuple(map(moved, call.args)),
        kwargs=tuple((name, moved(value)) for name, value in call.kwargs),
        bases=tuple((new, source if old == base else old) for new, old in call.bases),
    )
