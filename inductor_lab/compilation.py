"""What a person holds after a compile: every station of the way, as values.

`Compilation` keeps them in the order of the way.  Everything but the fields marked live is plain
data: it can be saved, loaded on another machine, printed and drawn there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inductor_lab import saving
from inductor_lab.again import Again, call_again
from inductor_lab.autograd.result import JointGraph, Partition
from inductor_lab.bench.roofline import StepTime
from inductor_lab.capture.graph import FxGraph
from inductor_lab.capture.result import Capture
from inductor_lab.capture.source import SourceFile
from inductor_lab.codegen.kernel import HostProgram, Kernel
from inductor_lab.display import Shown
from inductor_lab.ir.program import ExternCall, LoopProgram
from inductor_lab.observer import Phase
from inductor_lab.rewrite.record import Decomposed
from inductor_lab.rewrite.result import Rewrites
from inductor_lab.runtime.executable import Executable
from inductor_lab.runtime.matmul import Choice
from inductor_lab.schedule.result import Cost, Schedule
from inductor_lab.trace import write_trace
from inductor_lab.what_if import Call, Comparison, recompile


@dataclass(frozen=True, eq=False)
class CompiledPart(Shown):
    """One direction of one graph, from ATen ops to running code.

    `name` is "forward" (also when no gradient is needed) or "backward"; `times` has one entry for
    each step of the schedule, once `Compilation.measure` has run.  `libraries` tells which library
    got which matrix product, with the seconds of both.
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

    def __repr__(self) -> str:
        return f"CompiledPart({self.name}: {self.schedule!r})"

    def __str__(self) -> str:
        kernels = "\n".join(str(kernel) for kernel in self.kernels)
        return f"{self.loops}\n{self.schedule}\n{kernels}\n{self.host}"


@dataclass(frozen=True, eq=False)
class CompiledGraph(Shown):
    """One captured graph with all that became of it.

    `joint`, `partition` and `backward` are None where no gradient was asked for.  `inputs` are the
    live arguments of the graph's first call, for `run` of its stages; `seconds` the compile time of
    this graph by phase.
    """

    captured: FxGraph
    joint: JointGraph | None
    partition: Partition | None
    forward: CompiledPart
    backward: CompiledPart | None = None
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
    """An op that was left to a library: how often, and why no code of ours was made for it."""

    op: str
    reason: str
    count: int


@dataclass(frozen=True)
class Coverage:
    """How much of the work is generated code: loop nests against calls into a library.

    `lines` counts the generated lines that compute something; `linked` are those of them that lead
    to a line of the person's source.
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
        """Generated steps over all steps, 0 to 1."""
        total = self.generated + self.calls
        return self.generated / total if total else 1.0

    @property
    def linked_share(self) -> float:
        """Generated lines that lead to a line of the source, 0 to 1."""
        return self.linked / self.lines if self.lines else 1.0

    def __str__(self) -> str:
        lines = [
            f"{self.share:.0%} generated: {self.generated} loop nests, {self.calls} extern calls",
            f"  {self.linked_share:.1%} of {self.lines} generated lines lead to the source",
        ]
        lines += [f"  {use.count:4d} x {use.op}  ({use.reason})" for use in self.extern]
        return "\n".join(lines)


def _linked_lines(part: CompiledPart) -> Iterator[bool]:
    """For every generated line that computes something: does it lead to the person's source?"""
    graphs = [part.graph, *(step.after for step in part.rewrites.steps if step.after is not None)]
    spanned = {node.name for graph in graphs for node in graph.nodes if node.span is not None}
    for kernel in part.kernels:
        for line in kernel.code.lines:
            if line.statement or line.origins:
                yield not spanned.isdisjoint(line.origins)


