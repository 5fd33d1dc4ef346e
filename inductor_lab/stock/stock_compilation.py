"""The compilation of one call by stock `torch.compile`, in the records of our compiler.

Captured, joint and ATen graphs are `FxGraph`s, generated text is `Code` with origins, and the
result of TorchDynamo is a `Capture`.  Stock's intermediate representation is available only as
text, so an `IrNode` is that text with its origins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from inductor_lab.api.arguments import Seconds, checked
from inductor_lab.compiler.autograd.graphs import JointGraph
from inductor_lab.compiler.base.display import (
    HasWidget,
    Shown,
    bytes_text,
    counted,
    live_widget,
    mime_bundle,
    write_report,
)
from inductor_lab.compiler.base.observer import Phase
from inductor_lab.compiler.base.operations import perform
from inductor_lab.compiler.capture.capture import Capture
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.capture.source import SourceFile
from inductor_lab.compiler.codegen.kernel import Code
from inductor_lab.compiler.records import Call
from inductor_lab.saved import saving
from inductor_lab.saved.trace import write_trace

Language: TypeAlias = Literal["cpp", "triton", "extern"]


@dataclass(frozen=True, slots=True)
class IrNode:
    """One node of stock's scheduler: its name (`op3`), kind, origins and text.

    reads, writes   names of buffers
    members         the nodes of a fused node (`op0_op3`: `op0`, `op3`)
    """

    name: str
    kind: str
    origins: frozenset[str]
    text: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FusionStep:
    """One line of stock's fusion log: two nodes that were fused, or the reason for a refusal."""

    first: str
    second: str
    fused: bool
    reason: str = ""

    def __str__(self) -> str:
        verdict = "fused" if self.fused else f"not fused: {self.reason}"
        return f"{self.first} + {self.second}: {verdict}"


Sizes: TypeAlias = tuple[int | str, ...]
"""Numbers, or expressions of symbols."""

NestKind: TypeAlias = Literal["pointwise", "reduction", "scan", "scatter"]
Filling: TypeAlias = Literal["input", "constant", "computed", "extern"]


@dataclass(frozen=True, slots=True)
class StockOperation:
    """One loop nest of a kernel: a node of stock's scheduler.

    nest      "pointwise", "reduction", "scan" or "scatter"
    role      "stored" to memory, or kept in a "register"
    text      its operations in order
    """

    node: str
    nest: NestKind
    buffer: str
    role: Literal["stored", "register"]
    axes: Sizes
    reduce_axes: Sizes
    reads: tuple[str, ...]
    text: str
    origins: frozenset[str]

    def __str__(self) -> str:
        loops = " x ".join(map(str, self.axes)) or "a single point"
        reduced = " x ".join(map(str, self.reduce_axes))
        over = f", reduces {reduced}" if reduced else ""
        head = f"{self.node}: {self.nest} {self.buffer} ({self.role}) over {loops}{over}"
        return "\n".join([head, *(f"  {line}" for line in self.text.split("\n") if line)])


@dataclass(frozen=True, slots=True)
class StockBuffer:
    """A buffer that a kernel reads (`role` "in") or writes ("out"), and its parameter."""

    buffer: str
    parameter: str
    role: Literal["in", "out"]
    filled_by: Filling
    dtype: str
    shape: Sizes
    stride: Sizes
    nbytes: int


