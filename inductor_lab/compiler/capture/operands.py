"""Arguments of FX nodes, with the types of the operator's schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

aten = torch.ops.aten


def operand(node: Node, index: int = 0) -> Node:
    """Argument `index` of a call, which must be a node."""
    argument = node.args[index]
    assert isinstance(argument, Node), f"argument {index} of {node.name} is {argument!r}"
    return argument


def items_of(node: Node, index: int = 1) -> list[Any]:
    """The items of argument `index` of a call, which must be a list: dimensions, sizes, nodes."""
    items = node.args[index]
    assert isinstance(items, list | tuple), f"argument {index} of {node.name} is {items!r}"
    return list(items)


def by_name(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an operator call by name, including defaults."""
    given = {argument.name: argument.default_value for argument in operator._schema.arguments}
    return given | dict(zip(given, args, strict=False)) | dict(kwargs)


def results_of(module: GraphModule) -> list[Any]:
    """The outputs of a graph: nodes, numbers and None."""
    return items_of(module.graph.output_node(), 0)


WRITES = {aten.copy_.default: "copy_", aten.set_.source_Tensor: "set_"}
if hasattr(aten, "shallow_copy_data_"):  # `x.data = y` since torch 2.14; before, it was `set_`
    WRITES[aten.shallow_copy_data_.default] = "set_"


def writes_input(node: Node) -> bool:
    """Does a call write a new value to an input of the graph?"""
    return node.target in WRITES and operand(node).op == "placeholder"
