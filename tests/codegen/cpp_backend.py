"""Compile functions to C++ and run them: from the traced graph to the loaded library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.codegen.cpp.printer import cpp_kernel
from inductor_lab.compiler.codegen.host.host_program import host_program
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.lower.graph import lower_graph
from inductor_lab.compiler.runtime.executable import build_executable
from inductor_lab.compiler.schedule.passes import schedule_program
from tests.tracing import through_aot


@dataclass
class Compiled:
    """A compiler that compiles and runs C++; `kernels` are all its kernels."""

    kernels: list[Kernel] = field(default_factory=list)

    def compile_graph(self, module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        schedule = schedule_program(lower_graph(module, "graph", Options()), Options().fusion)
        buffers = schedule.program.buffers
        kernels = tuple(cpp_kernel(g, buffers, f"cpp_{g.name}") for g in schedule.groups)
        self.kernels.extend(kernels)
        host = host_program(schedule, kernels)
        return build_executable(schedule, kernels, host, Options())

    def backend(self, module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        return through_aot(module, inputs, lambda name: self.compile_graph)

    def __call__(self, function: Callable[..., Any], dynamic: bool = False) -> Callable[..., Any]:
        torch.compiler.reset()
        return torch.compile(function, backend=self.backend, fullgraph=True, dynamic=dynamic)
