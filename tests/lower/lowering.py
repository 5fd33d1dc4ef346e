"""Compile a function up to lowering, and run the interpreted loop program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._functorch.aot_autograd import aot_function

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.program import ExternCall, LoopProgram
from inductor_lab.compiler.ir.verify import verify
from inductor_lab.compiler.lower.graph import lower_graph, lowered
from inductor_lab.compiler.rewrite.decompose.decompositions import decomposition_table
from inductor_lab.compiler.torch_door import torch_api
from tests.tracing import through_aot


@dataclass
class Lowered:
    """Runs a function as verified loop programs, and keeps the programs."""

    options: Options = field(default_factory=Options)
    programs: list[LoopProgram] = field(default_factory=list)

    def aot(self, function: Callable[..., Any], dynamic: bool = False) -> Callable[..., Any]:
        """Traced only by AOTAutograd: fast, but arguments must be tensors."""
        return aot_function(
            function,
            fw_compiler=self.compiler("forward"),
            bw_compiler=self.compiler("backward"),
            decompositions=decomposition_table(lowered()),
            dynamic=dynamic,
        )

    def dynamo(self, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """Captured by TorchDynamo, as users do."""
        torch.compiler.reset()
        return torch.compile(function, backend=self._backend, fullgraph=True, **options)

    def compiler(self, name: str) -> Callable[..., Any]:
        """A compiler for AOTAutograd."""

        def compile_graph(module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
            program = lower_graph(module, name, self.options)
            verify(program)
            self.programs.append(program)
            return torch_api.boxed(lambda *args: list(program.run(*args)))

        return compile_graph

    def externs(self) -> Counter[str]:
        """The number of calls of each library operator, in all programs."""
        return Counter(
            step.op
            for program in self.programs
            for step in program.steps
            if isinstance(step, ExternCall)
        )

    def _backend(self, module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        return through_aot(module, inputs, self.compiler)


def program_of(function: Callable[..., Any], *inputs: Any) -> LoopProgram:
    """The loop program of a function without gradients."""
    lowered = Lowered()
    lowered.aot(function)(*inputs)
    return lowered.programs[0]


def assert_same(actual: Any, expected: Any, **tolerance: float) -> None:
    """Equal dtypes, sizes, strides and (nearly) equal values."""
    torch.testing.assert_close(actual, expected, check_stride=True, equal_nan=True, **tolerance)
