"""Results without elements: nothing is computed, unless the operator may raise for its
arguments."""

from __future__ import annotations

import torch

from inductor_lab.compiler.ir.ops import ELEMENTS
from inductor_lab.compiler.lower.ops import index, regions, scatter, view

CHECKED = {*scatter.CHECKED, *regions.CHECKED, *index.CHECKED, *view.CHECKED}


def is_only_empty(node: torch.fx.Node) -> bool:
    """Is the result surely empty, so that no computation is needed?

    Not if the operator may raise because an argument is out of range, or if the node binds a
    symbol.
    """
    fake, binds = node.meta["val"], node.meta.get("unbacked_bindings")
    empty = any(isinstance(size, int) and size == 0 for size in fake.shape)
    return empty and not binds and node.target not in CHECKED and fake.dtype in ELEMENTS
