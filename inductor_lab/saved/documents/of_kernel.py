"""Kernels, library calls, decisions and memory plans of one part as documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from inductor_lab.compiler.base.display import bytes_text, counted
from inductor_lab.compiler.codegen.kernel import Code
from inductor_lab.compiler.codegen.kernel import Kernel as KernelRecord
from inductor_lab.compiler.ir.index import Axis as LoopAxis
from inductor_lab.compiler.ir.index import Size as AnySize
from inductor_lab.compiler.ir.program import Buffer, ExternCall, Nest, read_by, written_by
from inductor_lab.compiler.ir.text import in_reading_order, nest_lines, size_text
from inductor_lab.compiler.records import CompiledPart
from inductor_lab.compiler.schedule.cost import extern_cost
from inductor_lab.compiler.schedule.facts import storage_elements
from inductor_lab.compiler.schedule.schedule import Cost as CostRecord
from inductor_lab.compiler.schedule.schedule import Decision as DecisionRecord
from inductor_lab.compiler.schedule.schedule import Decisions, Group
from inductor_lab.compiler.schedule.schedule import MemoryPlan as PlanRecord
from inductor_lab.compiler.schedule.schedule import Verdict as VerdictRecord
from inductor_lab.compiler.schedule.text import (
    Role,
    decision_head,
    nests_with_roles,
    peak_text,
)
from inductor_lab.compiler.step_time import StepTime, duration
from inductor_lab.saved.documents.kernel_types import (
    Axis,
    BufferUse,
    CodeLine,
    Cost,
    Decision,
    FusionOfKernel,
    Kernel,
    LibraryCall,
    Lifetime,
    MemoryPlan,
    Operation,
    Recomputed,
    Size,
    Time,
    Verdict,
)
from inductor_lab.saved.documents.kernel_types import Decisions as AllDecisions
from inductor_lab.saved.documents.sources import Sources

NESTS: Mapping[str, Literal["pointwise", "reduction", "scan", "scatter"]] = {
    "Pointwise": "pointwise", "Reduction": "reduction", "Scan": "scan", "Scatter": "scatter",
}  # fmt: skip


def cost(known: CostRecord) -> Cost:
    """A cost as data."""
    return Cost(bytes_read=known.bytes_read, bytes_written=known.bytes_written, flops=known.flops,
                kernels=known.kernels, passes=known.passes)  # fmt: skip


def code_lines(code: Code) -> list[CodeLine]:
    """Generated text, line by line."""
    return [CodeLine(text=line.text, nodes=in_reading_order(line.origins)) for line in code.lines]


def time(step: StepTime) -> Time:
    """A measured time as data."""
    return Time(
        seconds=step.seconds,
        interval=None if step.interval is None else list(step.interval),
        spread=step.spread,
        roof_seconds=step.roof,
        bound="memory" if step.memory else "arithmetic",
    )


def decision_id(at: str, producer: str, consumer: str) -> str:
    """`g0.forward.decision:buf0,buf1`."""
    return f"{at}decision:{producer},{consumer}"


def decision(final: DecisionRecord, at: str = "", earlier: int = 0) -> Decision:
    """The final decision about a pair."""
    return Decision(
        id=decision_id(at, final.producer, final.consumer),
        summary=decision_head(final) + _first_reason(final),
        kind="decision",
        producer=final.producer,
        consumer=final.consumer,
        fused=final.fused,
        relation=final.relation,
        choice=final.choice,
        bytes_saved=final.bytes_saved,
        verdicts=[_verdict(verdict) for verdict in final.verdicts],
        earlier_attempts=earlier,
    )


def decisions(known: Decisions, at: str = "") -> list[Decision]:
    """The final decision about each pair."""
    return [decision(found[-1], at, len(found) - 1) for found in known.by_pair.values()]


def all_decisions(known: Decisions) -> AllDecisions:
    """The decisions of a schedule as a document of their own."""
    found = decisions(known)
    fused = sum(each["fused"] for each in found)
    return AllDecisions(id="decisions", summary=f"{counted(len(found), 'pair')}, {fused} fused",
                        kind="decisions", decisions=found)  # fmt: skip


def _first_reason(final: DecisionRecord) -> str:
    against = [f"{v.rule}: {v.reason}" for v in final.verdicts if v.reason is not None]
    return "" if final.fused or not against else f"; {against[0]}"


def _verdict(verdict: VerdictRecord) -> Verdict:
    return Verdict(rule=verdict.rule, kind=verdict.kind, reason=verdict.reason)


def memory_plan(plan: PlanRecord, sources: Sources, origins: Mapping[str, frozenset[str]],
                at: str = "") -> MemoryPlan:  # fmt: skip
    """A memory plan; `origins` has the FX nodes of each buffer."""
    return MemoryPlan(
        id=f"{at}memory",
        summary=f"memory {peak_text(plan)}",
        kind="memory_plan",
        peak_bytes=plan.peak_after,
        peak_bytes_without_reuse=plan.peak_before,
        peak_bytes_unfused=plan.peak_unfused,
        buffers=[
            Lifetime(
                buffer=one.buffer,
                nbytes=one.nbytes,
                first=one.first,
                last=one.last,
                storage=plan.storage(one.buffer),
                in_place=one.buffer in plan.in_place,
                origins=sources.origins(origins.get(one.buffer, frozenset())),
            )
            for one in plan.lifetimes
        ],
    )


@dataclass(frozen=True)
class PartReader:
    """Makes the documents of the kernels and calls of one part; `at` begins all ids."""

    part: CompiledPart
    sources: Sources
    at: str = ""

    @property
    def order(self) -> Iterator[str]:
        """The ids of the steps, in order."""
        kernels = calls = 0
        for step in self.part.schedule.steps:
            if isinstance(step, Group):
                yield f"{self.at}kernel:{kernels}"
                kernels += 1
            else:
                yield f"{self.at}call:{calls}"
                calls += 1

    @cached_property
    def times(self) -> Mapping[str, Time]:
        """The time of each step by id; empty before `measure`."""
        return {name: time(took) for name, took in zip(self.order, self.part.times, strict=False)}

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The position of each buffer's nest in the loop program."""
        return {nest.buffer: n for n, nest in enumerate(self.part.schedule.program.nests)}

    @cached_property
    def computed_in(self) -> Mapping[str, list[str]]:
        """By buffer: the ids of the kernels that compute it."""
        found: dict[str, list[str]] = {}
        for number, group in enumerate(self.part.schedule.groups):
            for _, nest in _nests(group, self.position):
                found.setdefault(nest.buffer, []).append(f"{self.at}kernel:{number}")
        return found

    @cached_property
    def final_decisions(self) -> Mapping[str, list[DecisionRecord]]:
        """By buffer: the final decisions about it."""
        found: dict[str, list[DecisionRecord]] = {}
        for pair, known in self.part.schedule.decisions.by_pair.items():
            for buffer in dict.fromkeys(pair):
                found.setdefault(buffer, []).append(known[-1])
        return found

    def kernels(self) -> list[Kernel]:
        """Every generated kernel."""
        pairs = zip(self.part.kernels, self.part.schedule.groups, strict=True)
        return [self.kernel(n, kernel, group) for n, (kernel, group) in enumerate(pairs)]

    def kernel(self, number: int, kernel: KernelRecord, group: Group) -> Kernel:
        """One kernel of the part."""
        name = f"{self.at}kernel:{number}"
        operations = operations_of(group, kernel, self.sources, self.position, f"{name}.")
        computed = [operation["buffer"] for operation in operations]
        repeated = {b: [k for k in self.computed_in[b] if k != name] for b in computed}
        about = {id(d): d for b in computed for d in self.final_decisions.get(b, ())}
        return kernel_document(
            kernel, group, self.sources, name,
            operations=operations,
            recomputed=[Recomputed(buffer=b, also_in=ids) for b, ids in repeated.items() if ids],
            fusion=[self._fusion(each) for each in about.values()],
            time=self.times.get(name),
        )  # fmt: skip

    def _fusion(self, final: DecisionRecord) -> FusionOfKernel:
        return FusionOfKernel(
            decision=decision_id(self.at, final.producer, final.consumer),
            producer=final.producer,
            consumer=final.consumer,
            fused=final.fused,
            choice=final.choice,
            against=[_verdict(v) for v in final.verdicts if v.reason is not None],
        )

    def calls(self) -> list[LibraryCall]:
        """Every library call."""
        steps = [s for s in self.part.schedule.steps if isinstance(s, ExternCall)]
        return [self._call(number, call) for number, call in enumerate(steps)]

    def _call(self, number: int, call: ExternCall) -> LibraryCall:
        name = f"{self.at}call:{number}"
        known = extern_cost(call, self.part.schedule.program.buffers)
        took = self.times.get(name)
        return LibraryCall(
            id=name,
            summary=_summary(call.op, known, took, self.sources.lines(call.origins)),
            kind="library_call",
            operator=call.op,
            reason=call.reason,
            reads=in_reading_order(read_by(call)),
            writes=list(written_by(call)),
            cost=cost(known),
            origins=self.sources.origins(call.origins),
            time=took,
        )


