"""Ways to make a failing graph smaller, each a generator of candidates, the smallest hopes first.

    keep a half          the first half of the calls, or the second: what came before becomes inputs
    truncate suffix      the first three quarters, nine tenths
    truncate prefix      the last
    bisect nodes         leave out a half, a quarter, ... one of the calls
    fewer results        one of several results
    smaller sizes        a dimension of length n becomes 1, 2, ... n / 2
    simpler dtypes       float16 and the like become float32
    plain inputs         numbers from a seed in place of what was computed
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
    """One half of the calls; what it reads of the other is an input.

    Both are tried at the same time, so where one fault lies in one place, shrinking compiles a
    half, a quarter, ... and never anything as large as the whole again.
    """
    names = [node.name for node in candidate.calls]
    middle = len(names) // 2
    for half in (names[:middle], names[middle:]):
        if 0 < len(half) < len(names):
            yield partial(keep, candidate, frozenset(half))


def truncate_suffix(candidate: Candidate) -> Iterator[Callable[[], Candidate]]:
    """Most of the calls, from the first."""
    names = [node.name for node in candidate.calls]
    for share in (0.75, 0.9):
        count = int(len(names) * share)
        if len(names) // 2 < count < len(names):
            yield partial(keep, candidate, frozenset(names[:count]))


def truncate_prefix(candidate: Candidate) -> Iterator[Callable[[], Candidate]]:
    """Most of the calls, to the last; what they read of the others is an input."""
    names = [node.name for node in candidate.calls]
    for share in (0.25, 0.1):
        start = int(len(names) * share)
        if 0 < start < len(names) // 2:
            yield partial(keep, candidate, frozenset(names[start:]))


def bisect_nodes(candidate: Candidate) -> Iterator[Callable[[], Candidate]]:
    """Keep a piece, or leave one out: pieces of a half of the calls, a quarter, ..."""
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
    """One result, and what it needs."""
    results = results_of(candidate)
    for name in results if len(results) > 1 else ():
        yield partial(with_results, candidate, {name})


def smaller_sizes(candidate: Candidate) -> Iterator[Callable[[], Candidate]]:
    """A dimension made shorter, wherever its length occurs."""
    for old in lengths(candidate):
        for new in dict.fromkeys((1, 2, 3, 8, old // 4, old // 2)):
            if 0 < new < old:
                yield partial(resized, candidate, old, new)


def simpler_dtypes(candidate: Candidate) -> Iterator[Callable[[], Candidate]]:
    """float32 in place of other floats."""
    for old in SIMPLER:
        if any(isinstance(v, torch.Tensor) and v.dtype is old for v in candidate.inputs):
            yield partial(retyped, candidate, old, torch.float32)


def plain_inputs(candidate: Candidate) -> Iterator[Callable[[], Candidate]]:
    """Numbers that a script can make again."""
    if any(map(_can_be_plain, candidate.inputs)):
        yield lambda: candidate.with_inputs(tuple(map(plain, candidate.inputs)))


def plain(value: Any) -> Any:
    """A tensor from a seed in place of `value`, where it can be; `lab_text` says how to make it."""
    if not _can_be_plain(value):
        return value
    made = eval(plain_text(value), {"torch": torch}).requires_grad_(value.requires_grad)
    made.lab_text = plain_text(value)
    return made


def _can_be_plain(value: Any) -> bool:
    """Does it lie in memory row by row from the start of its storage, and was not made so yet?"""
    if not isinstance(value, torch.Tensor) or hasattr(value, "lab_text"):
        return False
    if value.layout is not torch.strided or value.dtype.is_complex:
        return False
    return value.is_contiguous() and not value.storage_offset()


def plain_text(value: torch.Tensor) -> str:
    """How a script makes the tensor that `plain` puts in place of one."""
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
"""Those that leave calls out."""
STRATEGIES: Mapping[str, Strategy] = {
    **CUTTING,
    "smaller sizes": smaller_sizes,
    "simpler dtypes": simpler_dtypes,
    "plain inputs": plain_inputs,
}
"""In the order in which they are tried; after a success that cuts, from the first again."""
