"""The results of a compile, as data.

`Record` has the stages in order.  All fields that are not marked live are plain data, which can be
saved, loaded on another machine, printed and drawn.  The methods for users (`what_if`, `measure`,
`save`, ...) are in `compilation.Compilation`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from inductor_lab.compiler.autograd.graphs import JointGraph, Partition
from inductor_lab.compiler.base.display import Shown, bytes_text, counted
from inductor_lab.compiler.base.errors import NotPicklable
from inductor_lab.compiler.base.observer import Phase
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.capture.capture import Capture
from inductor_lab.compiler.capture.eager_cost import EagerCost
from inductor_lab.compiler.capture.fx_graph import FxGraph, Span
from inductor_lab.compiler.capture.source import SourceFile
from inductor_lab.compiler.codegen.kernel import HostProgram, Kernel
from inductor_lab.compiler.codegen.tree.tree_history import KernelTrees
from inductor_lab.compiler.ir.higher_order import KERNELS_OF_OURS, written_kernels
from inductor_lab.compiler.ir.index import ASSUMED
from inductor_lab.compiler.ir.program import ExternCall, LoopProgram
from inductor_lab.compiler.library_choice import Choice
from inductor_lab.compiler.rewrite.decompose.decomposition_record import Decomposed
from inductor_lab.compiler.rewrite.rewrites import Rewrites
from inductor_lab.compiler.schedule.schedule import Cost, Schedule, fused_text
from inductor_lab.compiler.step_time import Spent, StepTime, duration
from inductor_lab.compiler.torch_door.torch_types import torch

if TYPE_CHECKING:
    from inductor_lab.compiler.runtime.executable import Executable


@dataclass(frozen=True, eq=False)
class PassStep(Shown):
    """The result of one pass over loop programs or schedules; the first one is "build"."""

    name: str
    result: LoopProgram | Schedule

    def __repr__(self) -> str:
        return f"PassStep({self.name}: {self.result!r})"

    def __str__(self) -> str:
        return f"# {self.name}\n{self.result}"


@dataclass(frozen=True, eq=False)
class CompiledPart(Shown):
    """One direction of one graph, from ATen operators to executable code.

    `name` is "forward" (also if no gradient is needed) or "backward".  `times` has one entry for
    each step of the schedule after `Compilation.measure` has run.  `libraries` has the library for
    each matrix product, with the measured seconds.  `trees` has the loop tree of each C++ kernel,
    before and after each pass that changed it; `loop_steps` and `schedule_steps` have the loop
    program and the schedule in the same way.  `written` has kernels that replace an operator, and
    are called like a library.  `host_in_runs` is the host program that is called instead of `host`
    if consecutive steps are single calls (`accelerate/step_runs.py`), unless a tool needs single
    steps.
    """

    name: str
    graph: FxGraph
    decompositions: tuple[Decomposed, ...]
    rewrites: Rewrites
    loops: LoopProgram
    schedule: Schedule
    kernels: tuple[Kernel, ...]
    host: HostProgram
    executable: Executable | None = field(default=None, metadata={"live": True})
    times: tuple[StepTime, ...] = ()
    libraries: tuple[Choice, ...] = ()
    trees: tuple[KernelTrees, ...] = ()
    written: tuple[Kernel, ...] = ()
    loop_steps: tuple[PassStep, ...] = ()
    schedule_steps: tuple[PassStep, ...] = ()
    host_in_runs: HostProgram | None = None

    def __post_init__(self) -> None:
        if not self.written:
            object.__setattr__(self, "written", written_kernels(self.loops.callees.values()))

    @property
    def passes(self) -> tuple[str, ...]:
        """The passes that changed something, at any level."""
        found = [step.name for step in self.rewrites.steps if step.changed]
        found += [step.name for step in (*self.loop_steps[1:], *self.schedule_steps[1:])]
        found += [name for trees in self.trees for name in trees.passes]
        return tuple(dict.fromkeys(found))

    @property
    def all_kernels(self) -> tuple[Kernel, ...]:
        return *self.kernels, *self.written

    @property
    def assumed(self) -> frozenset[str]:
        """The symbols in sizes.  Costs count each as ASSUMED, whatever its value in this call."""
        sizes = (n for buffer in self.loops.buffers.values() for n in buffer.layout.size)
        return frozenset(str(s) for n in sizes for s in getattr(n, "free_symbols", ()))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle or copy it.  Raises NotPicklable if it has executable code."""
        if self.executable is not None:
            what = f"the {self.name} has compiled code, which exists only in this process"
            todo = "use c.save(path) and lab.load(path), which keep everything except the code"
            raise NotPicklable(what, todo=todo)
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"CompiledPart({self.name}: {self.schedule!r})"

    def __str__(self) -> str:
        kernels = "\n".join(str(kernel) for kernel in self.all_kernels)
        return f"{self.loops}\n{self.schedule}\n{kernels}\n{self.host}"


