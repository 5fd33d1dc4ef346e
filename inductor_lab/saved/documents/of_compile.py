"""Compilations as documents, by our compiler and by stock `torch.compile`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inductor_lab.compiler.autograd.graphs import Partition as PartitionRecord
from inductor_lab.compiler.base.display import counted
from inductor_lab.compiler.capture.capture import Capture as CaptureRecord
from inductor_lab.compiler.capture.capture import GraphBreak as BreakRecord
from inductor_lab.compiler.capture.capture import Guard as GuardRecord
from inductor_lab.compiler.capture.capture import Recompile as RecompileRecord
from inductor_lab.compiler.capture.capture import readable_source
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.compiler.capture.source import SourceFile
from inductor_lab.compiler.library_choice import Choice
from inductor_lab.compiler.records import CompiledGraph, CompiledPart, Record
from inductor_lab.saved.documents.compile_types import (
    AsCaptured,
    Capture,
    Compilation,
    Graph,
    GraphBreak,
    Guard,
    KeptValue,
    Part,
    Partition,
    Recompile,
    RewritePass,
    Source,
    StockCompilation,
    StockFusion,
    StockGraph,
    StockKernel,
    StockPart,
    Symbol,
)
from inductor_lab.saved.documents.kernel_types import (
    Axis,
    BufferUse,
    LibraryChoice,
    MeasuredLibrary,
    MemoryPlan,
    Operation,
    Recomputed,
    Text,
)
from inductor_lab.saved.documents.of_kernel import (
    PartReader,
    code_lines,
    cost,
    decisions,
    memory_plan,
)
from inductor_lab.saved.documents.sources import Sources, place
from inductor_lab.stock.stock_compilation import StockBuffer, StockOperation
from inductor_lab.stock.stock_compilation import StockCompilation as StockRecord
from inductor_lab.stock.stock_compilation import StockGraph as StockGraphRecord
from inductor_lab.stock.stock_compilation import StockKernel as StockKernelRecord
from inductor_lab.stock.stock_compilation import StockPart as StockPartRecord

ROOT = "compilation"
"""The id of the top of a compile's document."""


# ---- what TorchDynamo did ---------------------------------------------------------------------


def graph_break(known: BreakRecord, at: str) -> GraphBreak:
    """A graph break as data."""
    where = f"    {known.span}  {known.span.code}" if known.span else ""
    return GraphBreak(
        id=at,
        summary=f"graph break: {known.reason}{where}",
        kind="graph_break",
        reason=known.reason,
        explanation=known.explanation,
        hints=list(known.hints),
        compile_id=known.compile_id,
        place=place(known.span),
        stack=[found for span in known.user_stack if (found := place(span)) is not None],
    )


def recompile(known: RecompileRecord) -> Recompile:
    """A recompile as data."""
    return Recompile(compile_id=known.compile_id, failed=known.failed,
                     reason=readable_source(known.reason), place=place(known.span),
                     type=known.kind, source=readable_source(known.source), value=known.value,
                     via=place(known.via))  # fmt: skip


def _guard(known: GuardRecord) -> Guard:
    return Guard(
        type=known.kind,
        code=readable_source(known.code),
        source=readable_source(known.source),
        compile_id=known.compile_id,
        place=place(known.span),
    )


def capture(known: CaptureRecord) -> Capture:
    """The work of TorchDynamo as data."""
    return Capture(
        id="capture",
        summary=repr(known),
        kind="capture",
        compile_ids=list(known.compile_ids),
        breaks=[graph_break(each, f"break:{n}") for n, each in enumerate(known.breaks)],
        guards=[_guard(each) for each in known.guards],
        recompiles=[recompile(each) for each in known.recompiles],
        symbols=[
            Symbol(name=each.name, value=each.hint, range=each.range,
                   source=readable_source(each.source), place=place(each.span))
            for each in known.symbols
        ],
        in_eager_mode=[
            AsCaptured(rule=each.rule, reason=each.reason, place=place(each.span))
            for each in known.as_captured
        ],
    )  # fmt: skip


