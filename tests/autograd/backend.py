"""A backend that only partitions: AOTAutograd, our partition, and interpretation of both graphs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from inductor_lab.compiler.autograd.graphs import JointGraph, Partition
from inductor_lab.compiler.autograd.joint import joint_graph
from inductor_lab.compiler.autograd.partition import partition
from inductor_lab.compiler.capture.fx_to_record import fx_graph
from inductor_lab.compiler.torch_door import torch_aot, torch_api


@dataclass
class PartitionOnly:
    """For `torch.compile(f, backend=PartitionOnly())`; records the graphs."""

    budget: float = 1.0
    decompositions: dict[Any, Any] | None = None
    joints: list[JointGraph] = field(default_factory=list)
    partitions: list[Partition] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    def __call__(self, module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        captured = fx_graph(module, "captured")

        def cut(joint: torch.fx.GraphModule, joint_inputs: Any, **given: Any) -> Any:
            data = joint_graph(joint, given["num_fwd_outputs"], earlier=captured)
            forward, backward, made = partition(
                joint, joint_inputs, memory_budget=self.budget, earlier=data.graph, **given
            )
            assert made is not None
            self.joints.append(data)
            self.partitions.append(made)
            return forward, backward

        def run(name: str) -> Any:
            def compiler(graph: torch.fx.GraphModule, _: Any) -> Any:
                self.order.append(name)
                return torch_api.boxed(graph)

            return compiler

        return torch_aot.aot_autograd(
            module,
            inputs,
            fw_compiler=run("forward"),
            bw_compiler=run("backward"),
            partition_fn=cut,
            decompositions=self.decompositions,
        )


def compiled(fn: Any, budget: float = 1.0, **more: Any) -> tuple[Any, PartitionOnly]:
    """`fn` compiled by a new backend, and the backend."""
    torch_api.reset()
    backend = PartitionOnly(budget)
    return torch.compile(fn, backend=backend, **more), backend
