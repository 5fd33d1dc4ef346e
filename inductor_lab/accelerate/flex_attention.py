"""`flex_attention` in terms of ATen: two products, and between them what the user's functions say.

    flex_attention(q, k, v, score_mod, mask_mod)   →   s = score_mod(q @ k.mT * scale, b, h, i, j)
                                                       s = where(mask_mod(b, h, i, j), s, -inf)
                                                       softmax(s) @ v

The functions become part of the loop nests of the softmax.  The matrix of scores is in memory, as
in eager mode, and a backward computes it anew.

Inductor: `kernel/flex/`, templates that keep no matrix of scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from inductor_lab.errors import working_on
from inductor_lab.lower.graph import lowered
from inductor_lab.rewrite.adding import written_out
from inductor_lab.rewrite.decompositions import decomposition_table
from inductor_lab.rewrite.passes import SpanOf, add_pass
from inductor_lab.rewrite.result import Fired

Function: TypeAlias = Callable[..., Any]
Given: TypeAlias = tuple[Any, ...]
"""What a function of the user's reads besides its arguments."""
LN_2 = math.log(2)


def forward(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Function, block_mask: tuple[Any, ...],
    scale: float, _: Any, score_given: Given = (), mask_given: Given = (),
) -> tuple[Tensor, ...]:  # fmt: skip
    """The result [B, Hq, M, Dv]; for each row, [B, Hq, M], the logarithm to base 2 of the sum of
    its powers, and its largest score.  A row in which all is masked gives 0."""
    scores = _products(query, key) * scale
    shown = _at_each(scores, block_mask[-1], (), mask_given)
    seen = torch.where(shown, _at_each(scores, score_mod, (scores,), score_given), -math.inf)
    largest = seen.amax(-1, keepdim=True)
    shift = torch.where(largest == -math.inf, 0.0, largest)
    powers = (seen - shift).exp()
    total = powers.sum(-1, keepdim=True)
    weights = (powers / torch.where(largest == -math.inf, 1.0, total)).to(query.dtype)
    result = (_in_groups(weights, value) @ _for_each(query, value)).view(*query.shape[:3], -1)
    return result, (shift + total.log()).squeeze(-1) / LN_2, largest.squeeze(-1) / LN_2


def backward(
    query: Tensor, key: Tensor, value: Tensor, out: Tensor, sums: Tensor, grad_out: Tensor | None,
    grad_sums: Tensor | None, score_mod: Function, joint: Function, block_mask: tuple[Any, ...],
    scale: float, _: Any, score_given: Given = (), mask_given: Given = (),
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of query, key and value, and of what `score_mod` reads.

    `joint` is given what `score_mod` is, and the gradient of its result; it returns the gradients
    of all that it was given."""
    scores = _products(query, key) * scale
    shown = _at_each(scores, block_mask[-1], (), mask_given)
    seen = _at_each(scores, score_mod, (scores,), score_given)
    sums = sums.unsqueeze(-1) * LN_2
    visible = shown & (sums != -math.inf)
    weights = torch.where(visible, (seen - sums).exp(), 0.0)
    grad_out = torch.zeros_like(out) if grad_out is None else grad_out
    inner = (out.to(scores.dtype) * grad_out.to(scores.dtype)).sum(-1, keepdim=True)
    if grad_sums is not None:
        inner = inner - grad_sums.unsqueeze(-1) / LN_2
    of_seen = weights * (_products(grad_out, value) - inner)
    of_scores, *of_given = _at_each(scores, joint, (scores,), score_given, of_seen)
    of_scores = torch.where(shown, of_scores * scale, 0.0).to(query.dtype)
    of_scores, weights = _in_groups(of_scores, key), _in_groups(weights.to(query.dtype), value)
    of_query = (of_scores @ _for_each(query, key)).view(query.shape)
    of_key = _for_all(of_scores.mT @ _in_groups(query, key), key)
    of_value = _for_all(weights.mT @ _in_groups(grad_out, value), value)
    return of_query, of_key, of_value, tuple(of_given)


# ---- the user's functions --------------------------------------------------------------------


def _at_each(
    scores: Tensor, function: Function, score: Given, given: Given, *gradient: Tensor
) -> Any:
    """`function` at each score, which it is told the place of.

    With a gradient the results are gradients: of the score, and of what is given, for all scores
    together."""
    none = (None,) * len(given)
    results: Any = [0, None, None, None, None, *none] if gradient else 0
    for dim in (3, 2, 1, 0):
        place = tuple(0 if n == dim else None for n in range(4))
        taken = ((0,) * len(score), place, (0,) * len(gradient), none)
        function = torch.vmap(function, in_dims=sum(taken, ()), out_dims=results)
    places = (torch.arange(size, device=scores.device) for size in scores.shape)
    made = function(*score, *places, *gradient, *given)
    return (made[0], *made[5:]) if gradient else made


# ---- products of heads -----------------------------------------------------------------------


def _products(rows: Tensor, others: Tensor) -> Tensor:
    """`rows[B, Hq, M, D] @ others[B, Hkv, N, D].mT`, the sums not rounded to half precision."""
    wide = torch.promote_types(rows.dtype, torch.float32)
    a, b = _in_groups(rows, others), _for_each(rows, others).mT
    if rows.dtype == wide or rows.device.type != "cuda":
        made = a.to(wide) @ b.to(wide)
    else:
        made = torch.bmm(a, b, out_dtype=wide)
    return made.view(*rows.shape[:3], others.shape[2])


def _in_groups(rows: Tensor, others: Tensor) -> Tensor:
    """[B, Hq, M, D] as [B * Hkv, Hq // Hkv * M, D]: heads that share keys are one matrix."""
    return rows.reshape(rows.shape[0] * others.shape[1], -1, rows.shape[3])


def _for_each(rows: Tensor, others: Tensor) -> Tensor:
    """Keys or values as [B * Hkv, N, D]; where there are one batch's, they are there for each."""
    return others.expand(rows.shape[0], *others.shape[1:]).flatten(0, 1)


def _for_all(gradient: Tensor, others: Tensor) -> Tensor:
    """The gradient of keys or values, from that of each batch's."""
    return gradient.view(-1, *others.shape[1:]).sum_to_size(others.shape)


# ---- in a graph ------------------------------------------------------------------------------


DEFINITIONS: dict[Any, Function] = {
    torch.ops.higher_order.flex_attention: forward,
    torch.ops.higher_order.flex_attention_backward: backward,
}


def calls_of(module: GraphModule) -> list[Node]:
    """Where the two operators are called."""
    find = module.graph.find_nodes
    return [call for op in DEFINITIONS for call in find(op="call_function", target=op)]


def forget_blocks(module: GraphModule) -> None:
    """Leave lists of blocks, which no definition reads, out of the calls: a forward would make them
    and a backward keep them."""
    for call in calls_of(module):
        for n, given in enumerate(call.args):
            if isinstance(given, tuple) and given:
                *blocks, last = given
                kept = (block if isinstance(block, int) else None for block in blocks)
                call.update_arg(n, (*kept, last))
                break


def flex_attention(module: GraphModule, off: frozenset[str], span_of: SpanOf) -> Iterable[Fired]:
    """Write attention with functions of the user's out, so that they become part of loop nests."""
    for call in calls_of(module):
        fired = Fired("flex_attention", call.name, "", span_of(call))
        with working_on((call.name,)):
            written_out(call, DEFINITIONS[call.target], decomposition_table(lowered()))
        yield fired


add_pass(flex_attention, before="collectives")
