"""Compile a function to Triton kernels and run them: interpreted on the CPU, compiled on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._functorch.partitioners import default_partition

from inductor_lab import torch_api
from inductor_lab.codegen.kernel import Kernel
from inductor_lab.codegen.triton import triton_kernel
from inductor_lab.ir.interpret import Run, concrete
from inductor_lab.ir.program import Buffer
from inductor_lab.lower.graph import lower_graph
from inductor_lab.options import FusionOptions, Options
from inductor_lab.rewrite.decompositions import decomposition_table
from inductor_lab.runtime.triton_launch import load_kernel
from inductor_lab.schedule.fuse import schedule_program
from inductor_lab.schedule.result import Group, Schedule


def empty(buffer: Buffer, run: Run) -> torch.Tensor:
    layout = buffer.layout
    size = [concrete(s, run.symbols) for s in layout.size]
    stride = [concrete(s, run.symbols) for s in layout.stride]
    return torch.empty_strided(size, stride, dtype=buffer.dtype, device=run.device(buffer.device))


@dataclass
class InTriton:
    """A backend whose kernels are all Triton; keeps the kernels that it made."""

    interpret: bool = True
    fusion: FusionOptions = field(default_factory=FusionOptions)
    kernels: list[Kernel] = field(default_factory=list)

    def compiler(self, name: str) -> Callable[..., Any]:
        def compile_graph(module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
            program = lower_graph(module, name, Options())
            schedule = schedule_program(program, self.fusion)
            run = self.runner(schedule)
            return torch_api.boxed(lambda *args: list(run(*args)))

        return compile_graph

    def runner(self, schedule: Schedule) -> Callable[..., Any]:
        buffers = schedule.program.buffers
        functions = {}
        for group in schedule.groups:
            kernel = triton_kernel(group, buffers, f"triton_{group.name}")
            self.kernels.append(kernel)
            functions[group.name] = (kernel, load_kernel(kernel, interpret=self.interpret))

        def call(*inputs: Any) -> tuple[Any, ...]:
            with torch.no_grad():
                run = Run(schedule.program, inputs)
                for step in schedule.steps:
                    if isinstance(step, Group):
                        self.launch(run, buffers, *functions[step.name])
                    else:
                        run.call(step)
                return tuple(run.output(output) for output in schedule.program.outputs)

        return call

    def launch(self, run: Run, buffers: Any, kernel: Kernel, function: Any) -> None:
        arguments = []
        for parameter in kernel.parameters:
            if parameter.symbol is not None:
                arguments.append(run.symbols[parameter.symbol])
                continue
            if parameter.role == "out":
                run.env[parameter.buffer] = empty(buffers[parameter.buffer], run)
            arguments.append(run.env[parameter.buffer])
        function(*arguments)

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
