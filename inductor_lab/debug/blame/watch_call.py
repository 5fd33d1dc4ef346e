"""Capture and compile a function such that each stage can execute its calls.

The compiled graph keeps AOTAutograd's wrappers, which write to inputs and compute gradients.  The
stage that runs inside them is chosen for each call: the ATen graph, the loops, the schedule, or the
host program.  The function continues with the results of the captured graph run by torch.  So a
wrong graph does not affect the inputs of the next one, and our code cannot end the process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch
from torch.fx import GraphModule

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.capture.capture import Capture
from inductor_lab.compiler.capture.dynamo_listener import recording
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.capture.fx_to_record import fx_graph
from inductor_lab.compiler.ir.program import Write
from inductor_lab.compiler.pipeline import GraphCompiler
from inductor_lab.compiler.records import CompiledPart
from inductor_lab.compiler.torch_door import torch_api
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.blame.run_graphs import Keeping
from inductor_lab.debug.compare.compare_results import first_wrong, judge_all, roundings
from inductor_lab.debug.compare.flatten_values import NotCompared
from inductor_lab.debug.compare.precision import Judged
from inductor_lab.debug.compare.state import Kept
from inductor_lab.debug.compare.values import (
    AFTER,
    Before,
    Outcome,
    call,
    copied_call,
    copies,
    named_results,
    plain_tensors,
)

Stage = Callable[[str, list[Any]], tuple[Any, ...]]
"""`stage("forward", inputs)`: the results, then the new values of inputs."""


@dataclass
class Watched(GraphCompiler):
    """Compiles a graph; `stage` executes it, and `given` has the inputs of each part's last call.

    Without a stage, the compiled code runs.
    """

    stage: Stage | None = None
    given: dict[str, list[Any]] = field(default_factory=dict)

    def compile_part(self, module: GraphModule, name: str) -> Callable[..., Any]:
        compiled = super().compile_part(module, name)
        whole = getattr(compiled, "call", compiled)

        def run(args: list[Any]) -> tuple[Any, ...]:
            self.given[name] = copies(args)
            if self.stage is None:
                result: tuple[Any, ...] = whole(args)
                return result
            inputs = list(args)
            args.clear()
            return written(self.stage(name, inputs), inputs, self.parts[name])

        return torch_api.mark_boxed(run)


def written(values: Sequence[Any], inputs: Sequence[Any], part: CompiledPart) -> tuple[Any, ...]:
    """Write the new values of inputs, and return the results of a stage."""
    writes: Sequence[Write] = part.loops.writes
    results = tuple(values[: len(values) - len(writes)])
    with torch.no_grad():
        for write, value in zip(writes, values[len(results) :], strict=True):
            target = inputs[part.loops.inputs.index(write.input)]
            getattr(target, write.method)(value)
    return results


@dataclass
class CallSite:
    """One captured graph with the inputs of its first call.

    compiled   the compiled function of the graph; None if `error` was raised
    """

    number: int
    module: GraphModule
    captured: FxGraph
    compiled: Callable[..., Any] | None = None
    error: Exception | None = None
    inputs: list[Any] = field(default_factory=list)
    with_grad: bool = False
    calls: int = 0

    @property
    def names(self) -> list[str]:
        """The names of the inputs in user code."""
        found = [n.name for n in self.captured.nodes if n.op == "placeholder"]
        return [name.removeprefix("l_").removesuffix("_") or name for name in found]

    def compile(self, inputs: Sequence[Any]) -> Callable[..., Any]:
        """The graph's function; `inputs` are those of the capture."""
        raise NotImplementedError

    def run(self, stage: Stage | None) -> Outcome:
        """Call the compiled function with a stage (None: the compiled code)."""
        raise NotImplementedError

    def first_call(self, *given: Any) -> Any:
        """The results that the function continues with: the captured graph run by torch."""
        self.calls += 1
        if self.calls == 1:
            self.inputs, self.with_grad = copies(given), torch.is_grad_enabled()
        return Keeping(self.module, keep=False).run_graph(given)


