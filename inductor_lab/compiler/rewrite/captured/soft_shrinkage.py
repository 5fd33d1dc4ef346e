"""Soft shrinkage of 16-bit floats as eager mode computes it, in the captured graph.

    F.softshrink(x, 0.3)      →      F.softshrink(x.to(torch.float32), 0.3).to(x.dtype)

Eager mode computes in float32 and rounds once.  torch's definition, which AOTAutograd uses for this
function even if its table has none, rounds each of its steps to 16 bits.

Inductor: none; it has that defect.
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.rewrite.captured.calls import insert_call

SHORT = (torch.bfloat16, torch.float16)


def widen_soft_shrinkage(module: GraphModule) -> None:
    """Rewrite all calls with 16-bit floats, also those in nested graphs."""
    softshrink = torch.nn.functional.softshrink
    for part in [part for part in module.modules() if isinstance(part, GraphModule)]:
        for node in part.graph.find_nodes(op="call_function", target=softshrink):
            _rewrite(node, *node.args, **node.kwargs)
            part.recompile()


def _rewrite(node: Node, input: Node, lambd: float = 0.5) -> None:
    fake = input.meta["example_value"]
    if fake.dtype not in SHORT:
        return

    x = insert_call(node, torch.Tensor.to, input, torch.float32)
    shrunk = insert_call(node, torch.nn.functional.softshrink, x, lambd)
    node.replace_all_uses_with(insert_call(node, torch.Tensor.to, shrunk, fake.dtype))
    node.graph.erase_node(node)
