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

from inductor_lab.compiler.capture.operands import WRITES, operand, results_of, writes_input
from inductor_lab.compiler.ir.program import Write
from inductor_lab.compiler.torch_door.torch_api import copy_of


def may_write_inputs(inputs: Sequence[Any]) -> bool:
    """May AOTAutograd leave writes to inputs in the graph, as far as these need no gradient?  Not
    where memory holds the negative of what a tensor is."""
    return not any(given.is_neg() for given in inputs if isinstance(given, torch.Tensor))


def written_apart(module: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, tuple[Write, ...]]:
    """The graph with one more result for each input that it writes to, and these writes in order.

    The module itself where nothing is written.
    """
    if not any(writes_input(node) for node in module.graph.nodes):
        return module, ()
    module = copy_of(module)
    found = [node for node in module.graph.nodes if writes_input(node)]
    writes, values = [], []
    for node in found:
        given, value = operand(node), operand(node, 1)
        results = results_of(module)
        returned = tuple(k for k, result in enumerate(results) if result is node)
        writes.append(Write(given.name, WRITES[node.target], returned))
        values.append(value)
        node.replace_all_uses_with(value)
        module.graph.erase_node(node)
    module.graph.output_node().args = ((*results_of(module), *values),)
    module.recompile()
    return module, tuple(writes)