@dataclass
class Site(CallSite):
    """A graph compiled by our compiler."""

    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        self.compiler = Watched(self.options, keep=True, number=self.number)

    def compile(self, inputs: Sequence[Any]) -> Callable[..., Any]:
        return self.compiler.compile(self.module, inputs, self.captured.name)

    @property
    def parts(self) -> Mapping[str, CompiledPart]:
        return self.compiler.parts

    @property
    def called(self) -> Mapping[str, CompiledPart]:
        """The parts that the call has run: no backward if no result has a gradient."""
        given = self.compiler.given
        return {name: part for name, part in self.parts.items() if name in given}

    def run(self, stage: Stage | None) -> Outcome:
        assert self.compiled is not None, "a graph that was not compiled has no stages"
        self.compiler.stage = stage
        return call(self.compiled, copies(self.inputs), self.names, self.with_grad)


S = TypeVar("S", bound=CallSite)


@dataclass(frozen=True)
class Watching(Generic[S]):
    """A captured call: its graphs, and differences from eager mode when they run.

    differs   the first value of the captured graphs that differs from eager mode, with its name
    varies    the first value that differs between two calls in eager mode, with its name
    silent    results that cannot be compared, in a sentence each
    """

    sites: tuple[S, ...]
    capture: Capture
    differs: tuple[str, Judged] | None
    varies: tuple[str, Judged] | None
    silent: tuple[str, ...] = ()


def watch(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], options: Options
) -> Watching[Site]:
    """Capture and compile one call; exceptions of `fn` are passed on."""

    def site(number: int, module: GraphModule, captured: FxGraph) -> Site:
        return Site(number, module, captured, options=options)

    return watch_with(site, fn, args, kwargs, options)


def watch_with(
    make: Callable[[int, GraphModule, FxGraph], S], fn: Callable[..., Any], args: tuple[Any, ...],
    kwargs: Mapping[str, Any], options: Options,
) -> Watching[S]:  # fmt: skip
    """The same with another compiler: `make` returns the site of each captured graph."""
    sites: list[S] = []

    def backend(module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        number = len(sites)
        site = make(number, module, fx_graph(module, f"graph{number}"))
        sites.append(site)
        try:
            site.compiled = site.compile(inputs)
        except Exception as error:
            site.error = error
        return site.first_call

    kept = Kept.of(fn, args, kwargs)
    compiled = torch.compile(
        fn, backend=backend, fullgraph=options.fullgraph, dynamic=options.dynamic
    )
    try:
        eager = _called(fn, args, kwargs, kept)
        with recording() as record, torch_api.fresh_compile({}):
            captured = _called(compiled, args, kwargs, kept)
        differs, varies = _first_difference(captured, eager), None
        if differs is not None:
            varies = _first_difference(_called(fn, args, kwargs, kept), eager)
    finally:
        kept.put_back()
    called = tuple(site for site in sites if site.calls)
    capture = record.capture(tuple(s.captured for s in called))
    silent = (f"{name}: {value}" for name, value in eager.items() if isinstance(value, NotCompared))
    return Watching(called, capture, differs, varies, tuple(silent))


def _first_difference(got: Outcome, eager: Outcome) -> tuple[str, Judged] | None:
    return first_wrong(judge_all(got, eager, None, roundings(eager)))


def _called(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], kept: Kept
) -> Outcome:
    """Results, and values written to arguments and state; state is restored before the call.

    Gradients are compared for each graph separately.
    """
    kept.put_back()
    given, named = copied_call(args, kwargs)
    leaves = [v for v in pytree.tree_leaves((given, named))]
    before = Before(leaves)
    found = dict(named_results(fn(*given, **named)))
    found |= {f"argument {n}{AFTER}": value for n, value in before.written(leaves)}
    found |= {f"{name}{AFTER}": value for name, value in kept.written().items()}
    return plain_tensors(found, kept=True)
