"""Results without elements: nothing is computed, unless the operator may refuse its arguments."""

from __future__ import annotations

import torch

from inductor_lab.compiler.ir.ops import ELEMENTS
from inductor_lab.compiler.lower.ops import index, regions, scatter, view

CHECKED = {*scatter.CHECKED, *regions.CHECKED, *index.CHECKED, *view.CHECKED}


def is_only_empty(node: torch.fx.Node) -> bool:
    """Is it sure that there are no elements, so that nothing is read, and is that all there is to
    say?  Not where an argument may be out of range, or where a length becomes known here."""
    fake, binds = node.meta["val"], node.meta.get("unbacked_bindings")
    empty = any(isinstance(size, int) and size == 0 for size in fake.shape)
    return empty and not binds and node.target not in CHECKED and fake.dtype in ELEMENTS