@dataclass(frozen=True, eq=False)
class Compilation(Shown):
    """One call of one function, compiled and looked into.

    name      of the function
    source    its text, with line numbers
    capture   what TorchDynamo saw: graphs, guards, breaks, bytecode, symbols
    graphs    one entry for each captured graph, in the order they were compiled
    seconds   compile time by phase (`"forward.lower"`); see also `capture.seconds`
    phases    when each phase ran, ours and TorchDynamo's, in seconds since the call began
    target    None, or the machine it was compiled for without running
    result    what the inspected call returned (live)
    compiled  the compiled function, to call again (live)
    call      the function, its arguments and options, for `what_if` (live)
    """

    name: str
    source: SourceFile
    capture: Capture
    graphs: tuple[CompiledGraph, ...]
    seconds: Mapping[str, float]
    phases: tuple[Phase, ...] = ()
    target: str | None = None
    result: Any = field(default=None, metadata={"live": True})
    compiled: Callable[..., Any] | None = field(default=None, metadata={"live": True})
    call: Call | None = field(default=None, metadata={"live": True})

    @property
    def parts(self) -> tuple[CompiledPart, ...]:
        return tuple(part for graph in self.graphs for part in graph.parts)

    @property
    def coverage(self) -> Coverage:
        steps = [step for part in self.parts for step in part.loops.steps]
        uses = Counter((s.op, s.reason) for s in steps if isinstance(s, ExternCall))
        extern = tuple(ExternUse(op, why, n) for (op, why), n in uses.most_common())
        linked = [is_linked for part in self.parts for is_linked in _linked_lines(part)]
        return Coverage(len(steps) - sum(uses.values()), extern, len(linked), sum(linked))

    @property
    def before(self) -> Cost:
        """What all graphs cost with one kernel for each op."""
        return sum((part.schedule.before for part in self.parts), Cost())

    @property
    def after(self) -> Cost:
        """What they cost as they were compiled."""
        return sum((part.schedule.after for part in self.parts), Cost())

    @property
    def saved(self) -> float:
        """Share of the memory traffic that fusion removed, 0 to 1."""
        return 1 - self.after.bytes / self.before.bytes if self.before.bytes else 0.0

    @property
    def total_seconds(self) -> float:
        """Compile time of the whole call, capture included."""
        return self.seconds.get("total", 0.0)

    def __repr__(self) -> str:
        return (
            f"Compilation({self.name}: {len(self.graphs)} graphs, "
            f"{self.before.kernels} -> {self.after.kernels} kernels, {self.saved:.1%} saved)"
        )

    def __str__(self) -> str:
        breaks = len(self.capture.breaks)
        lines = [
            f"{self.name}: {_count(len(self.graphs), 'graph')}, {_count(breaks, 'graph break')}",
            f"  kernels        {self.before.kernels} -> {self.after.kernels}",
            f"  memory passes  {self.before.passes} -> {self.after.passes}  "
            f"({self.saved:.1%} of the traffic saved)",
            f"  compile time   {self.total_seconds:.2f} s",
            f"  coverage       {self.coverage}",
        ]
        return "\n".join(lines)

    def what_if(
        self,
        *,
        forbid: Iterable[tuple[str, ...]] = (),
        force: Iterable[tuple[str, ...]] = (),
        fusion_off: Iterable[str] = (),
        rewrites_off: Iterable[str] = (),
        memory_budget: float | None = None,
        fusion: bool | None = None,
    ) -> Compilation:
        """Make the inspected call once more, as this one was made but for these changes.

        forbid, force   pairs of buffers, producer first (`[("buf0", "buf3")]`), and if need be the
                        part they stand in (`("buf0", "buf3", "g0.backward")`); a forced pair still
                        must be legal
        fusion_off      names of profit rules that are not asked
        rewrites_off    names of rewrite passes or rules that are left out
        memory_budget   0 to 1: how much may be kept for the backward
        fusion          False: every loop nest is a kernel of its own

        The function runs again, with all it does.  Raises BadOption for unknown names, NotRunnable
        for a compilation that was loaded from a file.  `compare` shows what has changed.
        """
        return recompile(
            self,
            forbid=forbid,
            force=force,
            fusion_off=fusion_off,
            rewrites_off=rewrites_off,
            memory_budget=memory_budget,
            fusion=fusion,
        )

    def again(self, *args: Any, **kwargs: Any) -> Again:
        """Call the compiled function with these arguments: was its code used again, if not, why?

        Raises NotRunnable for a compilation that was loaded from a file.
        """
        return call_again(self, *args, **kwargs)

    def measure(self, seconds: float = 1.0) -> Compilation:
        """This compilation with the time of each of its kernels and library calls.

        Makes the inspected call again for about so many seconds, with its gradient if it has one,
        and times every step where it runs.  The explorer, the annotated source and saved files show
        the times.  Raises NotRunnable for one that was loaded, or compiled for another machine.
        """
        from inductor_lab.bench.kernels import measure

        return measure(self, seconds)

    def compare(self, other: Compilation) -> Comparison:
        """This compilation (before) and another one (after): numbers and the code's difference."""
        return Comparison(self, other)

    def annotate(self) -> Any:
        """The source with the bytes that each line moves; a notebook opens a line's own code."""
        from inductor_lab.display import annotated

        return annotated(self)

    def widget(self) -> Any:
        """The explorer as an anywidget, for homes that want one (VS Code, Colab, marimo)."""
        from inductor_lab.display import live_widget

        return live_widget(self)

    def _repr_mimebundle_(self, **more: Any) -> dict[str, Any] | None:
        from inductor_lab.display import mime_bundle

        return mime_bundle(self)

    def save(self, path: str | Path) -> Path:
        """Write all data (JSON, no pickle) to `path`; raises CannotWrite."""
        return saving.save(Path(path), self)

    def trace(self, path: str | Path) -> Path:
        """Write when each phase ran as a Chrome trace, for Perfetto; raises CannotWrite."""
        return write_trace(Path(path), self.name, self.phases)

    def report(
        self, path: str | Path, *, ladder: str | None = None, assembly: bool = False
    ) -> Path:
        """Write one HTML file that opens anywhere and fetches nothing; raises CannotWrite.

        ladder    a GPU such as `"cuda:90"`: every kernel as TTIR, TTGIR, LLVM and PTX for it too
        assembly  the C++ kernels' machine code too (needs objdump)
        """
        from inductor_lab.display import write_report

        return write_report(self, Path(path), ladder, assembly)


def load(path: str | Path) -> Compilation:
    """Read what `Compilation.save` wrote.

    Live parts (running code, results) are gone; raises UnreadableFile if the file is not ours, is
    damaged, or was written by a newer version.
    """
    return saving.load(Path(path), Compilation)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
