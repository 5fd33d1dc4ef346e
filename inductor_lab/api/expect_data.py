"""Refuse tensors without data before a call is run."""

from __future__ import annotations

from typing import Any

import torch

from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.compiler.torch_door.torch_api import pytree


def expect_data(call: str, fn: Any, given: Any) -> None:
    """Raises BadArguments if an input, a parameter or a buffer of `fn` is on device meta."""
    own = [*fn.parameters(), *fn.buffers()] if isinstance(fn, torch.nn.Module) else []
    if any(isinstance(x, torch.Tensor) and x.is_meta for x in (*own, *pytree.tree_leaves(given))):
        raise BadArguments(
            f"{call} runs what it compiles, and tensors on the meta device have no data",
            todo='give it tensors of a CPU or a GPU; a module: module.to_empty(device="cpu")',
        )
