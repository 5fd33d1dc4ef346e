"""`addcmul_`, `addcdiv_` and `add_` as eager mode computes them, in the captured graph.

TorchDynamo (since torch 2.13) captures calls of these with a `value` (or, for `add_`, a tensor as
`alpha`) as a product, a sum and a copy:

    x.copy_(fma(a * b, 2, x))      →      x.addcmul_(a, b, value=2)

There the product has the type of `a` and `b`: it wraps in int8, and underflows in float16.  Eager
mode computes it in the type of the sum, 16-bit floats in float32.  A `value` that is a tensor has
no such call, so `a` and `b` are converted.

Inductor: none; it has that defect.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.rewrite.captured.calls import insert_call

FMA = "prims.fma.default"
SHORT = (torch.bfloat16, torch.float16)
METHODS: dict[Any, str] = {torch.mul: "addcmul_", torch.div: "addcdiv_"}


def restore_addcmul(module: GraphModule) -> None:
    """Rewrite all such copies, also those in nested graphs."""
    for part in [part for part in module.modules() if isinstance(part, GraphModule)]:
        found = [copy for copy in part.graph.find_nodes(op="call_method", target="copy_")
                 if isinstance(copy.args[1], Node) and str(copy.args[1].target) == FMA
                 and copy.args[1].args[2] is copy.args[0]]  # fmt: skip
        for copy in found:
            _rewrite(copy)
        if found:
            part.recompile()


def _rewrite(copy: Any) -> None:
    into, fused = copy.args
    product, value, _ = fused.args
    method = METHODS.get(product.target)
    added = product.args if method else (product,)
    if not isinstance(value, Node) and method:
        _call(copy, method, (into, *added), value=value)
    elif isinstance(value, Node):
        examples: Any = [node.meta["example_value"] for node in (into, *added)]
        dtype = sum(examples[1:], examples[0]).dtype
        if torch.can_cast(dtype, examples[0].dtype):
            copy.args = into, _sum(fused, torch.float32 if dtype in SHORT else dtype)
        else:  # for every value, this raises what eager mode raises
            _call(copy, method or "add_", (into, *added))
    for node in (fused, product):
        if not node.users:
            node.graph.erase_node(node)


def _call(copy: Node, method: str, args: tuple[Any, ...], **keywords: Any) -> None:
    """Replace the copy by a call of this method."""
    with copy.graph.inserting_before(copy):
        call = copy.graph.call_method(method, args, keywords)
    call.meta = dict(copy.meta)
    copy.replace_all_uses_with(call)
    copy.graph.erase_node(copy)


def _sum(fused: Any, dtype: torch.dtype) -> Node:
    """The same sum, computed in this type."""

    def widened(node: Node) -> Node:
        is_wide = node.meta["example_value"].dtype == dtype
        return node if is_wide else insert_call(fused, torch.Tensor.to, node, dtype)

    product, value, into = fused.args
    if product.target in METHODS:
        product = insert_call(fused, product.target, *map(widened, product.args))
    return insert_call(fused, fused.target, widened(product), value, widened(into))