@dataclass(frozen=True, eq=False)
class CompiledGraph(Shown):
    """One captured graph with the results of all stages.

    `joint`, `partition` and `backward` are None if no gradient was requested.  `inputs` has the
    live arguments of the first call, for the `run` methods of the stages.  `seconds` is the compile
    time by phase.  `eager` is the cost in eager mode, or None if it is unknown.
    """

    captured: FxGraph
    joint: JointGraph | None
    partition: Partition | None
    forward: CompiledPart
    backward: CompiledPart | None = None
    eager: EagerCost | None = None
    inputs: tuple[Any, ...] = field(default=(), metadata={"live": True})
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[CompiledPart, ...]:
        return (self.forward,) if self.backward is None else (self.forward, self.backward)

    def __repr__(self) -> str:
        kinds = " + ".join(part.name for part in self.parts)
        return f"CompiledGraph({self.captured.name}: {kinds})"

    def __str__(self) -> str:
        return "\n".join(f"# {part.name}\n{part}" for part in self.parts)


@dataclass(frozen=True)
class ExternUse:
    """An operator that a library computes: how often, and why no code was generated for it."""

    op: str
    reason: str
    count: int


@dataclass(frozen=True)
class Coverage:
    """The fraction of steps that generated code computes, compared with library calls.

    Generated code is loop nests, and kernels that replace operators.  `lines` is the number of
    generated lines that compute something.  `linked` is the number of these lines that are linked
    to a line of the user's source.
    """

    generated: int
    extern: tuple[ExternUse, ...]
    lines: int = 0
    linked: int = 0

    @property
    def calls(self) -> int:
        return sum(use.count for use in self.extern)

    @property
    def share(self) -> float:
        """The fraction of steps that are generated, 0 to 1."""
        total = self.generated + self.calls
        return self.generated / total if total else 1.0

    @property
    def linked_share(self) -> float:
        """The fraction of generated lines that are linked to a line of the source, 0 to 1."""
        return self.linked / self.lines if self.lines else 1.0

    @property
    def headline(self) -> str:
        """`87% generated`, or `nothing to generate` if no operator was captured."""
        some = self.generated + self.calls
        return f"{self.share:.0%} generated" if some else "nothing to generate"

    def __str__(self) -> str:
        if not self.generated + self.calls:
            return f"{self.headline}: no operator on tensors was captured, or only views of them"
        nests, calls = counted(self.generated, "loop nest"), counted(self.calls, "extern call")
        lines = [
            f"{self.headline}: {nests}, {calls}",
            f"  {self.linked_share:.1%} of {self.lines} generated lines lead to the source",
        ]
        lines += [f"  {use.count:4d} x {use.op}  ({use.reason})" for use in self.extern]
        return "\n".join(lines)


def _linked_lines(part: CompiledPart, called_from: Span | None) -> Iterator[bool]:
    """Yield for each generated line that computes something whether it is linked to the source."""
    graphs = [part.graph, *(step.after for step in part.rewrites.steps if step.after is not None)]
    spanned = {node.name for graph in graphs for node in graph.nodes if node.span is not None}
    for kernel in part.all_kernels:
        for line in kernel.code.lines:
            if line.statement or line.origins:
                yield called_from is not None or not spanned.isdisjoint(line.origins)


