"""The least time of a function: the bytes that it must move, at this machine's measured bandwidth.

Results must be written.  An eighth of an argument must be read if a change of it changes a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.bench.roofs import Ceilings
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.compare.values import copies
from inductor_lab.debug.judge.applied import Applied
from inductor_lab.debug.judge.cases import Arguments
from inductor_lab.debug.judge.expected import with_leaves
from inductor_lab.debug.judge.remote_call import same_bits

PARTS = 8
IMPOSSIBLE = 0.6
"""A time below this share of the bound is a rejection; the roof is measured, so it has an error."""


@dataclass(frozen=True)
class LeastBytes:
    """Bytes that every implementation reads and writes."""

    read: int
    written: int
    on_gpu: bool


def least_bytes(reference: Applied, args: Arguments) -> LeastBytes:
    """The bytes of one call."""
    function, tensors, _ = with_leaves(reference, args)
    plain = _results(function(*copies(tensors)))
    read = 0
    for number, one in enumerate(tensors):
        if one.numel() < PARTS:
            continue
        for part in range(PARTS):
            given = copies(tensors)
            if _changed(given[number], part) and _differ(_results(function(*given)), plain):
                read += one.numel() * one.element_size() // PARTS
    written = sum(one.numel() * one.element_size() for one in plain)
    return LeastBytes(read, written, any(one.is_cuda for one in plain))


def _changed(one: torch.Tensor, part: int) -> bool:
    """Change a part of a tensor; False for one that shares elements."""
    if any(s == 0 and n > 1 for n, s in zip(one.shape, one.stride(), strict=True)):
        return False
    flat = one.detach().flatten()
    length = flat.numel() // PARTS
    chosen = flat[part * length : (part + 1) * length]
    if one.dtype.is_floating_point:
        chosen.mul_(1.5).add_(0.25)
    elif one.dtype is torch.bool:
        chosen.logical_not_()
    else:
        return False
    with torch.no_grad():
        one.copy_(flat.view(one.shape))
    return True


def _results(returned: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(returned) if isinstance(leaf, torch.Tensor)]


def _differ(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return not all(same_bits(a, b) for a, b in zip(first, second, strict=True))


def least_seconds(least: LeastBytes, roof: Ceilings) -> float:
    """Seconds for these bytes, which may be in a cache; 0 if the roof is not known."""
    return 0.0 if roof.doubt else roof.seconds(least.read + least.written, 0)


def cold_seconds(least: LeastBytes, roof: Ceilings) -> float:
    """Seconds to read them from the memory of a GPU; 0 on a CPU and if the roof is not known.

    The results may stay in a cache.
    """
    if roof.doubt or not least.on_gpu:
        return 0.0
    return least.read / roof.bandwidth[-1][1]
