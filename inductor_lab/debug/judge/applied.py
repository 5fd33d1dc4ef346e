"""Call a function with the arguments of a case: positional and by keyword, and with gradients.

The same code runs for the reference and in the process of the candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.compiler.torch_door.torch_api import pytree


@dataclass(frozen=True)
class Applied:
    """`function(*args, **kwargs)`; with a seed, its results and the gradients of its arguments.

    The gradient of the loss by each result is drawn from the seed.
    """

    function: Callable[..., Any]
    gradients: int | None = None

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if self.gradients is None:
            return self.function(*args, **kwargs)
        leaves, tree = pytree.tree_flatten((tuple(args), dict(kwargs)))
        leaves = [leaf.detach().requires_grad_() if is_differentiable(leaf) else leaf
                  for leaf in leaves]  # fmt: skip
        sources = [leaf for leaf in leaves if is_differentiable(leaf)]
        args, kwargs = pytree.tree_unflatten(leaves, tree)
        with torch.enable_grad():
            returned = self.function(*args, **kwargs)
            results = [leaf for leaf in pytree.tree_leaves(returned)
                       if isinstance(leaf, torch.Tensor) and leaf.requires_grad]  # fmt: skip
            if not results or not sources:
                return returned, [torch.zeros_like(one) for one in sources]
            given = [tangent(one, self.gradients + n) for n, one in enumerate(results)]
            made = torch.autograd.grad(results, sources, given, allow_unused=True)
        return returned, [torch.zeros_like(one) if found is None else found
                          for one, found in zip(sources, made, strict=True)]  # fmt: skip


def is_differentiable(value: Any) -> bool:
    """Is it a floating-point tensor?"""
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point


def tangent(result: torch.Tensor, seed: int) -> torch.Tensor:
    """Numbers that every dtype represents exactly."""
    generator = torch.Generator().manual_seed(seed % (1 << 63))
    eighths = torch.randint(-16, 17, tuple(result.shape), generator=generator)
    return (eighths / 8).to(result.device, result.dtype)
