"""Inputs that are written to: what a graph leaves in them becomes results of the graph.

    y = x + 1; x.copy_(y); return z      →      y = x + 1; return z, y        y is written to x

AOTAutograd moves all writes to the end of a graph.  So what comes before is functional, every
stage can run without changing its inputs, and the memory plan decides whether the new value is
made in the input's own storage or copied there by the host program.

Inductor: `fx_passes/reinplace.py`, and `copy_` as a lowering (`MutationLayoutSHOULDREMOVE`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from inductor_lab.capture.operands import operand, results_of
from inductor_lab.ir.program import Write
from inductor_lab.torch_api import copy_of

aten = torch.ops.aten
METHODS = {aten.copy_.default: "copy_", aten.set_.source_Tensor: "set_"}


def may_write_inputs(inputs: Sequence[Any]) -> bool:
    """May AOTAutograd leave writes to inputs in the graph?  Only where no gradient is recorded, for
    a graph that is differentiated has to be functional; and not where memory holds the negative of
    what a tensor is."""
    tensors = [given for given in inputs if isinstance(given, torch.Tensor)]
    if any(map(torch.is_neg, tensors)):
        return False
    return not torch.is_grad_enabled() or not any(tensor.requires_grad for tensor in tensors)


def written_apart(module: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, tuple[Write, ...]]:
    """The graph with one more result for each input that it writes to, and these writes in order.

    The module itself where nothing is written.
    """
    if not any(_is_write(node) for node in module.graph.nodes):
        return module, ()
    module = copy_of(module)
    found = [node for node in module.graph.nodes if _is_write(node)]
    writes, values = [], []
    for node in found:
        given, value = operand(node), operand(node, 1)
        results = results_of(module)
        returned = tuple(k for k, result in enumerate(results) if result is node)
        writes.append(Write(given.name, METHODS[node.target], returned))
        values.append(value)
        node.replace_all_uses_with(value)
        module.graph.erase_node(node)
    module.graph.output_node().args = ((*results_of(module), *values),)
    module.recompile()
    return module, tuple(writes)


def _is_write(node: torch.fx.Node) -> bool:
    return node.target in METHODS and operand(node).op == "placeholder"