@dataclass(frozen=True, eq=False)
class Call:
    """The inspected call, which can be repeated with the same arguments and gradients.

    `inspect(fn, *args, options=..., **kwargs)` creates a record (`lab.inspect`).  `sizes` is what
    TorchDynamo knows about dynamic sizes after this call and later calls.
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    options: Options
    with_grad: bool
    inspect: Callable[..., Any]
    sizes: dict[Any, Any] = field(default_factory=dict)

    def under(self, options: Options) -> Any:
        """Repeat the call with these options."""
        with torch.set_grad_enabled(self.with_grad):
            return self.inspect(self.fn, *self.args, options=options, **self.kwargs)


@dataclass(frozen=True, eq=False)
class Record(Shown):
    """One compiled call of one function, with all stages.

    name          the name of the function
    source        its text, with line numbers
    capture       the result of TorchDynamo: graphs, guards, breaks, bytecode, symbols
    graphs        one entry for each captured graph, in the order of compilation
    seconds       compile time by phase (`"forward.lower"`); see also `capture.seconds`
    phases        when each phase of TorchDynamo and inductor_lab ran, in seconds since the call
    target        the machine that it was compiled for without running, or None
    torch_version  the version of torch that it was compiled with; "" if it is unknown
    call_seconds  the median time of the call while `measure` timed its kernels
    result        the result of the inspected call (live)
    compiled      the compiled function, which can be called (live)
    call          the function, its arguments and options, for `what_if` (live)
    """

    name: str
    source: SourceFile
    capture: Capture
    graphs: tuple[CompiledGraph, ...]
    seconds: Mapping[str, float]
    phases: tuple[Phase, ...] = ()
    target: str | None = None
    torch_version: str = ""
    call_seconds: float = 0.0
    result: Any = field(default=None, metadata={"live": True})
    compiled: Callable[..., Any] | None = field(default=None, metadata={"live": True})
    call: Call | None = field(default=None, metadata={"live": True})

    @property
    def parts(self) -> tuple[CompiledPart, ...]:
        return tuple(part for graph in self.graphs for part in graph.parts)

    @property
    def coverage(self) -> Coverage:
        steps = [step for part in self.parts for step in part.loops.steps]
        calls = [s for s in steps if isinstance(s, ExternCall) and s.reason != KERNELS_OF_OURS]
        uses = Counter((call.op, call.reason) for call in calls)
        extern = tuple(ExternUse(op, why, n) for (op, why), n in uses.most_common())
        line = self.source.called_from
        linked = [is_linked for part in self.parts for is_linked in _linked_lines(part, line)]
        return Coverage(len(steps) - sum(uses.values()), extern, len(linked), sum(linked))

    @property
    def eager(self) -> EagerCost | None:
        """The cost of the captured graphs in eager mode, or None if it is unknown."""
        costs = [graph.eager for graph in self.graphs]
        return None if None in costs else sum(filter(None, costs), EagerCost())

    @property
    def kernels_text(self) -> str:
        """`1 eager, 5 unfused → 1 fused`: operator calls in eager mode, then kernels."""
        eager = f"{self.eager.kernels:,} eager, " if self.eager is not None else ""
        fused = fused_text(self.after.kernels, self.coverage.calls)
        return f"{eager}{self.before.kernels:,} unfused → {fused}"

    @property
    def peak_text(self) -> str:
        """`12.0 kB without fusion and reuse → 4.0 kB`: the largest peak memory of any part."""
        plans = [part.schedule.memory for part in self.parts]
        unfused = bytes_text(max((plan.peak_unfused for plan in plans), default=0))
        planned = bytes_text(max((plan.peak_after for plan in plans), default=0))
        return f"{unfused} without fusion and reuse → {planned}"

    @property
    def before(self) -> Cost:
        """Cost of all graphs unfused: one kernel for each op (eager mode can launch fewer)."""
        return sum((part.schedule.before for part in self.parts), Cost())

    @property
    def after(self) -> Cost:
        """Cost of all graphs as compiled."""
        return sum((part.schedule.after for part in self.parts), Cost())

    @property
    def saved(self) -> float:
        """The fraction of the memory traffic that fusion removed, 0 to 1."""
        return 1 - self.after.bytes / self.before.bytes if self.before.bytes else 0.0

    @property
    def sizes(self) -> dict[Any, Any]:
        """What TorchDynamo remembers of the sizes of the inspected call's arguments."""
        return {} if self.call is None else self.call.sizes

    @property
    def total_seconds(self) -> float:
        """Compile time of the call, including capture."""
        return self.seconds.get("total", 0.0)

    def __repr__(self) -> str:
        return (
            f"Compilation({self.name}: {counted(len(self.graphs), 'graph')}, "
            f"kernels: {self.kernels_text}, {self.saved:.1%} saved)"
        )

    def _measured_text(self) -> list[str]:
        """The line about measured times; none before `measure`."""
        times = [took for part in self.parts for took in part.times]
        if not times:
            return []
        spent = Spent.of(times)
        kernels, libraries = duration(spent.kernels), duration(spent.libraries)
        return [f"  measured       {kernels} in kernels, {libraries} in library calls"]

    def __str__(self) -> str:
        breaks = len(self.capture.breaks)
        lines = [
            f"{self.name}: {counted(len(self.graphs), 'graph')}, {counted(breaks, 'graph break')}",
            f"  kernels        {self.kernels_text}",
            f"  memory passes  {self.before.passes:,} unfused → {self.after.passes:,} fused "
            f"({self.saved:.1%} of the traffic saved)",
            f"  peak memory    {self.peak_text}",
            f"  arithmetic     {self.after.flops:,} flop",
            f"  guards         {len(self.capture.guards):,}",
            f"  compile time   {self.total_seconds:.2f} s",
            *self._measured_text(),
            f"  coverage       {self.coverage}",
        ]
        assumed = ", ".join(sorted({name for part in self.parts for name in part.assumed}))
        lines += [f"  {why}" for why in self.capture.as_captured]
        lines[4:4] = [f"  dynamic sizes  {assumed}: each counted as {ASSUMED}"] if assumed else []
        return "\n".join(lines)



AnyRecord = TypeVar("AnyRecord", bound=Record)