def _summary(name: str, known: CostRecord, took: Time | None, lines: str) -> str:
    moved = f"{counted(known.passes, 'memory pass')}, {bytes_text(known.bytes)}"
    text = f"{name}: {moved}, {known.flops:,} flops"
    text += f", {duration(took['seconds'])}" if took is not None else ""
    return f"{text}; {lines}" if lines else text


def kernel_document(
    kernel: KernelRecord, group: Group, sources: Sources, name: str, *,
    operations: list[Operation], recomputed: Iterable[Recomputed] = (),
    fusion: Iterable[FusionOfKernel] = (), time: Time | None = None,
) -> Kernel:  # fmt: skip
    """One kernel; what concerns its part is given by the caller."""
    return Kernel(
        id=name,
        summary=_summary(kernel.name, group.cost, time, sources.lines(group.origins)),
        kind="kernel",
        name=kernel.name,
        language=kernel.language,
        device=kernel.device,
        cost=cost(group.cost),
        buffers=list(_buffers(kernel, sources)),
        operations=operations,
        recomputed=list(recomputed),
        fusion=list(fusion),
        origins=sources.origins(group.origins),
        time=time,
        code=code_lines(kernel.code),
    )


def _buffers(kernel: KernelRecord, sources: Sources) -> Iterator[BufferUse]:
    for parameter in kernel.parameters:
        buffer = kernel.buffers.get(parameter.buffer or "")
        if buffer is not None and parameter.role != "symbol":
            yield _buffer(buffer, parameter.name, parameter.role, sources)


