"""Replaces the library's attention by our own kernel where that is faster.

    _scaled_dot_product_cudnn_attention(q, k, v, mask)    →    scores = tl.dot(queries, keys) + mask

Our kernels visit keys as the kernels for `flex_attention` do, and add the mask, if there is one, to
each block of scores.  On a GPU, cuDNN's kernel takes nearly twice as long with a mask, and torch's
own kernel three times as long; ours takes 0.7 of cuDNN's time.  On a CPU with AVX-512, torch's
kernel takes twice the time of ours in float32, and four times in bfloat16 (one thread of an EPYC,
2026-11-30); with AVX2 both take the same time.  Only a forward without gradient is replaced,
because a gradient needs tensors that the library saves.

Inductor: calls the library.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from inductor_lab.compiler.accelerate.flash import LISTS, flash, language_of
from inductor_lab.compiler.accelerate.flash_inner import Known
from inductor_lab.compiler.base.errors import working_on
from inductor_lab.compiler.capture.operands import by_name, operand
from inductor_lab.compiler.codegen.attention.attention_call import WHOLE_LENGTH
from inductor_lab.compiler.ir.rules import HALF
from inductor_lab.compiler.lower.graph import lowered
from inductor_lab.compiler.rewrite.decompose.decompositions import decomposition_table
from inductor_lab.compiler.rewrite.facts import RewriteFacts
from inductor_lab.compiler.rewrite.rewrites import Fired
from inductor_lab.compiler.torch_door.torch_api import size_hint

aten = torch.ops.aten

OPERATORS = (
    aten._scaled_dot_product_cudnn_attention.default,
    aten._scaled_dot_product_efficient_attention.default,
    aten._scaled_dot_product_flash_attention_for_cpu.default,
)
"""The operators that torch calls on a GPU if there is a mask, and its operator for a CPU."""
WIDTHS = (16, 32, 64, 128, 256)
"""The widths of a query that are supported on a GPU.  Others would be padded.  At 80, the library
is as fast."""
FEWEST = {"triton": 32, "cpp": 16}
"""The minimum number of queries.  With fewer, a block is mostly empty.  For a single query, the
library takes a quarter of the time on a GPU, and a third on a CPU."""
MOST_KEYS = 256
"""The maximum number of keys on a CPU with AMX (a Xeon).  There the library takes 1.13 to 1.25 of
our time for 128 to 197 keys, 1.0 for 512, and 0.85 for 1500.  For 16-bit numbers it uses the tiles
of AMX, and takes half of our time (one thread, torch 2.11, 2026-11-30)."""
ALL_BLOCKS = (1, 1, *[None] * len(LISTS), WHOLE_LENGTH, WHOLE_LENGTH)
"""A block mask that shows all blocks, without its function."""


def own_attention(module: GraphModule, facts: RewriteFacts) -> Iterable[Fired]:
    """Compile attention to a kernel of ours that stores no matrix of scores."""
    find = module.graph.find_nodes
    calls = [call for op in OPERATORS for call in find(op="call_function", target=op)]
    calls = [call for call in calls if "flash_attention" not in facts.off and is_plain(call)]
    table = decomposition_table(lowered()) if calls else {}
    known: Known = {}
    for call in calls:
        with working_on((call.name,)):
            if flash(call, _items(call), table, known, wanted=("out",)):
                yield Fired("own_attention", call.name, call.name, facts.span_of(call))


def is_plain(call: Node) -> bool:
    """Can our kernel replace the call, and is it faster?

    There must be no dropout, and no use of other results.  On a GPU there must be a mask and 16-bit
    numbers: for float32, whose products are not rounded, our kernel takes twice the time of the
    library.
    """
    given, query = _arguments(call), operand(call).meta["val"]
    others = any(user.args[1] != 0 and user.users for user in call.users)
    language = language_of(query)
    if others or given["dropout_p"] or language is None:
        return False
    if size_hint(query.shape[2]) < FEWEST[language]:
        return False
    if language == "cpp":
        return is_fast_on_this_cpu(query.dtype, size_hint(given["key"].meta["val"].shape[2]))
    masked = given["mask"] is not None and not given["is_causal"]
    return masked and query.dtype in HALF and query.shape[3] in WIDTHS


def is_fast_on_this_cpu(dtype: torch.dtype, keys: int) -> bool:
    """Is our kernel faster than the library for so many keys?

    Its vectors must have 16 numbers.  Without compilers of the family of GCC, it has no vectors
    (`lab_flash.h`).
    """
    has = torch.cpu.get_capabilities()
    if not has.get("avx512_f") or sys.platform == "win32":
        return False
    return not has.get("amx_tile") or (dtype is torch.float32 and keys <= MOST_KEYS)


def _arguments(call: Node) -> dict[str, Any]:
    """Return the arguments of the call by name.  The name of the mask is always `mask`."""
    given = by_name(call.target, call.args, call.kwargs)
    return given | {"mask": given.get("attn_bias", given.get("attn_mask"))}


def _items(call: Node) -> dict[str, Any]:
    """Return the arguments of an equivalent call of `flex_attention`."""
    given = _arguments(call)
    width = given["query"].meta["val"].shape[-1]
    scale = width**-0.5 if given["scale"] is None else given["scale"]
    tensors = {name: given[name] for name in ("query", "key", "value")}
    masked, causal = given["mask"] is not None, given["is_causal"]
    return tensors | {
        "score_mod": added if masked else unchanged, "scale": scale, "is_causal": causal,
        "score_given": (given["mask"],) if masked else (), "mask_given": (),
        "block_mask": (*ALL_BLOCKS, is_before if causal else None),
    }  # fmt: skip


def added(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor, mask: Tensor) -> Tensor:
    """Return the score plus the mask at its position; dimensions of size 1 are broadcast."""
    places = zip(mask.shape, (b, h, i, j)[4 - mask.dim() :], strict=True)
    at = tuple(0 if isinstance(size, int) and size == 1 else place for size, place in places)
    return score + mask[at]


def is_before(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """Is the key `j` at the position of the query `i` or before it?"""
    return j <= i


def unchanged(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return score
