"""One captured graph compiled by stock, with every stage at hand."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch.fx import GraphModule

from inductor_lab.compiler.torch_door import torch_api
from inductor_lab.debug.blame.run_graphs import Keeping
from inductor_lab.debug.blame.watch_call import CallSite, Stage
from inductor_lab.debug.compare.values import Outcome, call, copies
from inductor_lab.stock.blame.record_stages import (
    StockRecord,
    stock_decompositions,
    stock_settings,
)


@dataclass
class Traced:
    """The graph by AOTAutograd, without a compiler: ATen's operators run by torch.

    As for stock, writes to inputs are `copy_` in the graph.

    graphs   `"joint"` if it is trained, `"forward"`, `"backward"`; `given` has their inputs
    """

    run: Callable[..., Any] | None = None
    graphs: dict[str, GraphModule] = field(default_factory=dict)
    given: dict[str, list[Any]] = field(default_factory=dict)
    problem: str = ""

    @staticmethod
    def of(module: GraphModule, inputs: Sequence[Any], decompositions: Mapping[Any, Any]) -> Traced:
        made = Traced()

        def keep(name: str) -> Callable[..., Any]:
            def compiler(graph: GraphModule, _: Any) -> Callable[..., Any]:
                made.graphs[name] = copied = torch_api.copy_of(graph)

                def run(*given: Any) -> Any:
                    made.given[name] = copies(given)
                    return Keeping(copied, keep=False).run_graph(given)

                return torch_api.boxed(run)

            return compiler

        try:
            made.run = torch_api.aot_module_simplified(
                torch_api.copy_of(module), list(inputs), fw_compiler=keep("forward"),
                bw_compiler=keep("backward"), decompositions=dict(decompositions),
                keep_inference_input_mutations=True,
            )  # fmt: skip
        except Exception as error:
            made.problem = f"{type(error).__name__}: {str(error).strip().split(chr(10))[0]}"
        return made


@dataclass
class StockSite(CallSite):
    """A graph compiled by stock; `stage` does its work, if there is one."""

    mode: str = "default"
    dynamic: bool | None = None
    record: StockRecord = field(default_factory=StockRecord)
    joint: Traced = field(default_factory=Traced)
    decomposed: Traced = field(default_factory=Traced)
    stage: Stage | None = None
    given: dict[str, list[Any]] = field(default_factory=dict)

    def compile(self, inputs: Sequence[Any]) -> Callable[..., Any]:
        compile_fx = importlib.import_module("torch._inductor.compile_fx")
        inductor = importlib.import_module("torch._inductor")
        patches = (
            inductor.list_mode_options(self.mode, self.dynamic) if self.mode != "default" else {}
        )
        self.joint = Traced.of(self.module, inputs, {})
        self.decomposed = Traced.of(self.module, inputs, stock_decompositions())
        module = torch_api.copy_of(self.module)
        self.record.keep("captured", module, "pre_grad")
        with stock_settings(), self.record.recording():
            compiled: Callable[..., Any] = compile_fx.compile_fx(
                module, list(inputs),
                inner_compile=self._inner(compile_fx.compile_fx_inner),
                config_patches=patches or None,
            )  # fmt: skip
        return compiled

    def _inner(self, compile_inner: Callable[..., Any]) -> Callable[..., Any]:
        """Compiles one part, and lets a stage do its work."""

        def inner(module: GraphModule, inputs: Any, **more: Any) -> Callable[..., Any]:
            part = "backward" if more.get("is_backward") else "forward"
            self.record.part = part
            self.record.keep("partition", module, part)
            try:
                made = compile_inner(module, inputs, **more)
            finally:
                self.record.part = ""

            def run(args: list[Any]) -> Any:
                self.given[part] = copies(args)
                if self.stage is None:
                    return made(args)
                given = list(args)
                args.clear()
                return self.stage(part, given)

            return torch_api.mark_boxed(run)

        return inner

    def run(self, stage: Stage | None) -> Outcome:
        assert self.compiled is not None, "a graph that was not compiled has no stages"
        self.stage = stage
        return self._call(self.compiled)

    def run_traced(self, traced: Traced) -> Outcome:
        """The same call with the graphs of AOTAutograd in it."""
        assert traced.run is not None, "it was traced"
        return self._call(traced.run)

    def run_snapshots(self, last: bool) -> Outcome:
        """The same call with stock's graphs before, or after, its last passes."""

        def stage(part: str, given: list[Any]) -> Any:
            module = self.record.chains[part][-1 if last else 0].module
            return Keeping(module, keep=False).run_graph(given)

        return self.run(stage)

    def _call(self, compiled: Callable[..., Any]) -> Outcome:
        return call(compiled, copies(self.inputs), self.names, self.with_grad)
