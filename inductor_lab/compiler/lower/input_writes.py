"""Writes to inputs: the final values of written inputs become results of the graph.

    y = x + 1; x.copy_(y); return z      →      y = x + 1; return z, y        y is written to x

AOTAutograd moves all writes to the end of a graph.  So the graph before them is functional, and
every stage can run without changing its inputs.  The memory plan decides whether the new value is
computed in the input's own storage, or whether the host program copies it there.

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
    """May AOTAutograd keep writes to inputs that need no gradient in the graph?

    Not if an input has its negative bit set: its memory holds the negated values.
    """
    return not any(given.is_neg() for given in inputs if isinstance(given, torch.Tensor))


def extract_writes(module: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, tuple[Write, ...]]:
    """The graph with one more result for each input that it writes to, and these writes in order.

    It is the module itself if there are no writes.
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
