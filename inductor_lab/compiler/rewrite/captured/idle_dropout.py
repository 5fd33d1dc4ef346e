"""Dropout that drops nothing returns its argument itself, in the captured graph.

    h = F.dropout(y, 0.5, training=False); h += 1      →      h = y; h += 1     also changes y

AOTAutograd's definition makes a copy, so such a write would not change y.

Inductor: none; it has that defect (https://github.com/pytorch/pytorch/issues/195422).
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

DROPOUTS = (torch.nn.functional.dropout, torch.dropout)


def remove_idle_dropout(module: GraphModule) -> None:
    """Replace the results by the arguments, also in nested graphs."""
    for part in [part for part in module.modules() if isinstance(part, GraphModule)]:
        for function in DROPOUTS:
            for node in part.graph.find_nodes(op="call_function", target=function):
                argument = _returned_argument(*node.args, **node.kwargs)
                if argument is not None:
                    node.replace_all_uses_with(argument)
                    part.graph.erase_node(node)
                    part.recompile()


def _returned_argument(
    input: Any, p: Any = 0.5, training: Any = True, inplace: Any = False, *, train: Any = True
) -> Node | None:
    """The argument that such a call returns; None if the call drops elements."""
    return input if p == 0 or training is False or train is False else None
