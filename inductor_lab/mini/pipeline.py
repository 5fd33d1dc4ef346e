"""The stages in order: from the graph that TorchDynamo captured to a function.

In:    a captured graph and example inputs: the arguments of a backend of torch.compile.
Out:   a function that computes the same.  `inspect` also returns what every stage made.

    captured graph
      │ AOTAutograd, decompose.py    joint graph; or one graph of ATen operators, without gradients
      │ autograd.py                  forward and backward
      │ lower.py, fuse.py            loops, fewer loops, groups
      │ memory.py, cpp.py            a place for each buffer, kernels
      ▼ host.py                      a function
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import functorch.compile
import torch
from torch.fx import GraphModule
from torch.utils._pytree import tree_leaves as leaves

from inductor_lab.mini.autograd import Partition, partition
from inductor_lab.mini.cpp import Kernels, print_kernels
from inductor_lab.mini.decompose import table
from inductor_lab.mini.fuse import Schedule, group, substitute
from inductor_lab.mini.host import HostProgram, host_program
from inductor_lab.mini.loops import Program
from inductor_lab.mini.lower import Lowering, is_symbolic
from inductor_lab.mini.memory import MemoryPlan, plan

Function = Callable[..., Any]


@dataclass(frozen=True)
class Part:
    """The stages of one graph: a forward, a backward, or a graph without gradients.

    Each stage prints.  `graph` is called, the others have `run`; all take the same inputs.
    """

    kind: str
    graph: GraphModule
    program: Program
    fused: Program
    reasons: dict[tuple[str, str], str]
    schedule: Schedule
    plan: MemoryPlan
    kernels: Kernels
    host: HostProgram

    def stages(self) -> dict[str, Function]:
        """The function of each stage that runs, in order."""
        names = ("program", "fused", "schedule", "plan", "host")
        return {"graph": self.graph, **{name: getattr(self, name).run for name in names}}

    def __str__(self) -> str:
        """All stages after the graph."""
        names = ("program", "fused", "schedule", "plan", "kernels", "host")
        return "\n\n".join(f"== {self.kind}, {name}\n{getattr(self, name)}" for name in names)


def compile_graph(graph: GraphModule, kind: str) -> Part:
    """Take a graph of ATen operators through all stages."""
    program = Lowering(graph).program()
    fused, reasons = substitute(program)
    schedule = group(fused)
    memory_plan, kernels = plan(schedule), print_kernels(schedule)
    host = host_program(memory_plan, kernels)
    return Part(kind, graph, program, fused, reasons, schedule, memory_plan, kernels, host)


@dataclass
class Graph:
    """What was made of one captured graph; `partition` is None without gradients."""

    captured: GraphModule
    partition: Partition | None = None
    parts: list[Part] = field(default_factory=list)

    def __str__(self) -> str:
        stages = [f"== captured\n{self.captured.graph}", *map(str, self.parts)]
        return "\n\n".join([*stages, f"== partition\n{self.partition}"])


def compile_captured(module: GraphModule, inputs: Sequence[Any], graphs: list[Graph]) -> Function:
    """Compile a captured graph, and add what was made of it to `graphs`.

    AOTAutograd calls `partition`, then a compiler for each graph.
    """
    if any(map(is_symbolic, inputs)):
        return for_each_size(module, graphs)
    made = Graph(module)
    graphs.append(made)

    def compiler(kind: str) -> Function:
        def compile(graph: GraphModule, inputs: Sequence[Any]) -> Function:
            if any(map(is_symbolic, leaves([n.meta.get("val") for n in graph.graph.nodes]))):
                return functorch.compile.make_boxed_func(graph.forward)  # type: ignore
            made.parts.append(compile_graph(graph, kind))
            return functorch.compile.make_boxed_func(made.parts[-1].host.run)  # type: ignore

        return compile

    def split(joint: GraphModule, inputs: Any, *, num_fwd_outputs: int, **options: Any) -> Any:
        made.partition = partition(joint, num_fwd_outputs)
        return made.partition.forward, made.partition.backward

    return functorch.compile.aot_module_simplified(  # type: ignore[no-any-return]
        module, list(inputs), decompositions=table(), partition_fn=split,
        fw_compiler=compiler("forward"), bw_compiler=torch.compiler.disable(compiler("backward")),
        inference_compiler=compiler("inference"),
    )  # fmt: skip


def for_each_size(module: GraphModule, graphs: list[Graph]) -> Function:
    """A function that compiles the graph when it is called with sizes for the first time."""
    versions: dict[Any, Function] = {}

    def call(*args: Any) -> Any:
        layouts = ((x.shape, x.stride(), x.requires_grad) if isinstance(x, torch.Tensor) else x
                   for x in args)  # fmt: skip
        key = (torch.is_grad_enabled(), *layouts)
        if key not in versions:
            versions[key] = compile_captured(module, args, graphs)
        return versions[key](*args)

    return torch.compiler.disable(call)  # type: ignore[no-any-return]


def inductor_lab_mini(module: GraphModule, inputs: Sequence[Any], **options: Any) -> Function:
    """The backend of `torch.compile(f, backend="inductor_lab_mini")`."""
    return compile_captured(module, inputs, [])


def inspect(fn: Function, *args: Any, **kwargs: Any) -> list[Graph]:
    """Compile a function, call it once, and return its graphs with every stage."""
    graphs: list[Graph] = []
    torch.compile(fn, backend=lambda m, i: compile_captured(m, i, graphs))(*args, **kwargs)
    return graphs


# What the full compiler does differently
#
# - compiler/pipeline.py: passes at four levels (FX graph, loops, schedule, loop tree), each with a
#   name, a record of before and after, and a switch.
# - compiler/capture/: also keeps guards, graph breaks and the source line of each operator.
# - api/backend.py, compiler/base/options.py: options, modes, observers.
# - One program serves all sizes: a symbol stays a symbol in loops, plan and code.
