"""Step through a compiled call, line by line of its host programs, and show every buffer.

    steps = c.steps()
    next(steps)                # run one statement: new buffers, and memory in use
    for step in steps: ...     # the remaining statements
    steps                      # in a notebook: the program with buttons

The compiled function is called once, and the inputs of each of its parts are copied.  Stepping runs
the kernels of the compilation on these copies.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import torch

from inductor_lab.compiler.base.display import HasWidget, Shown, bytes_text, counted
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.compiler.records import CompiledGraph, CompiledPart, Record
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.blame.stages import span_of
from inductor_lab.debug.compare.state import Kept
from inductor_lab.debug.compare.values import copied_call, copies, gradients, named_results
from inductor_lab.debug.explore.host_statements import HostRun
from inductor_lab.debug.explore.what_if import call_of, inspect_again

BARS = 16
"""Number of bars of a histogram."""
FIRST = 4
"""Number of elements shown of a buffer."""
BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class BufferState:
    """The content of a buffer.  `histogram` counts finite elements from `low` to `high`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    first: tuple[str, ...]
    low: float | None = None
    high: float | None = None
    nan: int = 0
    inf: int = 0
    histogram: tuple[int, ...] = ()

    @staticmethod
    def of(name: str, value: torch.Tensor) -> BufferState:
        dtype = str(value.dtype).removeprefix("torch.")
        if value.layout is not torch.strided:
            return BufferState(name, dtype, tuple(value.shape), 0, (str(value.layout),))
        nbytes = value.numel() * value.element_size()
        first = tuple(f"{v:.5g}" if isinstance(v, float) else str(v)
                      for v in value.detach().reshape(-1)[:FIRST].tolist())  # fmt: skip
        state = (name, dtype, tuple(value.shape), nbytes, first)
        if value.dtype.is_complex or not value.numel():
            return BufferState(*state)
        numbers = value.detach().double().cpu()
        finite = numbers[numbers.isfinite()]
        nan, inf = int(numbers.isnan().sum()), int(numbers.isinf().sum())
        if not finite.numel():
            return BufferState(*state, nan=nan, inf=inf)
        low, high = float(finite.min()), float(finite.max())
        counts = torch.histc(finite, BARS, low, high).long().tolist()
        return BufferState(*state, low, high, nan, inf, tuple(counts))

    @property
    def bars(self) -> str:
        """The histogram as one line of text."""
        most = max(self.histogram, default=0)
        steps = len(BLOCKS) - 1
        return "".join(BLOCKS[-(-count * steps // most)] for count in self.histogram if most)

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        reach = f"{self.low:.4g} .. {self.high:.4g}" if self.low is not None else ""
        counted = (self.nan, "NaN"), (self.inf, "inf")
        strange = "".join(f"  {count} {what}" for count, what in counted if count)
        text = f"{self.name:10} {self.dtype}[{shape}]  {bytes_text(self.nbytes)}  {reach}{strange}"
        more = ", ..." if torch.Size(self.shape).numel() > FIRST else ""
        return f"{text}  {self.bars}  [{', '.join(self.first)}{more}]"


@dataclass(frozen=True)
class Step:
    """One statement that has run.

    line      its line number in the host program (the file `Steps.file`)
    kernel    the kernel that it called; "" if it called none
    made      buffers that are new or whose content changed
    freed     names that were deleted
    held      bytes of memory in use by the call's buffers
    span      the user's line that the statement computes
    """

    number: int
    where: str
    line: int
    text: str
    kernel: str
    made: tuple[BufferState, ...]
    freed: tuple[str, ...]
    held: int
    span: Span | None = None

    def __str__(self) -> str:
        yours = f"   # {self.span}  {self.span.code}" if self.span else ""
        lines = [f"{self.where}:{self.line}  {self.text.strip()}{yours}"]
        lines += [f"    {state}" for state in self.made]
        lines += [f"    freed {', '.join(self.freed)}"] if self.freed else []
        return "\n".join([*lines, f"    {bytes_text(self.held)} held"])


@dataclass(frozen=True, eq=False)
class Running:
    """A part with its inputs in one call."""

    where: str
    part: CompiledPart
    graph: CompiledGraph
    inputs: Sequence[Any]


class Steps(Shown, HasWidget):
    """An iterator over the statements of a call; `done` are those that have run.

    `results` maps the name of a finished part (`"g0.forward"`) to its results.
    """

    def __init__(self, name: str, parts: Sequence[Running]) -> None:
        self.name, self.parts = name, tuple(parts)
        self.done: list[Step] = []
        self.results: dict[str, tuple[Any, ...]] = {}
        self._steps = self._run()

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        step = next(self._steps)
        self.done.append(step)
        return step

    def rest(self) -> Steps:
        """Run the remaining statements; returns itself."""
        for _ in self:
            pass
        return self

    @property
    def current(self) -> Running | None:
        """The part of the last statement that ran; at the start, the first part."""
        last = self.done[-1].where if self.done else self.parts[0].where if self.parts else ""
        return next((running for running in self.parts if running.where == last), None)

    @property
    def finished(self) -> bool:
        return len(self.results) == len(self.parts)

    @property
    def file(self) -> str:
        """The file of the current host program: a breakpoint in it works in every call."""
        running = self.current
        executable = running.part.executable if running is not None else None
        return executable.file if executable is not None else ""

    def _run(self) -> Iterator[Step]:
        for running in self.parts:
            host = HostRun(running.part, copies(running.inputs))
            graphs = _graphs(running)
            lines = running.part.host.code.lines
            contents: dict[str, int] = {}
            for statement in host:
                last = statement.line + statement.text.count("\n")
                origins = sorted({o for n in range(statement.line, last + 1)
                                  for o in lines[n - 1].origins})  # fmt: skip
                spans = (span_of(origin, graphs) for origin in origins)
                kernels = {kernel.name for kernel in running.part.kernels}
                kernel = statement.called if statement.called in kernels else ""
                before, contents = contents, {n: _content(t) for n, t in host.tensors.items()}
                changed = [n for n, content in contents.items() if before.get(n) != content]
                yield Step(
                    len(self.done) + 1, running.where, statement.line, statement.text, kernel,
                    tuple(BufferState.of(n, host.tensors[n]) for n in changed),
                    statement.freed, host.held, next((s for s in spans if s is not None), None),
                )  # fmt: skip
            self.results[running.where] = host.results or ()

    def __repr__(self) -> str:
        how = "finished" if self.finished else f"{counted(len(self.done), 'statement')} done"
        return f"Steps({self.name}: {how})"

    def __str__(self) -> str:
        running = self.current
        if running is None:
            return repr(self)
        here = self.done[-1].line if self.done else 0
        lines = str(running.part.host).splitlines()
        shown = [f"{'>' if n == here else ' '}{n:4d}  {line}" for n, line in enumerate(lines, 1)]
        last = [str(self.done[-1])] if self.done else []
        return "\n".join([f"{running.where}: {self.file}", *shown, *last])

    def widget(self) -> Any:
        """The program with buttons, as an anywidget (docs/notebooks.md)."""
        from inductor_lab.compiler.base.display import live_steps

        return live_steps(self)

    def _repr_mimebundle_(self, **more: Any) -> dict[str, Any] | None:
        from inductor_lab.compiler.base.display import steps_bundle

        return steps_bundle(self)


def _graphs(running: Running) -> list[Any]:
    """The graphs that a line's origins may refer to, in order."""
    part, joint = running.part, running.graph.joint
    after = [step.after for step in part.rewrites.steps if step.after is not None]
    first = [running.graph.captured, *([joint.graph] if joint is not None else [])]
    return [*first, part.graph, *after]


def _content(value: torch.Tensor) -> int:
    """A hash of the content."""
    if value.layout is not torch.strided:
        return id(value)
    plain = value.detach().contiguous().cpu().reshape(-1).view(torch.uint8)
    return hash((plain.numpy().tobytes(), value.data_ptr(), tuple(value.shape)))


def steps_of(compilation: Record) -> Steps:
    """Implements `Compilation.steps`.

    If other code now serves the call, for example after a call with other sizes, the call is
    inspected again.  State that the call changes is restored, because guards may depend on it.
    """
    call = call_of(compilation)
    kept = Kept.of(call.fn, call.args, call.kwargs)
    try:
        seen = _seen(compilation)
        if compilation.graphs and {run.graph for run in seen} != set(compilation.graphs):
            kept.put_back()
            compilation = inspect_again(compilation)
            kept.put_back()
            seen = _seen(compilation)
    finally:
        kept.put_back()
    if not seen:
        raise NotRunnable(
            f"no compiled code of {compilation.name} runs in a call with copies of its arguments: "
            "it is for another machine, nothing was captured, or a guard tells copies apart",
            todo="call lab.inspect(f, x) again, and step through that compilation",
        )
    return Steps(compilation.name, seen)


def _seen(compilation: Record) -> list[Running]:
    """Repeat the inspected call: each part that runs, with its inputs."""
    call, compiled = call_of(compilation), compilation.compiled
    assert compiled is not None, "a compilation with a call has a function"
    parts = [
        (f"g{number}.{part.name}", part, graph)
        for number, graph in enumerate(compilation.graphs)
        for part in graph.parts
    ]
    seen: list[Running] = []
    args, kwargs = copied_call(call.args, call.kwargs)
    with ExitStack() as stack:
        for where, part, graph in parts:
            stack.enter_context(_recorded(where, part, graph, seen))
        with torch.set_grad_enabled(call.with_grad):
            found = dict(named_results(compiled(*args, **kwargs)))
            leaves = pytree.tree_leaves((args, kwargs))
            trained = {str(n): leaf for n, leaf in enumerate(leaves)}
            if isinstance(call.fn, torch.nn.Module):
                trained.update(call.fn.named_parameters())
            if call.with_grad:
                gradients(found, trained)
    return seen


RECORD = "__lab_record__"
_SWAPPING = threading.RLock()


@contextmanager
def _recorded(
    where: str, part: CompiledPart, graph: CompiledGraph, seen: list[Running]
) -> Iterator[None]:
    """Record each call of the part with its inputs while the block runs."""
    if part.executable is None:
        yield
        return
    function: Any = part.executable.call
    code: CodeType = function.__code__
    plain = FunctionType(code, function.__globals__)

    def record(args: list[Any]) -> Any:
        seen.append(Running(where, part, graph, copies(args)))
        return plain(args)

    with _SWAPPING:
        function.__globals__[RECORD] = record
        function.__code__ = _through_record.__code__
        try:
            with part.executable.stepwise():
                yield
        finally:
            function.__code__ = code
            del function.__globals__[RECORD]


def _through_record(args: list[Any]) -> Any:
    return __lab_record__(args)  # type: ignore[name-defined]  # noqa: F821
