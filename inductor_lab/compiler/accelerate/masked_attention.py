"""Replaces the library's attention with a mask on a GPU by our own kernel.

    _scaled_dot_product_cudnn_attention(q, k, v, mask)    →    scores = tl.dot(queries, keys) + mask

With a mask, cuDNN's kernel takes nearly twice as long, and torch's own kernel three times as long.
Our kernel visits keys as the kernel for `flex_attention` does, and adds the mask to each block of
scores.  It takes 0.7 of cuDNN's time (`benchmarks/RESULTS.md`).  Only a forward without gradient is
replaced, because a gradient needs tensors that the library saves.

Inductor: calls the library.
"""

from __future__ import annotations

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
)
"""The operators that torch calls if there is a mask."""
WIDTHS = (16, 32, 64, 128, 256)
"""The supported widths of a query.  Others would be padded.  At 80, the library is as fast."""
FEWEST = 32
"""The minimum number of queries.  With fewer, a block of 64 is mostly empty.  For a single query,
the library takes a quarter of the time."""
ALL_BLOCKS = (1, 1, *[None] * len(LISTS), WHOLE_LENGTH, WHOLE_LENGTH, None)
"""A block mask that shows all blocks."""


def masked_attention(module: GraphModule, facts: RewriteFacts) -> Iterable[Fired]:
    """Compile attention with a mask to a kernel that adds the mask to each block of scores."""
    find = module.graph.find_nodes
    calls = [call for op in OPERATORS for call in find(op="call_function", target=op)]
    calls = [call for call in calls if "flash_attention" not in facts.off and is_plain(call)]
    table = decomposition_table(lowered()) if calls else {}
    known: Known = {}
    for call in calls:
        with working_on((call.name,)):
            if flash(call, _items(call), table, known, wanted=("out",)):
                yield Fired("masked_attention", call.name, call.name, facts.span_of(call))


def is_plain(call: Node) -> bool:
    """Can our kernel replace the call, and is it faster?

    There must be a mask, no dropout, and no use of other results.  For float32, whose products are
    not rounded, our kernel takes twice the time of the library.
    """
    given, query = _arguments(call), operand(call).meta["val"]
    others = any(user.args[1] != 0 and user.users for user in call.users)
    plain = given["mask"] is not None and not (given["dropout_p"] or given["is_causal"] or others)
    many = size_hint(query.shape[2]) >= FEWEST and query.shape[3] in WIDTHS
    return plain and many and query.dtype in HALF and language_of(query) == "triton"


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
    return tensors | {
        "score_mod": added, "block_mask": ALL_BLOCKS, "scale": scale,
        "score_given": (given["mask"],), "mask_given": (),
    }  # fmt: skip


def added(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor, mask: Tensor) -> Tensor:
    """Return the score plus the mask at its position; dimensions of size 1 are broadcast."""
    places = zip(mask.shape, (b, h, i, j)[4 - mask.dim() :], strict=True)
    at = tuple(0 if isinstance(size, int) and size == 1 else place for size, place in places)
    return score + mask[at]

