"""Strategies to shrink a failing graph: each generates candidates, the smallest first.

    keep a half          the first or the second half of the calls; other values become inputs
    truncate suffix      keep the first three quarters, nine tenths
    truncate prefix      keep the last three quarters, nine tenths
    bisect nodes         remove a half, a quarter, ... one of the calls
    fewer results        one of several results
    smaller sizes        a dimension of length n becomes 1, 2, ... n / 2
    simpler dtypes       float16 and similar become float32
    plain inputs         random numbers from a seed replace computed inputs
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import torch

from inductor_lab.debug.minify.candidate import (
    Candidate,
    keep,
    lengths,
    resized,
    results_of,
    retyped,
    with_results,
)

Strategy = Callable[[Candidate], Iterator[Callable[[], Candidate]]]
SIMPLER = (torch.float16, torch.bfloat16, torch.float64)


def keep_a_half(candidate: Candidate) -> Iterator[Callable[[], Candidate]]:
    """Keep one half of the calls; values from the other half become inputs.

    Both halves run concurrently.  So for a single local fault, shrinking compiles a half, a
    quarter, ..., and never a graph as large as the original again.
    """
    names = [node.name for node in candidate.calls]
    middle = len(names) // 2
    for half in (names[:middle], names[middle:]):
        if 0 < len(half) < len(names):
            yield partial(keep, candidate, frozenset(half))


def truncate_suffix(candidate: Candidate) -> Iterator[Callable[[], Candidate]]:
    """Keep most of the calls, from the first."""
    names = [node.name for node in candidate.calls]
    for share in (0.75, 0.9):
        count = int(len(names) * share)
        if len(names) // 2 < count < len(names):
            yield partial(keep, candidate, frozenset(names[:count]))


def truncate_prefix(candidate: Candidate) -> Iterator[Callable[[], Candidate]]:
    """Keep most of the calls, up to the last; values from removed calls become inputs."""
    names = [node.name for node in candidate.calls]
    for share in (0.25, 0.1):
        start = int(len(names) * share)
        if 0 < start < len(names) // 2:
            yield partial(keep, candidate, frozenset(names[start:]))


def bisect_nodes(candidate: Candidate) -> Iterator[Callable[[], Candidate]]:
    """Keep or remove a range of calls: a half of the calls, a quarter, ..."""
    names = [node.name for node in candidate.calls]
    pieces = 2
    while pieces <= 2 * len(names) - 1:
        parts = min(pieces, len(names))
        cuts = [len(names) * k // parts for k in range(parts + 1)]
        spans = [names[a:b] for a, b in pairwise(cuts)]
        for span in spans if parts > 2 else []:
            yield partial(keep, candidate, frozenset(span))
        for span in spans:
            rest = frozenset(names) - frozenset(span)
            if rest:
                yield partial(keep, candidate, rest)
        pieces *= 2


def fewer_results(candidate: Candidate) -> Iterator[Callable[[], Candidate]]:
    """Keep one result and the nodes that it needs."""
    results = results_of(candidate)
    for name in results if len(results) > 1 else ():
        yield partial(with_results, candidate, {name})


def smaller_sizes(candidate: Candidate) -> Iterator[Callable[[], Candidate]]:
    """Make a dimension shorter, wherever its length occurs."""
    for old in lengths(candidate):
        for new in dict.fromkeys((1, 2, 3, 8, old // 4, old // 2)):
            if 0 < new < old:
                yield partial(resized, candidate, old, new)


def simpler_dtypes(candidate: Candidate) -> Iterator[Callable[[], Candidate]]:
    """Use float32 for other float dtypes."""
    for old in SIMPLER:
        if any(isinstance(v, torch.Tensor) and v.dtype is old for v in candidate.inputs):
            yield partial(retyped, candidate, old, torch.float32)


def plain_inputs(candidate: Candidate) -> Iterator[Callable[[], Candidate]]:
    """Use inputs that a script can recreate."""
    if any(map(_can_be_plain, candidate.inputs)):
        yield lambda: candidate.with_inputs(tuple(map(plain, candidate.inputs)))


def plain(value: Any) -> Any:
    """A tensor from a seed instead of `value`, if possible; `lab_text` is the code to create it."""
    if not _can_be_plain(value):
        return value
    made = eval(plain_text(value), {"torch": torch}).requires_grad_(value.requires_grad)
    made.lab_text = plain_text(value)
    return made


def _can_be_plain(value: Any) -> bool:
    """Is it contiguous at the start of its storage, and not yet created from a seed?"""
    if not isinstance(value, torch.Tensor) or hasattr(value, "lab_text"):
        return False
    if value.layout is not torch.strided or value.dtype.is_complex:
        return False
    return value.is_contiguous() and not value.storage_offset()


def plain_text(value: torch.Tensor) -> str:
    """The code with which a script creates the tensor of `plain`."""
    shape, dtype = tuple(value.shape), value.dtype
    seeded = "generator=torch.Generator().manual_seed(0)"
    if dtype.is_floating_point:
        return f"torch.randn({shape}, {seeded}).to({dtype})"
    if dtype is torch.bool:
        return f"torch.randint(2, {shape}, {seeded}).to({dtype})"
    high = max(int(value.max()) + 1, 1) if value.numel() else 1
    return f"torch.randint({min(high, 2**31)}, {shape}, {seeded}).to({dtype})"


CUTTING: Mapping[str, Strategy] = {
    "keep a half": keep_a_half,
    "truncate suffix": truncate_suffix,
    "truncate prefix": truncate_prefix,
    "bisect nodes": bisect_nodes,
    "fewer results": fewer_results,
}
"""The strategies that remove calls."""
STRATEGIES: Mapping[str, Strategy] = {
    **CUTTING,
    "smaller sizes": smaller_sizes,
    "simpler dtypes": simpler_dtypes,
    "plain inputs": plain_inputs,
}
"""The strategies in order; after a success that removes calls, they start again."""
