"""The joint graph as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy
import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.autograd.graphs import JointGraph
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.capture.fx_to_record import fx_graph
from inductor_lab.compiler.capture.operands import results_of
from inductor_lab.compiler.torch_door import torch_api

aten = torch.ops.aten


def joint_graph(
    module: GraphModule, num_fwd_outputs: int, *, earlier: FxGraph | None = None
) -> JointGraph:
    """The record of the module that AOTAutograd passes to a partition function."""
    inputs = module.graph.find_nodes(op="placeholder")
    tangents = tuple(node.name for node in inputs if is_tangent(node))
    return JointGraph(
        graph=fx_graph(module, "joint", earlier=earlier),
        num_forward_outputs=num_fwd_outputs,
        primals=tuple(node.name for node in inputs if node.name not in tangents),
        tangents=tangents,
    )


def is_tangent(node: Node) -> bool:
    """Is this input the gradient of an output?  AOTAutograd names them `tangents_1`, ..."""
    return node.op == "placeholder" and "tangents" in str(node.target)


def unify_gradient_symbols(module: GraphModule) -> None:
    """Give gradients the sizes of their outputs if torch traced these sizes twice, with new
    symbols.

    Example: `tangents_1: [u0 % 3]` of `mul: [u1 % 3]`, where the graph binds only `u1`.
    """
    inputs = module.graph.find_nodes(op="placeholder")
    tangents = [(n, sizes) for n in filter(is_tangent, inputs) if (sizes := tuple(_sizes(n)))]
    if not tangents:
        return
    bound = {str(size) for node in inputs for size in _sizes(node) if size.is_Symbol}
    bound |= {str(s) for n in module.graph.nodes for s in n.meta.get("unbacked_bindings") or ()}
    nodes = (node for node in results_of(module) if isinstance(node, Node))
    outputs = {tuple(_sizes(node)) for node in nodes}
    for node, own in tangents:
        unbound = {s for size in own for s in size.free_symbols if str(s) not in bound}
        for sizes in outputs if len(unbound) == 1 else ():
            (symbol,) = unbound
            for other in {s for size in sizes for s in size.free_symbols if str(s) in bound}:
                if own == tuple(size.xreplace({other: symbol}) for size in sizes):
                    torch_api.rename_symbol(node.meta["val"], symbol, other)


def with_lengths(module: GraphModule, sizes: Sequence[Node]) -> list[Node]:
    """The sizes, and the unbacked lengths that they are computed from: for `u7 % 3`, the length
    `u7` of the tensor that has it."""
    made = {size for node in sizes for size in _sizes(node)}
    missing = {symbol for size in made for symbol in size.free_symbols} - made
    lengths = []
    for node in module.graph.nodes if missing else ():
        found = node.meta["val"] if node.meta.get("unbacked_bindings") else None
        for d, length in enumerate(found.shape if isinstance(found, torch.Tensor) else ()):
            if torch_api.expression_of(length) in missing:
                with module.graph.inserting_after(node):
                    lengths.append(module.graph.call_function(aten.sym_size.int, (node, d)))
                lengths[-1].meta["val"] = length
    return [*sizes, *lengths]


def _sizes(node: Node) -> Iterator[sympy.Expr]:
    """The symbolic sizes and strides of a tensor, or the symbolic number itself."""
    value: Any = node.meta.get("val")
    tensor = isinstance(value, torch.Tensor) and value.layout is torch.strided
    for size in (*value.shape, *value.stride()) if tensor else (value,):
        if isinstance(size, torch.SymInt):
            yield size.node.expr
