"""Soft shrinkage of 16-bit floats as eager mode computes it, in the captured graph.

    F.softshrink(x, 0.3)      →      F.softshrink(x.to(torch.float32), 0.3).to(x.dtype)

Eager mode computes in float32 and rounds once.  torch's definition, which AOTAutograd uses for this
function even if its table has none, rounds each of its steps to 16 bits.

Inductor: none; it has that defect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node

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

    def call(function: Callable[..., torch.Tensor], *args: Any) -> Node:
        made = node.graph.call_function(function, args)
        fakes = torch.fx.map_arg(args, lambda n: n.meta["example_value"])
        made.meta = {**node.meta, "example_value": function(*fakes)}
        return made

    with node.graph.inserting_before(node):
        x = call(torch.Tensor.to, input, torch.float32)
        shrunk = call(torch.nn.functional.softshrink, x, lambd)
        result = call(torch.Tensor.to, shrunk, fake.dtype)
    node.replace_all_uses_with(result)
    node.graph.erase_node(node)