@dataclass(frozen=True, slots=True)
class RecomputedValue:
    """An FX node that several kernels compute; `also_in` names the other kernels."""

    value: str
    also_in: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class StockKernel(Shown):
    """One generated kernel, or one library function that the program calls (`extern`).

    nodes       FX nodes that it computes, in the graph after stock's passes
    calls       the number of calls in one run of the program
    bytes_read, bytes_written   totals of all calls, counted from the graph: tensors that a call's
                nodes read from other nodes, tensors that other nodes read, and arguments that the
                call writes; a tensor of unknown size counts as 0
    seconds     total of its calls in one call of the user's function, after `measure`
    operations  its loop nests in order, if stock reported its IR
    buffers     what the first call reads and writes, in the order of the parameters
    recomputed  FX nodes that other kernels compute too
    flops       arithmetic operations of all calls; symbolic sizes count as 0
    """

    name: str
    language: Language
    code: Code
    nodes: tuple[str, ...]
    calls: int = 1
    bytes_read: int = 0
    bytes_written: int = 0
    seconds: float | None = None
    operations: tuple[StockOperation, ...] = ()
    buffers: tuple[StockBuffer, ...] = ()
    recomputed: tuple[RecomputedValue, ...] = ()
    flops: int = 0

    def __repr__(self) -> str:
        return f"StockKernel({self.name}: {self.language}, {counted(len(self.code.lines), 'line')})"

    def __str__(self) -> str:
        """What it reads, writes, computes and computes again, then its code."""
        lines = [f"{self.name}: {bytes_text(self.bytes_read)} read, "
                 f"{bytes_text(self.bytes_written)} written, {self.flops:,} flops"]  # fmt: skip
        lines += [f"  {b.role:<3} {b.buffer} ({b.parameter}): {b.dtype}{[*b.shape]}"
                  for b in self.buffers]  # fmt: skip
        lines += [f"  {line}" for each in self.operations for line in str(each).split("\n")]
        lines += [f"  recomputed: {r.value}, also in {', '.join(r.also_in)}"
                  for r in self.recomputed]  # fmt: skip
        return "\n".join([*lines, "", str(self.code)])

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True, eq=False)
class StockPart(Shown):
    """One direction of one graph, as compiled by stock.

    graph, after   the ATen graph before and after stock's passes; None if not reported
    ir_before, ir_after   scheduler nodes before and after fusion
    fusion         fused pairs, and refused pairs with the reason
    host           the Python wrapper around the kernels
    text           the complete text of stock's `output_code.py`
    cache          the result of the graph cache: "miss", "hit", "bypass", or "" if not reported
    missing        view → why it is empty
    cuda_graph_skips   why stock does not replay it as a CUDA graph, from its log
    """

    name: str
    graph: FxGraph
    after: FxGraph | None
    ir_before: tuple[IrNode, ...]
    ir_after: tuple[IrNode, ...]
    fusion: tuple[FusionStep, ...]
    kernels: tuple[StockKernel, ...]
    host: Code
    text: str = ""
    cache: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)
    cuda_graph_skips: tuple[str, ...] = ()

    @property
    def generated(self) -> tuple[StockKernel, ...]:
        """The kernels that stock generated."""
        return tuple(kernel for kernel in self.kernels if kernel.language != "extern")

    @property
    def last(self) -> FxGraph:
        """The graph from which the kernels were generated."""
        return self.graph if self.after is None else self.after

    def __repr__(self) -> str:
        return f"StockPart({self.name}: {counted(len(self.kernels), 'kernel')})"

    def __str__(self) -> str:
        return self.text or str(self.host)


@dataclass(frozen=True, eq=False)
class StockGraph(Shown):
    """One captured graph and its compilation; `error` is the reason if stock failed."""

    compile_id: str
    captured: FxGraph
    joint: JointGraph | None
    forward: StockPart | None
    backward: StockPart | None = None
    error: str = ""

    @property
    def parts(self) -> tuple[StockPart, ...]:
        return tuple(part for part in (self.forward, self.backward) if part is not None)

    def __repr__(self) -> str:
        kinds = " + ".join(part.name for part in self.parts) or "captured only"
        return f"StockGraph({self.compile_id or self.captured.name}: {kinds})"

    def __str__(self) -> str:
        return "\n".join([str(self.captured), *(f"# {part.name}\n{part}" for part in self.parts)])


