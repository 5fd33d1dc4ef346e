"""Compile a function to Triton kernels and run them: interpreted on the CPU, compiled on a GPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.codegen.generate import generate_kernels
from inductor_lab.compiler.codegen.host.host_program import host_program
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.lower.graph import lower_graph
from inductor_lab.compiler.runtime.executable import build_executable
from inductor_lab.compiler.schedule.passes import schedule_program
from inductor_lab.compiler.schedule.schedule import Schedule
from inductor_lab.compiler.torch_door.torch_api import boxed
from tests.tracing import through_aot


@dataclass
class InTriton:
    """A backend that generates only Triton kernels and keeps them."""

    options: Options = field(default_factory=lambda: Options(language="triton"))
    kernels: list[Kernel] = field(default_factory=list)
    runs: bool = True
    schedules: list[Schedule] = field(default_factory=list)

    def compiler(self, name: str) -> Callable[..., Any]:
        def compile_graph(module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
            program = lower_graph(module, name, self.options)
            schedule = schedule_program(program, self.options.fusion)
            self.schedules.append(schedule)
            kernels = generate_kernels(schedule, self.options)
            self.kernels.extend(kernels)
            if not self.runs:
                return boxed(module.forward)
            host = host_program(schedule, kernels)
            return build_executable(schedule, kernels, host, self.options)

        return compile_graph

    def backend(self, module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        return through_aot(module, inputs, self.compiler)

    def __call__(self, function: Callable[..., Any], dynamic: bool = False) -> Callable[..., Any]:
        torch.compiler.reset()
        return torch.compile(function, backend=self.backend, fullgraph=True, dynamic=dynamic)


def kernels_of(
    function: Callable[..., Any], *args: Any, dynamic: bool = False, run: bool = True
) -> list[Kernel]:
    """The kernels of a call, after running them once; without `run`, for fake tensors."""
    compiled = InTriton(runs=run)
    compiled(function, dynamic)(*args)
    return compiled.kernels


def loads_of_rows(kernel: Kernel, number: int) -> list[str]:
    """The lines that load more than one element of an input for a row."""
    loads = (line for line in str(kernel.code).splitlines() if f"tl.load(in{number} " in line)
    return [line for line in loads if re.search(r"\br(index|1)\b", line)]
