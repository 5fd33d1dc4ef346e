"""Compile a function with lowering as the last phase: what runs is the interpreted loop program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from inductor_lab import torch_api
from inductor_lab.ir.program import LoopProgram
from inductor_lab.lower.graph import lower_graph
from inductor_lab.options import Options
from inductor_lab.rewrite.decompositions import decomposition_table
from torch._functorch.partitioners import default_partition


@dataclass
class Lowered:
    """A function that runs as loop programs, and the programs that were made for it."""

    options: Options = field(default_factory=Options)
    programs: list[LoopProgram] = field(default_factory=list)

    def compiler(self, name: str) -> Callable[..., Any]:
        def compile_graph(module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
            program = lower_graph(module, name, self.options)
            self.programs.append(program)
            return torch_api.boxed(lambda *args: list(program.run(*args)))

        return compile_graph

    def backend(self, module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        return torch_api.aot_autograd(
            module,
            inputs,
            fw_compiler=self.compiler("forward"),
            bw_compiler=self.compiler("backward"),
            inference_compiler=self.compiler("inference"),
            partition_fn=default_partition,
            decompositions=decomposition_table(),
        )

    def __call__(self, function: Callable[..., Any], dynamic: bool = False) -> Callable[..., Any]:
        torch.compiler.reset()
        return torch.compile(function, backend=self.backend, fullgraph=True, dynamic=dynamic)
