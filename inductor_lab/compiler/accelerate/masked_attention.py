"""Attention with a mask on a GPU: a kernel of ours in the place of the library's.

    _scaled_dot_product_cudnn_attention(q, k, v, mask)    →    scores = tl.dot(queries, keys) + mask

cuDNN's kernel takes nearly twice its time once there is a mask, and torch's own three times.  One
that goes through keys as `flex_attention`'s does, and adds the mask to the scores at hand, takes
0.7 of cuDNN's (`benchmarks/RESULTS.md`).  A forward alone: a gradient needs what the library keeps.

Inductor: keeps the library's.
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
from inductor_lab.compiler.rewrite.passes import SpanOf, add_pass
from inductor_lab.compiler.rewrite.rewrites import Fired
from inductor_lab.compiler.torch_door.torch_api import size_hint

aten = torch.ops.aten

OPERATORS = (
    aten._scaled_dot_product_cudnn_attention.default,
    aten._scaled_dot_product_efficient_attention.default,
)
"""Those that torch chooses for a mask."""
WIDTHS = (16, 32, 64, 128, 256)
"""Numbers of a query.  Others are padded to the next of these: at 80 the library is as fast."""
FEWEST = 32
"""Queries; for fewer a block of 64 is mostly empty: for one the library takes a quarter."""
ALL_BLOCKS = (1, 1, *[None] * len(LISTS), WHOLE_LENGTH, WHOLE_LENGTH, None)
"""A block mask that shows all."""


def masked_attention(module: GraphModule, off: frozenset[str], span_of: SpanOf) -> Iterable[Fired]:
    """Compile attention that is given a mask as a kernel that adds it to the scores at hand."""
    find = module.graph.find_nodes
    calls = [call for op in OPERATORS for call in find(op="call_function", target=op)]
    calls = [call for call in calls if "flash_attention" not in off and is_plain(call)]
    table = decomposition_table(lowered()) if calls else {}
    known: Known = {}
    for call in calls:
        with working_on((call.name,)):
            if flash(call, _items(call), table, known, wanted=("out",)):
                yield Fired("masked_attention", call.name, call.name, span_of(call))


def is_plain(call: Node) -> bool:
    """Is a mask given, nothing drawn at random, nothing wanted but the result, and our kernel the
    faster one?  With 32 bits, where products are not rounded, it takes twice the library's time."""
    given, query = _arguments(call), operand(call).meta["val"]
    others = any(user.args[1] != 0 and user.users for user in call.users)
    plain = given["mask"] is not None and not (given["dropout_p"] or given["is_causal"] or others)
    many = size_hint(query.shape[2]) >= FEWEST and query.shape[3] in WIDTHS
    return plain and many and query.dtype in HALF and language_of(query) == "triton"


def _arguments(call: Node) -> dict[str, Any]:
    """What the call is given, by name; its mask is `mask`, whatever the operator calls it."""
    given = by_name(call.target, call.args, call.kwargs)
    return given | {"mask": given.get("attn_bias", given.get("attn_mask"))}


def _items(call: Node) -> dict[str, Any]:
    """The call as one of `flex_attention`."""
    given = _arguments(call)
    width = given["query"].meta["val"].shape[-1]
    scale = width**-0.5 if given["scale"] is None else given["scale"]
    tensors = {name: given[name] for name in ("query", "key", "value")}
    return tensors | {
        "score_mod": added, "block_mask": ALL_BLOCKS, "scale": scale,
        "score_given": (given["mask"],), "mask_given": (),
    }  # fmt: skip


def added(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor, mask: Tensor) -> Tensor:
    """A score and what the mask has for its place; where its size is 1 it is the same for all."""
    places = zip(mask.shape, (b, h, i, j)[4 - mask.dim() :], strict=True)
    at = tuple(0 if isinstance(size, int) and size == 1 else place for size, place in places)
    return score + mask[at]


add_pass(masked_attention, before="constant_folding")
