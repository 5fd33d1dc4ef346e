"""New calls in the captured graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node


def insert_call(before: Node, function: Callable[..., torch.Tensor], *args: Any) -> Node:
    """A call before `before`, with its line of the program and an example of the result."""
    with before.graph.inserting_before(before):
        made = before.graph.call_function(function, args)
    fakes = torch.fx.map_arg(args, lambda node: node.meta["example_value"])
    made.meta = {**before.meta, "example_value": function(*fakes)}
    return made