def _buffer(buffer: Buffer, name: str, role: Literal["in", "out"], sources: Sources) -> BufferUse:
    node = sources.nodes.get(buffer.name)
    return BufferUse(
        buffer=buffer.name,
        parameter=name,
        role=role,
        filled_by=buffer.kind.value,
        given=node.given if node is not None else "",
        dtype=str(buffer.dtype).removeprefix("torch."),
        shape=[_size(size) for size in buffer.layout.size],
        stride=[_size(size) for size in buffer.layout.stride],
        nbytes=storage_elements(buffer.layout) * buffer.dtype.itemsize,
    )


def operations_of(
    group: Group, kernel: KernelRecord, sources: Sources, position: Mapping[str, int], at: str = ""
) -> list[Operation]:
    """The loop nests of a group, in order."""
    pairs = enumerate(_nests(group, position))
    return [_operation(role, nest, kernel, sources, f"{at}op:{n}") for n, (role, nest) in pairs]


def _nests(group: Group, position: Mapping[str, int]) -> Iterator[tuple[Role, Nest]]:
    for part in group.parts:
        yield from nests_with_roles(part, position)


def _operation(
    role: Role, nest: Nest, kernel: KernelRecord, sources: Sources, name: str
) -> Operation:
    lines = [text for text, _ in nest_lines(nest, kernel.buffers.get(nest.buffer))]
    return Operation(
        id=name,
        summary=f"{role} {lines[0]}",
        kind="operation",
        nest=NESTS[type(nest).__name__],
        buffer=nest.buffer,
        role=role,
        axes=_axes(nest.axes),
        reduce_axes=_axes(nest.reduce_axes),
        reads=in_reading_order(read_by(nest)),
        text="\n".join(lines),
        origins=sources.origins(nest.origins),
    )


def _axes(axes: Iterable[LoopAxis]) -> list[Axis]:
    return [Axis(name=axis.name, size=_size(axis.size)) for axis in axes]


def _size(size: AnySize) -> Size:
    return size if isinstance(size, int) else size_text(size)