def source(known: SourceFile) -> Source:
    """A source as data."""
    return Source(file=known.file, first_line=known.first_line, text=known.text)


# ---- our own compilations ---------------------------------------------------------------------


def compilation(known: Record) -> Compilation:
    """One inspected call as data."""
    calls = known.coverage.calls
    eager = known.eager
    return Compilation(
        id=ROOT,
        summary=repr(known),
        kind="compilation",
        name=known.name,
        target=known.target,
        kernels=known.after.kernels - calls,
        library_calls=calls,
        eager_kernels=None if eager is None else eager.kernels,
        before=cost(known.before),
        after=cost(known.after),
        peak_bytes=max((p.schedule.memory.peak_after for p in known.parts), default=0),
        compile_seconds=known.total_seconds,
        seconds=dict(known.seconds),
        source=source(known.source),
        capture=capture(known.capture),
        graphs=[graph(each, f"g{number}", known.source.called_from)
                for number, each in enumerate(known.graphs)],
    )  # fmt: skip


def graph(known: CompiledGraph, at: str, called_from: Span | None = None) -> Graph:
    """One captured graph with its parts."""
    return Graph(
        id=at,
        summary=repr(known),
        kind="graph",
        nodes=len(known.captured.nodes),
        eager_kernels=None if known.eager is None else known.eager.kernels,
        partition=None if known.partition is None else partition(known.partition),
        parts=[part(each, f"{at}.{each.name}", called_from) for each in known.parts],
    )


def partition(known: PartitionRecord) -> Partition:
    """What is kept for the backward."""
    saved = [KeptValue(value=v.name, nbytes=v.nbytes, is_input=v.is_input, why=v.why)
             for v in known.saved]  # fmt: skip
    again = [KeptValue(value=v.name, nbytes=0, is_input=False, why=v.why)
             for v in known.recomputed]  # fmt: skip
    return Partition(
        kept_bytes=known.cut_bytes,
        eager_bytes=known.bytes_if_all_saved,
        minimum_bytes=known.bytes_if_min,
        saved=saved,
        recomputed=again,
    )


def sources_of(known: CompiledPart, called_from: Span | None = None) -> Sources:
    """The nodes of all graphs of a part: before the passes and after each of them."""
    return Sources.of([known.graph, *(step.after for step in known.rewrites.steps)], called_from)


def memory(known: CompiledPart, sources: Sources, at: str) -> MemoryPlan:
    """The memory plan of a part."""
    buffers = known.schedule.program.buffers
    origins = {name: buffer.origins for name, buffer in buffers.items()}
    for nest in known.schedule.program.nests:
        origins[nest.buffer] = origins.get(nest.buffer) or nest.origins
    return memory_plan(known.schedule.memory, sources, origins, at)


def part(known: CompiledPart, at: str, called_from: Span | None = None) -> Part:
    """One direction of a graph."""
    assert known.name in ("forward", "backward"), known.name
    sources = sources_of(known, called_from)
    reader = PartReader(known, sources, f"{at}.")
    return Part(
        id=at,
        summary=repr(known),
        kind="part",
        name="backward" if known.name == "backward" else "forward",
        before=cost(known.schedule.before),
        after=cost(known.schedule.after),
        order=list(reader.order),
        kernels=reader.kernels(),
        library_calls=reader.calls(),
        memory=memory(known, sources, f"{at}."),
        rewrites=[RewritePass(name=step.name, fired=[str(each) for each in step.fired])
                  for step in known.rewrites.steps if step.changed],
        passes=list(known.passes),
        texts=[text(known.loops, f"{at}.loops"), text(known.host, f"{at}.host"),
               *([text(known.host_in_runs, f"{at}.host_in_runs")] if known.host_in_runs else [])],
        libraries=[library(each) for each in known.libraries],
        decisions=decisions(known.schedule.decisions, f"{at}."),
    )  # fmt: skip


def library(known: Choice) -> LibraryChoice:
    """The measured library for all products of one size."""
    measured = [MeasuredLibrary(name=name, seconds=seconds) for name, seconds in known.seconds]
    return LibraryChoice(operator=known.op, sizes=list(known.sizes), dtype=known.dtype,
                         measured=measured, chosen=known.chosen)  # fmt: skip