@checked
@dataclass(frozen=True, eq=False)
class StockCompilation(Shown, HasWidget):
    """One call compiled by stock `torch.compile`, or one compile id of a trace log.

    The fields are those of `Compilation`.  `problems` lists what could not be read.  `as_captured`
    has the graphs of a live call as TorchDynamo gave them to stock: those of `graphs` are parsed
    from text.
    """

    name: str
    source: SourceFile
    capture: Capture
    graphs: tuple[StockGraph, ...]
    seconds: Mapping[str, float] = field(default_factory=dict)
    phases: tuple[Phase, ...] = ()
    torch_version: str = ""
    problems: tuple[str, ...] = ()
    result: Any = field(default=None, metadata={"live": True})
    compiled: Any = field(default=None, metadata={"live": True})
    call: Call | None = field(default=None, metadata={"live": True})
    as_captured: tuple[FxGraph, ...] = field(default=(), metadata={"live": True})

    @property
    def parts(self) -> tuple[StockPart, ...]:
        return tuple(part for graph in self.graphs for part in graph.parts)

    @property
    def kernels(self) -> tuple[StockKernel, ...]:
        return tuple(kernel for part in self.parts for kernel in part.kernels)

    @property
    def total_seconds(self) -> float:
        return self.seconds.get("total", 0.0)

    @property
    def statements(self) -> tuple[int, int]:
        """The number of statements in generated kernels, and of those linked to a user's line."""
        total = linked = 0
        for part in self.parts:
            spanned = {
                node.name
                for graph in (part.graph, part.last)
                for node in graph.nodes
                if node.span is not None
            }
            for kernel in part.generated:
                lines = [line for line in kernel.code.lines if line.statement]
                total += len(lines)
                linked += sum(not spanned.isdisjoint(line.origins) for line in lines)
        return total, linked if self.source.called_from is None else total

    @property
    def linked_share(self) -> float:
        """The share of kernel statements that are linked to a user's line, 0 to 1."""
        total, linked = self.statements
        return linked / total if total else 1.0

    def _repr_mimebundle_(self, **more: Any) -> dict[str, Any] | None:
        return mime_bundle(self)

    def __repr__(self) -> str:
        graphs = counted(len(self.graphs), "graph")
        return f"StockCompilation({self.name}: {graphs}, {self._kernels_text()})"

    def __str__(self) -> str:
        total, linked = self.statements
        caches = ", ".join(dict.fromkeys(part.cache for part in self.parts if part.cache))
        answered = f"  (graph cache: {caches})" if caches else ""
        breaks = counted(len(self.capture.breaks), "graph break")
        return "\n".join(
            [
                f"{self.name}: stock torch.compile {self.torch_version}".rstrip(),
                f"  graphs         {len(self.graphs)}, {breaks}",
                f"  kernels        {self._kernels_text()}",
                f"  compile time   {self.total_seconds:.2f} s{answered}",
                f"  linked         {linked} of {total} kernel statements lead to the source",
                *(f"  problem        {problem}" for problem in self.problems),
            ]
        )

    def _kernels_text(self) -> str:
        """`18 kernels in 25 calls, 4 library functions in 49 calls`."""
        parts = []
        for what, is_extern in (("kernel", False), ("library function", True)):
            calls = [k.calls for k in self.kernels if (k.language == "extern") == is_extern]
            within = f" in {counted(sum(calls), 'call')}" if calls else ""
            parts.append(f"{counted(len(calls), what)}{within}")
        return ", ".join(parts)

    def measure(self, seconds: float = 1.0) -> StockCompilation:
        """The same compilation with the time of each kernel.

        The call, and its backward if it has one, is repeated for about `seconds`, with a timer on
        each C++ kernel and each function of `extern_kernels`.  Other calls of stock have no time.
        Raises NotRunnable for a loaded compilation.
        """
        measured: StockCompilation = perform("measured_stock", self, seconds)
        return measured

    def compile_time(self, *, limit: Seconds = 600.0) -> Any:
        """What the compile costs: seconds by phase, peak memory, and what stock's caches answer.

        The call is compiled twice, each time in a process of its own and for at most `limit`
        seconds: with empty caches on disk, and with the caches of the first compile.  If a cache
        has no entry then, the result says why.  Raises NotRunnable for a loaded compilation, and if
        a compile fails.
        """
        return perform("compile_time", self, limit=limit)

    def again(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled function with these arguments: was its code reused?  If not, why?

        Raises NotRunnable for a compilation that was loaded.
        """
        return perform("call_again", self, *args, **kwargs)

    def blame(self, *args: Any, limit: Seconds = 60.0, **kwargs: Any) -> Any:
        """Find the first wrong stage of the inspected call, or of a call with these arguments.

        Also reports a call that used code compiled for other conditions (a stale guard).  `limit`
        is the time limit of compiled code in seconds.  Raises NotRunnable for a compilation that
        was loaded.
        """
        return perform("blame_again", self, *args, limit=limit, **kwargs)

    def why_not_fused(
        self, first: str | int | None = None, second: str | int | None = None, *,
        part: str | None = None, ours: bool = True, measure: Seconds | None = None,
    ) -> Any:  # fmt: skip
        """Are two values computed by one kernel?  If not, which rule of stock prevents it, what
        does it mean, and what would have to change?

        first, second   a buffer (`"buf0"`), a node of stock's scheduler (`"op0"`), an FX node
                        (`"exp"`), each optionally with its part (`"g0.backward.buf0"`), or a source
                        line (`12`, `"model.py:12"`); without them: all pairs that share data and
                        were not fused
        part            only this part, such as `"g0.forward"`
        ours            also compile the call with inductor_lab, which calls the function once: does
                        it fuse the two, and what does that save?  Not for a loaded compilation
        measure         time the call for so many seconds with and without the fusion of ours

        Raises UnknownName for a name or a line that nothing is computed for, and NotReported if
        the log has no fusion decisions (a log of `TORCH_TRACE`, or a graph from stock's cache).
        """
        return perform("why_not_fused", self, first, second, part=part, ours=ours, measure=measure)

    def cuda_graphs(self, *, require: bool = False) -> Any:
        """Which parts are replayed as CUDA graphs, and the reason for each part that is not.

        With `require`, raises NotReplayed if a part is not replayed.
        """
        return perform("cuda_graphs", self, require=require)

    def widget(self) -> Any:
        """The explorer as an anywidget: programs read and set what it shows (docs/notebooks.md)."""
        return live_widget(self)

    def save(self, path: str | Path) -> Path:
        """Write all data (JSON, no pickle) to `path`, for `lab.load`; raises CannotWrite."""
        return saving.save(Path(path), self)

    def trace(self, path: str | Path) -> Path:
        """Write the times of all phases as a Chrome trace; raises CannotWrite."""
        return write_trace(Path(path), self.name, self.phases)

    def report(self, path: str | Path) -> Path:
        """Write one HTML file that needs no network; raises CannotWrite."""
        return write_report(self, Path(path))

