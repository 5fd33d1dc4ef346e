"""Ways to compile a sample: straight through AOTAutograd, or from Python through TorchDynamo.

The short one skips Dynamo, whose share of the time is the largest and whose code is not ours; it
cannot break a graph, so ops whose result depends on values (`nonzero`) take the long one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._functorch.aot_autograd import aot_function
from torch.utils._pytree import tree_flatten, tree_unflatten

from inductor_lab.compiler.base.observer import Observer
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.program import ExternCall, LoopProgram
from inductor_lab.compiler.ir.verify import verify
from inductor_lab.compiler.lower.graph import lower_graph, lowered
from inductor_lab.compiler.pipeline import GraphCompiler
from inductor_lab.compiler.rewrite.decompose.decompositions import decomposition_table
from inductor_lab.compiler.rewrite.passes import rewrite
from inductor_lab.compiler.schedule.passes import schedule_program
from inductor_lab.compiler.torch_door import torch_api
from tests.fresh import compile_always
from tests.opinfo.database import Sample

compile_always()

STAGES = ("loops", "schedule", "code")
"""What runs in the end: interpreted loop nests, an interpreted schedule, or generated code."""


@dataclass
class Seen(Observer):
    """Which programs were made, and the phase that is at work."""

    programs: list[LoopProgram] = field(default_factory=list)
    phase: str = ""

    def entered(self, phase: str) -> None:
        self.phase = phase

    def left(self, phase: str, result: Any) -> None:
        if result is not None:
            self.phase = ""
        if isinstance(result, LoopProgram):
            self.programs.append(result)

    def externs(self) -> list[str]:
        """Each call into a library: `"aten.mm.default (library)"`."""
        steps = [step for program in self.programs for step in program.steps]
        calls = {f"{s.op} ({s.reason})" for s in steps if isinstance(s, ExternCall)}
        return sorted(calls)


@dataclass
class Interpreting(GraphCompiler):
    """A GraphCompiler whose result is interpreted; needs no C++ compiler."""

    stage: str = "schedule"

    def compile_part(self, module: torch.fx.GraphModule, name: str) -> Callable[..., Any]:
        options = self.options
        rewrites = self._phase(
            f"{name}.rewrite", lambda: rewrite(module, name, options, record=False)
        )
        loops = self._phase(f"{name}.lower", lambda: lower_graph(rewrites.module, name, options))
        self._phase(f"{name}.verify", lambda: verify(loops) or True)
        if self.stage == "loops":
            return torch_api.boxed(lambda *args: list(loops.run(*args)))
        schedule = self._phase(f"{name}.schedule", lambda: schedule_program(loops, options.fusion))
        return torch_api.boxed(lambda *args: list(schedule.run(*args)))


def compiler(seen: Seen, stage: str, options: Options) -> GraphCompiler:
    """One for each graph."""
    if stage == "code":
        return GraphCompiler(options, seen)
    return Interpreting(options, seen, stage=stage)


def short(sample: Sample, seen: Seen, stage: str, options: Options) -> Callable[..., Any]:
    """The call of a sample, compiled from its ATen graph on."""
    compiling = compiler(seen, stage, options)
    around: list[Any] = []

    def traced(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaves, spec = tree_flatten(sample.call(*tensors))
        around[:] = leaves, spec
        return tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))

    compiled = aot_function(
        traced,
        fw_compiler=lambda m, i: compiling.compile_part(m, "forward"),
        bw_compiler=lambda m, i: compiling.compile_part(m, "backward"),
        partition_fn=compiling.partition,
        decompositions=decomposition_table(lowered()),
        dynamic=bool(options.dynamic),
    )

    def call(*tensors: torch.Tensor) -> Any:
        found = iter(compiled(*tensors))
        leaves, spec = around
        filled = [next(found) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        return tree_unflatten(filled, spec)

    return call


def long(sample: Sample, seen: Seen, stage: str, options: Options) -> Callable[..., Any]:
    """The call of a sample under torch.compile with our backend."""

    def backend(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return compiler(seen, stage, options).compile(module, inputs, "graph")

    return under_dynamo(sample, backend, options)


def stock(sample: Sample, options: Options) -> Callable[..., Any]:
    """The call of a sample under torch.compile with no compiler but AOTAutograd."""
    return under_dynamo(sample, "aot_eager", options)


def under_dynamo(sample: Sample, backend: Any, options: Options) -> Callable[..., Any]:
    torch_api.reset()
    op = sample.op

    def function(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    compiled = torch.compile(function, backend=backend, dynamic=options.dynamic)

    def call(*tensors: torch.Tensor) -> Any:
        args, kwargs = sample.rebuild(tensors)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compiled(*args, **kwargs)

    return call