def text(known: object, at: str) -> Text:
    """A value as its complete text."""
    return Text(id=at, summary=repr(known).split("\n")[0], kind="text",
                type=type(known).__name__, text=str(known))  # fmt: skip


# ---- stock's compilations ---------------------------------------------------------------------


def stock_compilation(known: StockRecord) -> StockCompilation:
    """One call compiled by stock as data."""
    return StockCompilation(
        id=ROOT,
        summary=repr(known),
        kind="stock_compilation",
        name=known.name,
        torch_version=known.torch_version,
        compile_seconds=known.total_seconds,
        source=source(known.source),
        capture=capture(known.capture),
        graphs=[stock_graph(each, f"g{number}") for number, each in enumerate(known.graphs)],
        problems=list(known.problems),
    )


def stock_graph(known: StockGraphRecord, at: str) -> StockGraph:
    """One captured graph that stock compiled."""
    return StockGraph(
        id=at,
        summary=repr(known),
        kind="stock_graph",
        compile_id=known.compile_id,
        error=known.error,
        parts=[stock_part(each, f"{at}.{each.name}") for each in known.parts],
    )


def stock_part(known: StockPartRecord, at: str) -> StockPart:
    """One direction of a graph that stock compiled."""
    sources = Sources.of([known.graph, known.last])
    return StockPart(
        id=at,
        summary=f"{known!r}; {counted(len(known.fusion), 'line')} of the fusion log",
        kind="stock_part",
        name=known.name,
        cache=known.cache,
        kernels=list(_stock_kernels(known.kernels, sources, f"{at}.")),
        fusion=[
            StockFusion(first=each.first, second=each.second, fused=each.fused, reason=each.reason)
            for each in known.fusion
        ],
    )


def _stock_kernels(
    kernels: Iterable[StockKernelRecord], sources: Sources, at: str
) -> Iterator[StockKernel]:
    for number, kernel in enumerate(kernels):
        yield stock_kernel(kernel, sources, f"{at}kernel:{number}")


def stock_kernel(known: StockKernelRecord, sources: Sources, at: str) -> StockKernel:
    """One kernel of stock, or a library function that it calls."""
    lines = sources.lines(known.nodes)
    return StockKernel(
        id=at,
        summary=f"{known.name}: {known.language}, {known.bytes:,} bytes{lines and f'; {lines}'}",
        kind="stock_kernel",
        name=known.name,
        language=known.language,
        calls=known.calls,
        bytes_read=known.bytes_read,
        bytes_written=known.bytes_written,
        seconds=known.seconds,
        origins=sources.origins(known.nodes),
        code=code_lines(known.code),
        flops=known.flops,
        buffers=[_stock_buffer(each, sources) for each in known.buffers],
        operations=[_stock_operation(each, sources, f"{at}.op:{number}")
                    for number, each in enumerate(known.operations)],
        recomputed=[Recomputed(buffer=each.value, also_in=list(each.also_in))
                    for each in known.recomputed],
    )  # fmt: skip


def _stock_buffer(known: StockBuffer, sources: Sources) -> BufferUse:
    node = sources.nodes.get(known.buffer)
    return BufferUse(
        buffer=known.buffer, parameter=known.parameter, role=known.role,
        filled_by=known.filled_by, given=node.given if node is not None else "",
        dtype=known.dtype, shape=list(known.shape), stride=list(known.stride),
        nbytes=known.nbytes,
    )  # fmt: skip


def _stock_operation(known: StockOperation, sources: Sources, at: str) -> Operation:
    axes = [Axis(name=f"p{n}", size=size)
            for n, size in enumerate((*known.axes, *known.reduce_axes))]  # fmt: skip
    return Operation(
        id=at,
        summary=str(known).partition("\n")[0],
        kind="operation",
        nest=known.nest,
        buffer=known.buffer,
        role=known.role,
        axes=axes[: len(known.axes)],
        reduce_axes=axes[len(known.axes) :],
        reads=list(known.reads),
        text=known.text,
        origins=sources.origins(known.origins),
    )
