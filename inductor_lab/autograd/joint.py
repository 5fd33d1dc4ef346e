"""The joint graph as data."""

from __future__ import annotations

import torch

from inductor_lab.autograd.result import JointGraph
from inductor_lab.capture.graph import FxGraph
from inductor_lab.capture.graph_of import fx_graph


def joint_graph(
    module: torch.fx.GraphModule, num_fwd_outputs: int, *, earlier: FxGraph | None = None
) -> JointGraph:
    """Read the module that AOTAutograd hands to a partition function."""
    inputs = module.graph.find_nodes(op="placeholder")
    tangents = tuple(node.name for node in inputs if is_tangent(node))
    return JointGraph(
        graph=fx_graph(module, "joint", earlier=earlier),
        num_forward_outputs=num_fwd_outputs,
        primals=tuple(node.name for node in inputs if node.name not in tangents),
        tangents=tangents,
    )


def is_tangent(node: torch.fx.Node) -> bool:
    """Is this input the gradient of an output?  AOTAutograd names them `tangents_1`, ..."""
    return node.op == "placeholder" and "tangents" in str(node.target)
